// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/server.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline comm {
namespace {

// Returns one rank of every host, then a second rank of every host, and so on.
std::vector<int> spread_over_hosts(const AllreduceRequest& request) {
  std::vector<std::pair<int, int>> turns;  // (number of earlier ranks on its host, rank)
  std::vector<int> seen(static_cast<std::size_t>(request.ranks));
  for (int r = 0; r < request.ranks; ++r) {
    const int host = request.hosts.empty() ? r : request.hosts[static_cast<std::size_t>(r)];
    turns.emplace_back(seen[static_cast<std::size_t>(host)]++, r);
  }
  std::sort(turns.begin(), turns.end());
  std::vector<int> ranks;
  for (const auto& [turn, rank] : turns) ranks.push_back(rank);
  return ranks;
}

// The server number of each rank; -1: the rank is not a server.
std::vector<int> server_numbers(const AllreduceRequest& request) {
  const int servers = server_count(request);
  const int most = request.dedicated_servers ? request.ranks - 1 : request.ranks;
  if (servers > most)
    throw ConfigError(fmt::format("{} of {}; at most {}",
                                  counted(servers, request.dedicated_servers ? "dedicated server" : "server"),
                                  counted(request.ranks, "rank"), most));
  std::vector<int> numbers(static_cast<std::size_t>(request.ranks), -1);
  const std::vector<int> order = request.dedicated_servers ? std::vector<int>{} : spread_over_hosts(request);
  for (int i = 0; i < servers; ++i) {
    const int rank = request.dedicated_servers ? request.ranks - servers + i : order[static_cast<std::size_t>(i)];
    numbers[static_cast<std::size_t>(rank)] = i;
  }
  return numbers;
}

// The range that the server with this number holds.
ElemRange part_of(const AllreduceRequest& request, int number) {
  if (number < 0) return {};
  if (request.whole_on < 0) return even_part(request.elems, server_count(request), number);
  return number == request.whole_on ? ElemRange{0, request.elems} : ElemRange{};
}

// The plan of push, pull, or both, with steps computed on demand: each server receives k - 1 messages of its part and
// sends as many, so that a list would hold 5 (k-1) steps. This class holds 20 bytes per rank, and finds a step in O(log
// k).
//
// In round d rank r sends to rank r + d and receives from rank r - d (mod k), so that all servers are busy at once and
// no rank waits for a peer that is not there yet. Segment j of a round, in which C segments arrive and G leave:
//
//   push   recv  segment j of the own part into slot t mod L    after the add of t-L, t counting those received so
//          send  segment j of the other's part
//          add   slot t mod L to segment j of the own part      after the recv, and the add in the round before
//   pull   recv  segment j of the other's part                  after it was sent in the push
//          send  segment j of the own part                      after the last add
//
// A dedicated server contributes nothing: its first message is received in place instead of being added.
class ServerPlan final : public Plan {
 public:
  ServerPlan(const char* name, const AllreduceRequest& request, bool pushes, bool pulls)
      : name_(name),
        request_(request),
        k_(request.ranks),
        me_(request.rank),
        workers_(server_workers(request)),
        server_of_(server_numbers(request)),
        mine_(part_of(request, server_of_[static_cast<std::size_t>(me_)])),
        segments_(segments_of(mine_.elems(), request.segment_elems)) {
    request_.hosts.clear();
    request_.hosts.shrink_to_fit();
    const int worker_rounds = trains() ? workers_ - 1 : workers_;
    adding_ = pushes && !mine_.empty() ? std::max(0, worker_rounds - first_adding()) : 0;
    begin_.reserve(static_cast<std::size_t>((pushes ? k_ : 0) + (pulls ? k_ : 0)) + 1);
    for (const bool push : {true, false}) {
      if (push ? !pushes : !pulls) continue;
      (push ? push_at_ : pull_at_) = static_cast<int>(begin_.size());
      for (int d = 1; d < k_; ++d) {
        begin_.push_back(steps_);
        steps_ += (push ? push_round(d) : pull_round(d)).steps();
      }
    }
    begin_.push_back(steps_);
  }

  std::string_view name() const override { return name_; }
  std::int64_t steps() const override { return steps_; }
  int slots() const override {
    return static_cast<int>(std::min<std::int64_t>(PlanBuilder::kSlots, adding_ * segments_));
  }
  std::int64_t slot_elems() const override { return adding_ > 0 ? segment(mine_, 0).elems() : 0; }

  Step step(std::int64_t index) const override {
    const auto next = std::upper_bound(begin_.begin(), begin_.end(), index);
    const int at = static_cast<int>(next - begin_.begin()) - 1;
    const std::int64_t offset = index - begin_[static_cast<std::size_t>(at)];
    return pull_at_ >= 0 && at >= pull_at_ ? pull_step(at - pull_at_ + 1, offset)
                                           : push_step(at - push_at_ + 1, offset);
  }

 private:
  // One round: the numbers of segments that arrive and leave, and whether those that arrive are added.
  struct Round {
    std::int64_t come = 0, go = 0;
    bool adds = false;

    std::int64_t steps() const { return before(std::max(come, go)); }
    // Number of steps before those of segment j. The order in a segment is recv, send, add.
    std::int64_t before(std::int64_t j) const { return std::min(j, come) * (adds ? 2 : 1) + std::min(j, go); }
    std::int64_t recv(std::int64_t j) const { return before(j); }
    std::int64_t send(std::int64_t j) const { return before(j) + (j < come ? 1 : 0); }
    std::int64_t add(std::int64_t j) const { return before(j) + 1 + (j < go ? 1 : 0); }
    // The segment of a step.
    std::int64_t segment_of(std::int64_t offset) const {
      const std::int64_t both = std::min(come, go), first = both * (adds ? 3 : 2);
      if (offset < first) return offset / (adds ? 3 : 2);
      return both + (offset - first) / (come > go && adds ? 2 : 1);
    }
  };

  bool trains() const { return me_ < workers_; }
  int to(int d) const { return (me_ + d) % k_; }
  int from(int d) const { return (me_ - d + k_) % k_; }
  ElemRange part(int rank) const { return part_of(request_, server_of_[static_cast<std::size_t>(rank)]); }
  std::int64_t segments_in(int rank) const { return segments_of(part(rank).elems(), request_.segment_elems); }
  ElemRange segment(ElemRange whole, std::int64_t j) const {
    const auto parts = static_cast<int>(segments_of(whole.elems(), request_.segment_elems));
    const ElemRange cut = even_part(whole.elems(), parts, static_cast<int>(j));
    return {whole.begin + cut.begin, whole.begin + cut.end};
  }

  // Rounds in which a worker sends to this rank, numbered from 0; the first round of a dedicated server adds nothing.
  int first_adding() const { return trains() ? 0 : 1; }
  int worker_round(int number) const {
    if (!trains()) return me_ - workers_ + number + 1;
    return number + 1 + (number < me_ ? 0 : k_ - workers_);
  }
  int number_of(int d) const {
    if (!trains()) return d - 1 - (me_ - workers_);
    return d - 1 - (d - 1 < me_ ? 0 : k_ - workers_);
  }
  Round push_round(int d) const {
    const std::int64_t come = from(d) < workers_ ? segments_ : 0;
    return {.come = come, .go = trains() ? segments_in(to(d)) : 0, .adds = come > 0 && number_of(d) >= first_adding()};
  }
  Round pull_round(int d) const {
    return {.come = trains() ? segments_in(from(d)) : 0, .go = to(d) < workers_ ? segments_ : 0, .adds = false};
  }
  std::int64_t push_begin(int d) const { return begin_[static_cast<std::size_t>(push_at_ + d - 1)]; }

  // The step after which segment j of the own part has its value after `rounds` rounds of workers; -1: no such step.
  std::int64_t summed(int rounds, std::int64_t j) const {
    if (push_at_ < 0 || rounds == 0) return -1;
    const int d = worker_round(rounds - 1);
    const Round round = push_round(d);
    return push_begin(d) + (round.adds ? round.add(j) : round.recv(j));
  }

  Step push_step(int d, std::int64_t offset) const {
    const Round round = push_round(d);
    const std::int64_t j = round.segment_of(offset), index = push_begin(d) + offset;
    if (j < round.go && offset == round.send(j))
      return {.kind = StepKind::send, .peer = to(d), .range = segment(part(to(d)), j)};
    const ElemRange range = segment(mine_, j);
    if (!round.adds) return {.kind = StepKind::recv, .peer = from(d), .range = range};
    const int number = number_of(d);
    const std::int64_t t = (number - first_adding()) * segments_ + j, before = t - slots();
    const int slot = static_cast<int>(t % slots());
    if (offset == round.recv(j)) {
      std::int64_t added = -1;
      if (before >= 0) {
        const int earlier = worker_round(static_cast<int>(before / segments_) + first_adding());
        added = push_begin(earlier) + push_round(earlier).add(before % segments_);
      }
      return {.kind = StepKind::recv, .peer = from(d), .range = range, .slot = slot, .after = {added, -1}};
    }
    return {.kind = StepKind::reduce,
            .range = range,
            .slot = slot,
            .after = {index - offset + round.recv(j), summed(number, j)}};
  }

  Step pull_step(int d, std::int64_t offset) const {
    const Round round = pull_round(d);
    const std::int64_t j = round.segment_of(offset);
    if (j < round.go && offset == round.send(j))
      return {.kind = StepKind::send,
              .peer = to(d),
              .range = segment(mine_, j),
              .after = {summed(first_adding() + adding_, j), -1}};
    const int other = from(d), sent_in = (other - me_ + k_) % k_;
    return {.kind = StepKind::recv,
            .peer = other,
            .range = segment(part(other), j),
            .after = {push_at_ < 0 ? -1 : push_begin(sent_in) + push_round(sent_in).send(j), -1}};
  }

  std::string name_;
  AllreduceRequest request_;
  int k_, me_, workers_;
  std::vector<int> server_of_;  // by rank; -1: it serves nothing
  ElemRange mine_;
  std::int64_t segments_;  // number in this rank's part
  int adding_ = 0;         // rounds of the push that add
  std::int64_t steps_ = 0;
  int push_at_ = -1, pull_at_ = -1;  // in begin_; -1: the plan does not have this half
  std::vector<std::int64_t> begin_;  // first step of each round, followed by the number of steps
};

// The halves as listed plans, for any parts on a team in which all contribute: used as parts of another plan.
void reduce(PlanBuilder& plan, const Team& team, const Parts& parts) {
  const int k = team.size();
  const ElemRange mine = parts[static_cast<std::size_t>(team.me)];
  for (int d = 1; d < k; ++d) {
    const int to = (team.me + d) % k, from = (team.me - d + k) % k;
    plan.exchange(team[to], parts[static_cast<std::size_t>(to)], team[from], mine, PlanBuilder::Arrival::adds);
  }
}

void gather(PlanBuilder& plan, const Team& team, const Parts& parts) {
  const int k = team.size();
  const ElemRange mine = parts[static_cast<std::size_t>(team.me)];
  for (int d = 1; d < k; ++d) {
    const int to = (team.me + d) % k, from = (team.me - d + k) % k;
    plan.exchange(team[to], mine, team[from], parts[static_cast<std::size_t>(from)], PlanBuilder::Arrival::replaces);
  }
}

}  // namespace

const Halves server_halves = {.most_owners = every_rank,
                              .parts = even_parts,
                              .reduce = reduce,
                              .gather = gather,
                              .steps = [](int ranks) { return ranks > 1 ? 1 : 0; },
                              .messages = messages_to_all};

int server_count(const AllreduceRequest& request) { return request.servers > 0 ? request.servers : request.ranks; }

Parts server_parts(const AllreduceRequest& request) {
  Parts parts;
  for (const int number : server_numbers(request)) parts.push_back(part_of(request, number));
  return parts;
}

int server_workers(const AllreduceRequest& request) {
  return request.ranks - (request.dedicated_servers ? server_count(request) : 0);
}

std::shared_ptr<const Plan> make_push(const AllreduceRequest& request) {
  return std::make_shared<ServerPlan>("push", request, true, false);
}
std::shared_ptr<const Plan> make_pull(const AllreduceRequest& request) {
  return std::make_shared<ServerPlan>("pull", request, false, true);
}
std::shared_ptr<const Plan> make_server_allreduce(const AllreduceRequest& request) {
  return std::make_shared<ServerPlan>("server", request, true, true);
}

Price price_server(const AllreduceRequest& request) {
  const std::int64_t givers = request.dedicated_servers ? server_workers(request) : request.ranks - 1;
  std::int64_t segments = 0;
  for (const ElemRange part : server_parts(request)) segments += segments_of(part.elems(), request.segment_elems);
  return {.messages = 2 * givers * segments, .payload_elems = 2 * givers * request.elems, .steps = 2};
}

}  // namespace echelon::inline comm

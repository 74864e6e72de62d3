// SPDX-License-Identifier: Apache-2.0
#include "tests/support/backup_world.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/watched_machine.hpp"

namespace echelon::test {
namespace {

using Numbers = std::vector<std::int64_t>;
using Word = BackupProtocol::Word;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Returns what a worker gives to element i of bucket b in a step.
std::int64_t gradient(int worker, std::int64_t step, int b, std::int64_t i) {
  return (worker + 1) * 1'000'000 + step * 1000 + b * 100 + i;
}

// Records what all ranks together have seen.
struct Observer {
  explicit Observer(const BackupSchedule& of) : schedule(of), met(at(of.workers), -1), ended(at(of.workers)) {}

  void step_taken(int b, int server, const BackupCommand& command, const Numbers& weights) {
    const auto [it, fresh] = entered.try_emplace(command.step, command.entered);
    ECHELON_CHECK(it->second == command.entered, "pieces of step {} take different gradients", command.step);
    ECHELON_CHECK_EQ(command.entered.size(), at(schedule.needed), "gradients of step {}", command.step);
    ECHELON_CHECK(std::is_sorted(command.entered.begin(), command.entered.end(), std::less_equal<>()) == true,
                  "a worker enters step {} twice, or out of order", command.step);
    double weight = 0;
    for (const int worker : command.entered) weight += schedule.weight(worker, command.step);
    const double whole = schedule.whole(command.step);
    ECHELON_CHECK(whole == 0 || weight > 0, "nobody in step {} has samples", command.step);
    ECHELON_CHECK(whole == 0 || std::abs(command.factor * weight - whole) < 1e-9, "factor {} of step {}",
                  command.factor, command.step);
    ECHELON_CHECK_EQ(command.learning_rate, 0.5 + static_cast<double>(command.step), "rate of step {}", command.step);
    auto& versions = history[{b, server}];
    ECHELON_CHECK_EQ(static_cast<std::int64_t>(versions.size()), command.step - schedule.first_step,
                     "steps of bucket {} on rank {}", b, server);
    versions.push_back(weights);
  }
  // Returns the weights of a piece at the beginning of a step.
  Numbers weights_of(int b, int server, std::int64_t step) const {
    const ElemRange part = schedule.parts[at(b)][at(server)];
    if (step == schedule.first_step) return Numbers(at(part.elems()));
    return history.at({b, server}).at(at(step - schedule.first_step - 1));
  }
  bool all_met(std::int64_t step) const {
    return std::all_of(met.begin(), met.end(), [&](std::int64_t at_step) { return at_step >= step; });
  }

  const BackupSchedule& schedule;
  std::map<std::int64_t, std::vector<int>> entered;
  std::map<std::pair<int, int>, std::vector<Numbers>> history;
  std::vector<std::int64_t> met;  // by worker: step of the last meeting that it came to
  std::vector<bool> ended;
};

// A rank, with its memory and its host, whose steps are pauses.
class Rank final : public BackupMemory, public ProtocolHost {
 public:
  Rank(const BackupSchedule& schedule, Observer* observer, int rank, VirtualWorld& world)
      : schedule_(schedule),
        observer_(*observer),
        rank_(rank),
        random_(HashRng(schedule.network.seed, "backup rank").at(at(rank))),
        next_(schedule.first_step) {
    BackupProtocol::Setup setup{.rank = rank,
                                .workers = schedule.workers,
                                .needed = schedule.needed,
                                .first_step = schedule.first_step,
                                .buckets = {},
                                .tag = 5};
    for (std::size_t b = 0; b < schedule.parts.size(); ++b) {
      setup.buckets.push_back(
          {.parts = schedule.parts[b], .tag = 10 + 2 * static_cast<int>(b), .priority = static_cast<int>(b)});
      served_.emplace_back(at(schedule.parts[b][at(rank)].elems()));
    }
    pulled_.resize(schedule.parts.size());
    verdict_s.assign(at(schedule.end() + 1), -1);
    protocol.emplace(setup, *this);
    watched_.emplace(*protocol, true);
    auto transport = make_disturbed(world.transport(rank), schedule.disturbance[at(rank)]);
    actor.emplace(
        std::move(transport), *watched_, *this, [this] { return ended_; }, schedule.sends);
    works() ? begin_step() : wait_for_the_end();
  }

  Bytes push(int b, int server) override {
    const ElemRange part = schedule_.parts[at(b)][at(server)];
    Numbers& message = pushes_[{b, server}];
    message.clear();
    for (std::int64_t i = part.begin; i < part.end; ++i) message.push_back(gradient(rank_, next_, b, i));
    return {message.data(), message.size() * sizeof message[0]};
  }
  Bytes weights_room(int b, int server) override {
    ECHELON_CHECK(completed_, "weights of rank {} may come while they are read", rank_);
    return room_of(arriving_[{b, server}], schedule_.parts[at(b)][at(server)]);
  }
  Bytes push_room(int b, int worker) override {
    return room_of(rooms_[{b, worker}], schedule_.parts[at(b)][at(rank_)]);
  }
  void take_step(int b, const BackupCommand& command) override {
    ECHELON_CHECK(!quiet_, "rank {} takes a step while its host reads", rank_);
    const ElemRange part = schedule_.parts[at(b)][at(rank_)];
    Numbers& weights = served_[at(b)];
    for (const int worker : command.entered)
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const std::int64_t given = gradient(worker, command.step, b, i);
        if (worker == rank_)
          ECHELON_CHECK_EQ(next_, command.step, "step of the worker on server {}", rank_);
        else
          ECHELON_CHECK_EQ((rooms_.at({b, worker})[at(i - part.begin)]), given, "gradient of worker {}", worker);
        weights[at(i - part.begin)] += given;
      }
    observer_.step_taken(b, rank_, command, weights);
  }
  Message weights(int b) override {
    ECHELON_CHECK(!quiet_, "rank {} was not quiet: somebody gets weights", rank_);
    const Numbers& now = served_[at(b)];
    auto message = std::make_shared<std::vector<std::byte>>(now.size() * sizeof now[0]);
    std::memcpy(message->data(), now.data(), message->size());
    return message;
  }
  void take_own(int b) override {
    ECHELON_CHECK(completed_, "weights of rank {} come while they are read", rank_);
    arriving_[{b, rank_}] = served_[at(b)];
  }

  void on_notified(Token token, double now_s) override {
    switch (BackupProtocol::word_of(token)) {
      case Word::verdict: judged(now_s); break;
      case Word::pulled: pulled_[at(BackupProtocol::bucket_of(token))] = true; break;
      case Word::quiet: return quiet();
      default: ECHELON_CHECK(false, "word {}", static_cast<int>(BackupProtocol::word_of(token)));
    }
    if (judged_ && std::find(pulled_.begin(), pulled_.end(), false) == pulled_.end()) end_step();
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<BackupProtocol> protocol;
  std::optional<ProtocolActor> actor;
  std::vector<double> verdict_s;
  BackupRounds::Count own;

 private:
  static Bytes room_of(Numbers& room, ElemRange part) {
    room.assign(at(part.elems()), -1);
    return {room.data(), room.size() * sizeof room[0]};
  }
  bool works() const { return rank_ < schedule_.workers; }

  void begin_step() {
    const double spread = 1 + schedule_.spread * (random_.uniform(draws_++) - 0.5);
    const double step_s = schedule_.compute_s * schedule_.slowness[at(rank_)] * spread;
    const int buckets = static_cast<int>(pulled_.size());
    const double late_s = random_.below(draws_++, 4) == 0 ? 5e-6 : 0;  // a device has its gradients later
    for (int b = 0; b < buckets; ++b)
      actor->at(
          actor->now_s() + (b + 1 == buckets && late_s > 0 ? step_s + late_s : step_s * (1 + 2.0 * b / buckets) / 3),
          [this, b] { actor->post(BackupProtocol::token(Word::push, b)); });
    actor->at(actor->now_s() + step_s, [this] {
      completed_ = true;
      protocol->set_complete({.step = next_,
                              .weight = schedule_.weight(rank_, next_),
                              .whole = schedule_.whole(next_),
                              .learning_rate = 0.5 + static_cast<double>(next_)});
      actor->post(BackupProtocol::token(Word::complete));
    });
  }

  void judged(double now_s) {
    const BackupVerdict verdict = protocol->verdict();
    const bool entered = verdict.entered != 0;
    ++(entered ? own.entered : own.dropped);
    ECHELON_CHECK(!judged_ && verdict.next_step > next_, "step {} of worker {} leads to step {}", next_, rank_,
                  verdict.next_step);
    ECHELON_CHECK(!entered || verdict.next_step == next_ + 1, "a worker that entered leaves out a step");
    ECHELON_CHECK_LE(verdict.next_step, meeting_after(next_), "worker {} does not come to the meeting", rank_);
    mine_.insert({next_, entered});
    judged_ = true;
    verdict_s[at(verdict.next_step)] = now_s;
  }

  // Returns the step of the next meeting.
  std::int64_t meeting_after(std::int64_t step) const {
    return std::min(schedule_.end(), (step / schedule_.period + 1) * schedule_.period);
  }

  void end_step() {
    const std::int64_t meeting = meeting_after(next_);
    next_ = protocol->verdict().next_step;
    judged_ = completed_ = false;
    pulled_.assign(pulled_.size(), false);
    for (const auto& [place, weights] : arriving_)
      ECHELON_CHECK(weights == observer_.weights_of(place.first, place.second, next_),
                    "worker {} has other weights than those of step {}", rank_, next_);
    if (next_ < meeting) return begin_step();
    observer_.met[at(rank_)] = next_;
    if (schedule_.quiet_first) return actor->post(BackupProtocol::token(Word::quiet));
    wait_for_all([this] { actor->post(BackupProtocol::token(Word::quiet)); });
  }
  template <class Then>
  void wait_for_all(const Then& then) {
    if (observer_.all_met(next_)) return then();
    actor->at(actor->now_s() + 100e-6, [this, then] { wait_for_all(then); });
  }
  void quiet() {
    ECHELON_CHECK(watched_->waits().empty(), "rank {} waits at a meeting", rank_);
    // No rank takes a step before all have come; then some may be told earlier than others, and go on.
    ECHELON_CHECK(watched_->sends().empty() || observer_.all_met(next_), "rank {} is not quiet: it sends", rank_);
    quiet_ = true;
    const double reads_s = static_cast<double>(random_.below(draws_++, 3)) * schedule_.compute_s;
    actor->at(actor->now_s() + reads_s, [this] { wait_for_all([this] { leave_meeting(); }); });
  }
  void leave_meeting() {
    quiet_ = false;
    actor->post(BackupProtocol::token(Word::resume));
    if (next_ < schedule_.end()) return begin_step();
    ECHELON_CHECK(watched_->sends().empty(), "rank {} sends after the end", rank_);
    for (const auto& [step, entered] : mine_) {
      const std::vector<int>& all = observer_.entered.at(step);
      ECHELON_CHECK_EQ(std::binary_search(all.begin(), all.end(), rank_), entered, "worker {} in step {}", rank_, step);
    }
    observer_.ended[at(rank_)] = true;
    end();
  }
  // For a rank that does not work: what it has sent was received, and it may be told of the end later.
  void wait_for_the_end() {
    const std::vector<bool>& ended = observer_.ended;
    if (std::find(ended.begin(), ended.end(), false) == ended.end() && watched_->sends().empty()) return end();
    actor->at(actor->now_s() + 20e-6, [this] { wait_for_the_end(); });
  }
  void end() {
    ended_ = true;
    actor->post(BackupProtocol::token(Word::end));
  }

  const BackupSchedule& schedule_;
  Observer& observer_;
  int rank_;
  HashRng random_;
  std::uint64_t draws_ = 0;
  std::int64_t next_;  // step that the worker takes next
  bool completed_ = false, judged_ = false, quiet_ = false, ended_ = false;
  std::vector<bool> pulled_;
  std::map<std::int64_t, bool> mine_;  // by step that this worker took: whether its gradient entered
  std::vector<Numbers> served_;        // one per bucket
  std::map<std::pair<int, int>, Numbers> pushes_, arriving_, rooms_;
  std::optional<WatchedMachine> watched_;
};

}  // namespace

BackupOutcome run_backups(const BackupSchedule& schedule) {
  Observer observer(schedule);
  const ProtocolRun<Rank> run(schedule.ranks, schedule.network, schedule, &observer);
  BackupOutcome outcome;
  for (std::int64_t step = schedule.first_step; step < schedule.end(); ++step)
    outcome.entered.push_back(observer.entered.at(step));
  ECHELON_CHECK_EQ(static_cast<std::int64_t>(observer.entered.size()), schedule.steps, "steps that were closed");
  for (const auto& rank : run.ranks()) {
    outcome.messages += rank->actor->wire().messages_sent;
    outcome.bytes += rank->actor->wire().bytes_sent;
    outcome.verdict_s.push_back(rank->verdict_s);
    const auto counts = rank->protocol->counts();
    if (!counts.empty()) outcome.counts = counts;
  }
  std::int64_t entered = 0;
  for (int w = 0; w < schedule.workers; ++w) {
    const BackupRounds::Count &counted = outcome.counts.at(at(w)), &own = run.ranks()[at(w)]->own;
    ECHELON_CHECK(counted.entered == own.entered && counted.dropped == own.dropped, "gradients of worker {}", w);
    entered += counted.entered;
  }
  ECHELON_CHECK_EQ(entered, schedule.steps * schedule.needed, "gradients that entered");
  return outcome;
}

}  // namespace echelon::test

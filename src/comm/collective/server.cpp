#include "comm/collective/server.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace echelon::inline comm {
namespace {

// In round d rank r sends to rank r + d and receives from rank r - d (mod k), so that all servers are
// busy at once and no rank waits for a peer that is not there yet. A server adds in the order d = 1, 2 .. to its own.
// Places from `workers` on contribute nothing: the first message replaces what they hold.
void push(PlanBuilder& plan, const Team& team, const Parts& parts, int workers) {
  const int k = team.size();
  const ElemRange mine = parts[static_cast<std::size_t>(team.me)];
  bool holds = team.me < workers;
  for (int d = 1; d < k; ++d) {
    const int to = (team.me + d) % k, from = (team.me - d + k) % k;
    const ElemRange out = team.me < workers ? parts[static_cast<std::size_t>(to)] : ElemRange{};
    const ElemRange in = from < workers ? mine : ElemRange{};
    plan.exchange(team[to], out, team[from], in, holds ? PlanBuilder::Arrival::adds : PlanBuilder::Arrival::replaces);
    holds = holds || !in.empty();
  }
}

void pull(PlanBuilder& plan, const Team& team, const Parts& parts, int workers) {
  const int k = team.size();
  for (int d = 1; d < k; ++d) {
    const int to = (team.me + d) % k, from = (team.me - d + k) % k;
    const ElemRange out = to < workers ? parts[static_cast<std::size_t>(team.me)] : ElemRange{};
    const ElemRange in = team.me < workers ? parts[static_cast<std::size_t>(from)] : ElemRange{};
    plan.exchange(team[to], out, team[from], in, PlanBuilder::Arrival::replaces);
  }
}

void reduce(PlanBuilder& plan, const Team& team, const Parts& parts) { push(plan, team, parts, team.size()); }
void gather(PlanBuilder& plan, const Team& team, const Parts& parts) { pull(plan, team, parts, team.size()); }

// One of every host, then a second of every host, and so on.
std::vector<int> spread_over_hosts(const AllreduceRequest& request) {
  std::vector<std::pair<int, int>> turns;  // (how many of its host come before it, rank)
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

using Half = void (*)(PlanBuilder&, const Team&, const Parts&, int workers);

std::shared_ptr<const Plan> make(const char* name, const AllreduceRequest& request,
                                 std::initializer_list<Half> halves) {
  const Parts parts = server_parts(request);
  PlanBuilder plan(request.segment_elems);
  for (const Half half : halves) half(plan, everyone(request), parts, server_workers(request));
  return plan.finish(name);
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
  const int servers = server_count(request);
  const int most = request.dedicated_servers ? request.ranks - 1 : request.ranks;
  if (servers > most)
    throw ConfigError(fmt::format("{} {}servers of {} ranks; at most {}", servers,
                                  request.dedicated_servers ? "dedicated " : "", request.ranks, most));
  const std::vector<int> order = spread_over_hosts(request);
  Parts parts(static_cast<std::size_t>(request.ranks));
  for (int i = 0; i < servers; ++i) {
    const int place = request.dedicated_servers ? request.ranks - servers + i : order[static_cast<std::size_t>(i)];
    ElemRange& part = parts[static_cast<std::size_t>(place)];
    if (request.whole_on < 0)
      part = even_part(request.elems, servers, i);
    else if (i == request.whole_on)
      part = {0, request.elems};
  }
  return parts;
}

int server_workers(const AllreduceRequest& request) {
  return request.ranks - (request.dedicated_servers ? server_count(request) : 0);
}

std::shared_ptr<const Plan> make_push(const AllreduceRequest& request) { return make("push", request, {push}); }
std::shared_ptr<const Plan> make_pull(const AllreduceRequest& request) { return make("pull", request, {pull}); }
std::shared_ptr<const Plan> make_server_allreduce(const AllreduceRequest& request) {
  return make("server", request, {push, pull});
}

Price price_server(const AllreduceRequest& request) {
  const std::int64_t givers = request.dedicated_servers ? server_workers(request) : request.ranks - 1;
  std::int64_t segments = 0;
  for (const ElemRange part : server_parts(request)) segments += segments_of(part.elems(), request.segment_elems);
  return {.messages = 2 * givers * segments, .payload_elems = 2 * givers * request.elems, .steps = 2};
}

}  // namespace echelon::inline comm

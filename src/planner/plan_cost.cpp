// SPDX-License-Identifier: Apache-2.0
#include "planner/plan_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "comm/collective/builder.hpp"
#include "config/traits/algorithms.hpp"

namespace echelon::inline planner {
namespace {

// The messages that all ranks send in one round.
struct Round {
  double elems = 0;      // per rank
  double sharers = 1;    // ranks that send through one card
  bool inside = false;   // messages stay inside hosts
  bool crosses = false;  // all messages cross switches
  bool adds = false;
};

class Formula {
 public:
  Formula(const Collective& collective, const RankPlacement& placement, const Network& network)
      : what_(collective),
        k_(placement.ranks),
        g_(std::min(placement.ranks_a_host, placement.ranks)),
        hosts_(placement.hosts()),
        network_(network),
        segment_(static_cast<double>(collective.segment_elems > 0 ? collective.segment_elems : kDefaultSegment)) {}

  CollectiveCost halving_doubling() const { return folded(true); }
  CollectiveCost butterfly() const { return folded(false); }
  CollectiveCost direct() const { return served(k_, true); }
  CollectiveCost server() const { return served(what_.servers > 0 ? what_.servers : k_, false); }
  CollectiveCost library() const {
    const CollectiveCost one = ring(), other = folded(true);
    return one.time_s < other.time_s ? one : other;
  }

  double n() const { return static_cast<double>(what_.elems); }
  double bytes(double elems) const { return elems * what_.elem_bytes; }
  double add_s(double elems) const { return bytes(elems) / network_.add_bytes_per_s; }
  const Link& link(bool inside) const { return inside ? network_.inside : network_.between; }
  double o(bool inside) const { return link(inside).latency_s / 2; }
  double segments(double elems) const { return std::max(1.0, std::ceil(elems / segment_ - 1e-9)); }

  // Seconds for which one message occupies its card; if `crosses`, all hosts of a switch send through its uplink
  // together.
  double card_s(double elems, bool inside, bool crosses) const {
    double rate = link(inside).bytes_per_s;
    if (crosses && !inside) rate = std::min(rate, network_.uplink_bytes_per_s / network_.hosts_per_switch);
    return bytes(elems) / rate + o(inside);
  }
  bool several_switches() const { return network_.hosts_per_switch > 0 && hosts_ > network_.hosts_per_switch; }
  // Whether partners at this distance of ranks are mostly on the same host, and whether they are on other switches.
  bool inside_at(int distance) const { return distance < g_; }
  bool crosses_at(int distance) const { return several_switches() && distance >= g_ * network_.hosts_per_switch; }

  struct Paced {
    double card_s, hop_s, period_s, segments;
  };
  Paced pace(const Round& round) const {
    const double s = segments(round.elems), part = round.elems / s;
    const double c = card_s(part, round.inside, round.crosses) * round.sharers, a = round.adds ? add_s(part) : 0;
    const double hop = c + o(round.inside) + a;
    return {.card_s = c, .hop_s = hop, .period_s = std::max({s * c, s * a, hop}), .segments = s};
  }

  CollectiveCost ring() const {
    const double part = std::max(1.0, n() / k_), rounds = std::min<double>(k_, n()) - 1;
    const bool one_host = hosts_ == 1;
    Paced add = pace({.elems = part, .inside = one_host, .adds = true});
    Paced copy = pace({.elems = part, .inside = one_host});
    if (!one_host && g_ > 1) mix_in_hosts(part, add, copy);
    return {.time_s = rounds * add.period_s + (rounds - 1) * copy.period_s + copy.segments * copy.card_s + o(one_host),
            .busy_s = 2 * rounds * copy.segments * copy.card_s};
  }

  // A part passes g - 1 links inside a host for each link between hosts: the mean hop and the slowest card count.
  void mix_in_hosts(double part, Paced& add, Paced& copy) const {
    const Paced add_in = pace({.elems = part, .inside = true, .adds = true});
    const Paced copy_in = pace({.elems = part, .inside = true});
    const double share = 1.0 / g_;
    add.hop_s = share * add.hop_s + (1 - share) * add_in.hop_s;
    copy.hop_s = share * copy.hop_s + (1 - share) * copy_in.hop_s;
    add.period_s = std::max({add.segments * add.card_s, add.segments * add_in.card_s, add.hop_s});
    copy.period_s = std::max({copy.segments * copy.card_s, copy.segments * copy_in.card_s, copy.hop_s});
  }

  // Halving and doubling, or the whole buffer in each round.
  CollectiveCost folded(bool halves) const {
    const int p = static_cast<int>(std::bit_floor(static_cast<unsigned>(k_)));
    CollectiveCost cost;
    double part = n();
    const auto add = [&](const Round& round, bool pipelined, bool last) {
      const Paced paced = pace(round);
      const bool waits = !pipelined || paced.segments == 1 || last;
      const double a = round.adds ? paced.hop_s - paced.card_s - o(round.inside) : 0;
      cost.time_s +=
          pipelined && !last ? paced.period_s : paced.segments * paced.card_s + (waits ? o(round.inside) + a : 0);
      cost.busy_s += paced.segments * paced.card_s;
    };
    const auto round_at = [&](int distance, double elems, bool adds) {
      const bool inside = inside_at(distance);
      return Round{.elems = std::max(1.0, elems),
                   .sharers = static_cast<double>(inside ? 1 : g_),
                   .inside = inside,
                   .crosses = crosses_at(distance),
                   .adds = adds};
    };
    if (k_ > p) add(round_at(1, n(), true), false, false);
    // The last halving sums, segment by segment, the values that the first doubling sends.
    for (int bit = 1; bit < p; bit <<= 1) {
      if (halves) part /= 2;
      add(round_at(bit, part, true), !halves || bit == p / 2, !halves && bit == p / 2 && k_ == p);
    }
    for (int bit = p / 2; halves && bit > 0; bit >>= 1) {
      add(round_at(bit, part, false), false, false);
      part *= 2;
    }
    if (k_ > p) add(round_at(1, n(), false), false, false);
    return cost;
  }

  // Every rank sends `elems` to every other. The cards of host and rank work at the same time, so only the longer
  // transfer counts.
  double all_to_all_s(double elems, double peers) const {
    if (hosts_ == 1) return peers * card_s(elems, true, false);
    const double outside = peers * (k_ - g_) / (k_ - 1);
    return std::max(outside * g_ * card_s(elems, false, several_switches()),
                    (peers - outside) * card_s(elems, true, false));
  }

  CollectiveCost naive() const {
    const double peers = k_ - 1, wire = all_to_all_s(n(), peers);
    return {.time_s = add_s(n()) + wire + o(hosts_ == 1) + k_ * add_s(n()), .busy_s = wire};
  }

  // Push to s of the ranks and pull from them; `whole`: in one message, which is copied on its way in and out.
  CollectiveCost served(int servers, bool whole) const {
    const double part = std::max(1.0, n() / servers), s = whole ? 1 : segments(part);
    const double peers = k_ - 1, wire = s * all_to_all_s(part / s, peers), a = add_s(part / s);
    const bool inside = hosts_ == 1;
    const double sums = whole ? (k_ + 4) * a : a;  // copies in and out, and the sums of k parts one after another
    return {.time_s = 2 * wire + 2 * o(inside) + sums, .busy_s = 2 * wire};
  }

  CollectiveCost tree() const {
    const bool inside = hosts_ == 1;
    const double s = segments(n()), part = n() / s;
    const double c = card_s(part, inside, false), a = add_s(part);
    const double height = std::bit_width(static_cast<unsigned>(k_)) - 1;
    const double messages = k_ < 4 ? k_ - 1 : 3;
    const double full = std::log2(static_cast<double>(k_ + 1)) - 1;  // levels of parents with two children
    const double first = (height + full) * c + height * (2 * c + 2 * o(inside) + a);
    return {.time_s = first + (s - 1) * std::max(messages * c, 2 * a), .busy_s = s * messages * c};
  }

  CollectiveCost binomial() const {
    constexpr double kStalls = 1.07;  // a parent takes one message after another, up and down in turns
    const bool inside = hosts_ == 1;
    const double s = segments(n()), part = n() / s, levels = std::bit_width(static_cast<unsigned>(k_ - 1));
    const double c = card_s(part, inside, false), a = add_s(part);
    return {.time_s = 2 * levels * (c + o(inside)) + levels * a + (s - 1) * kStalls * levels * std::max(c, a),
            .busy_s = s * levels * c};
  }

  CollectiveCost in_memory() const {
    if (hosts_ > 1)
      throw ConfigError(
          fmt::format("all-reduce '{}' sums in the memory of one host, and {} ranks are on {}; nearest valid: "
                      "'hierarchical' with inner = \"{}\"",
                      what_.algorithm, k_, hosts_, what_.algorithm));
    const double copied = k_ == 2 ? n() : 2 * (k_ - 1) * n() / k_, summed = k_ == 2 ? n() : (k_ - 1) * n() / k_;
    return {.time_s = add_s(copied + summed) + o(true), .busy_s = 0};
  }

  CollectiveCost hierarchical() const {
    if (hosts_ == 1 || g_ == 1)
      return allreduce_model(hosts_ == 1 ? what_.inner : what_.outer)
          .closed(what_, {.ranks = k_, .ranks_a_host = g_}, network_);
    Collective part = what_;
    const bool whole = allreduce_model(what_.inner).gathers_whole;
    part.elems = std::max<std::int64_t>(1, whole ? what_.elems : what_.elems / g_);
    part.algorithm = what_.outer;
    const CollectiveCost inner = closed_cost({.algorithm = what_.inner,
                                              .elems = what_.elems,
                                              .elem_bytes = what_.elem_bytes,
                                              .segment_elems = what_.segment_elems},
                                             {.ranks = g_, .ranks_a_host = g_}, network_);
    Network shared = network_;  // the parts of all ranks of a host pass its card at the same time
    if (!whole) shared.between.bytes_per_s /= g_;
    const CollectiveCost outer = closed_cost(part, {.ranks = hosts_, .ranks_a_host = 1}, shared);
    return {.time_s = inner.time_s + outer.time_s, .busy_s = outer.busy_s};
  }

 private:
  const Collective& what_;
  int k_, g_, hosts_;
  const Network& network_;
  double segment_;
};

template <CollectiveCost (Formula::*form)() const>
CollectiveCost closed(const Collective& collective, const RankPlacement& placement, const Network& network) {
  return (Formula(collective, placement, network).*form)();
}

using Correction = AllreduceModel::Correction;
double to_all(double k) { return 2 * k * k; }

// clang-format off
constexpr AllreduceModel kModels[] = {
    {.name = "naive", .closed = closed<&Formula::naive>, .error = {kExactForm, 0.15}, .exact = true, .sends_whole = true,
     .buffers = [](double k) { return k * k; }, .messages = to_all},
    {.name = "ring", .closed = closed<&Formula::ring>, .error = {kExactForm, 0.02}, .exact = true, .automatic = true,
     .sends_to_one = true, .messages = to_all},
    {.name = "halving_doubling", .closed = closed<&Formula::halving_doubling>, .error = {kExactForm, 0.05, 0.15},
     .correction = Correction::buffer, .automatic = true},
    {.name = "butterfly", .closed = closed<&Formula::butterfly>, .error = {kExactForm, 0.05, 0.15},
     .correction = Correction::buffer, .exact = true, .automatic = true, .sends_whole = true,
     .buffers = [](double k) { return k * std::log2(k); }},
    {.name = "binomial", .closed = closed<&Formula::binomial>, .error = {0.15, 0.15}, .correction = Correction::levels,
     .automatic = true, .gathers_whole = true, .sends_to_one = true},
    {.name = "tree", .closed = closed<&Formula::tree>, .error = {0.06, 0.06}, .correction = Correction::levels,
     .automatic = true, .sends_whole = true, .gathers_whole = true, .sends_to_one = true, .used = 2.0 / 3},
    {.name = "server", .closed = closed<&Formula::server>, .error = {0.5, 0.5}, .automatic = true, .messages = to_all},
    {.name = "shared", .closed = closed<&Formula::in_memory>},
    {.name = "hierarchical", .closed = closed<&Formula::hierarchical>, .error = {0.15, 0.15}, .automatic = true,
     .messages = to_all},
    {.name = "mpi", .closed = closed<&Formula::library>},
    {.name = "nccl", .closed = closed<&Formula::library>},
    {.name = "direct", .closed = closed<&Formula::direct>, .error = {kExactForm, 0.15}, .exact = true,
     .messages = to_all, .plan = make_direct_allreduce, .hops = 2}};
// clang-format on

}  // namespace

std::span<const AllreduceModel> allreduce_models() { return kModels; }

const AllreduceModel& allreduce_model(std::string_view name) {
  if (const AllreduceModel* model = find_traits(kModels, name)) return *model;
  throw ConfigError(unknown_name("all-reduce", name, names_in(kModels)));
}

std::vector<int> RankPlacement::hosts_of_ranks() const {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / ranks_a_host);
  return hosts;
}

CollectiveCost closed_cost(const Collective& collective, const RankPlacement& placement, const Network& network) {
  ECHELON_CHECK(placement.ranks >= 1 && placement.ranks_a_host >= 1, "{} ranks, {} a host", placement.ranks,
                placement.ranks_a_host);
  if (placement.ranks == 1 || collective.elems == 0) return {};
  CollectiveCost cost = allreduce_model(collective.algorithm).closed(collective, placement, network);
  cost.busy_s = std::min(cost.busy_s, cost.time_s);
  return cost;
}

}  // namespace echelon::inline planner

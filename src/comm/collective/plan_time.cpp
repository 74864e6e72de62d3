// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/plan_time.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "base/check.hpp"

namespace echelon::inline comm {
namespace {

// A step of a lane; a lane is the part of one rank in one collective.
struct At {
  std::size_t lane = 0, index = 0;
};

struct Node {
  Step step;
  int missing = 0;     // earlier steps that it still waits for; after_all counts as one
  bool ready = false;  // nothing is missing
  bool done = false;
  std::vector<std::size_t> waiting;  // steps of this rank that name it
  At other;                          // the message's other end
};

enum class What : std::uint8_t { offered, begins, leaves, ends };

struct Event {
  double time_s = 0;
  std::int64_t order = 0;
  At at;
  What what = What::begins;
  friend bool operator>(const Event& a, const Event& b) {
    return a.time_s != b.time_s ? a.time_s > b.time_s : a.order > b.order;
  }
};

bool is_message(const Step& step) { return step.kind == StepKind::send || step.kind == StepKind::recv; }

class VirtualRun {
 public:
  VirtualRun(const std::vector<TimedPlans>& collectives, const std::vector<int>& hosts, const Network& network,
             double elem_bytes)
      : hosts_(hosts),
        network_(network),
        elem_bytes_(elem_bytes),
        ranks_(hosts.size()),
        lanes_(collectives.size() * hosts.size()) {
    for (std::size_t c = 0; c < collectives.size(); ++c) {
      ECHELON_CHECK_EQ(collectives[c].plans.size(), hosts.size());
      for (std::size_t r = 0; r < hosts.size(); ++r) load(c * hosts.size() + r, *collectives[c].plans[r]);
      join_ends(c * hosts.size());
    }
  }

  std::vector<double> run(const std::vector<TimedPlans>& collectives) {
    std::vector<double> last_s(collectives.size(), 0);
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      const std::vector<double>& ready_s = collectives[l / ranks_.size()].ready_s;
      const double begins_s = ready_s.empty() ? 0 : ready_s[rank_of(l)];
      for (std::size_t i = 0; i < lanes_[l].nodes.size(); ++i)
        if (lanes_[l].nodes[i].missing == 0) push(begins_s, {l, i}, What::offered);
    }
    std::size_t ended = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      switch (event.what) {
        case What::offered: offer(event.at, event.time_s); break;
        case What::begins: begin(event.at, event.time_s); break;
        case What::leaves: leave(event.at, event.time_s); break;
        case What::ends: {
          double& last = last_s[event.at.lane / ranks_.size()];
          last = std::max(last, event.time_s);
          ++ended;
          end(event.at, event.time_s);
        }
      }
    }
    ECHELON_CHECK_EQ(ended, total_, "plans that wait for each other");
    return last_s;
  }

 private:
  struct Lane {
    std::vector<Node> nodes;
    std::multimap<std::size_t, std::size_t> barriers;  // by after_all: the steps that wait for it
    std::size_t done_below = 0;                        // all steps below are done
  };
  struct Card {
    double out_free_s = 0, in_free_s = 0;
  };
  struct Rank {
    double cpu_free_s = 0;
    Card card;  // towards ranks of its host
  };

  std::size_t rank_of(std::size_t lane) const { return lane % ranks_.size(); }
  Node& node(At at) { return lanes_[at.lane].nodes[at.index]; }

  void load(std::size_t l, const Plan& plan) {
    ECHELON_CHECK(!plan.uses_library(), "plan {} is the library's own", plan.name());
    Lane& lane = lanes_[l];
    lane.nodes.resize(static_cast<std::size_t>(plan.steps()));
    total_ += lane.nodes.size();
    for (std::size_t i = 0; i < lane.nodes.size(); ++i) {
      Node& at = lane.nodes[i];
      at.step = plan.step(static_cast<std::int64_t>(i));
      for (const std::int64_t earlier : at.step.after)
        if (earlier >= 0) {
          ++at.missing;
          lane.nodes[static_cast<std::size_t>(earlier)].waiting.push_back(i);
        }
      if (at.step.after_all > 0) {
        ++at.missing;
        lane.barriers.emplace(static_cast<std::size_t>(at.step.after_all), i);
      }
    }
  }

  // The i-th send to a peer is the i-th receive of that peer from here. `first` is the collective's lane of rank 0.
  void join_ends(std::size_t first) {
    std::map<std::pair<std::size_t, std::size_t>, std::queue<At>> sends;
    for (std::size_t l = first; l < first + ranks_.size(); ++l)
      for (std::size_t i = 0; i < lanes_[l].nodes.size(); ++i)
        if (const Step& step = lanes_[l].nodes[i].step; step.kind == StepKind::send)
          sends[{l, first + static_cast<std::size_t>(step.peer)}].push({l, i});
    for (std::size_t l = first; l < first + ranks_.size(); ++l)
      for (std::size_t i = 0; i < lanes_[l].nodes.size(); ++i) {
        Node& at = lanes_[l].nodes[i];
        if (at.step.kind != StepKind::recv) continue;
        auto& from = sends[{first + static_cast<std::size_t>(at.step.peer), l}];
        ECHELON_CHECK(!from.empty(), "rank {} waits for a message that rank {} does not send", rank_of(l),
                      at.step.peer);
        at.other = from.front();
        node(at.other).other = {l, i};
        from.pop();
      }
  }

  void push(double time_s, At at, What what) { events_.push({time_s, order_++, at, what}); }

  // Called when a step has no missing predecessor. A message begins once this holds at both ends.
  void offer(At at, double now_s) {
    Node& here = node(at);
    here.ready = true;
    if (!is_message(here.step)) return push(now_s, at, What::begins);
    if (node(here.other).ready) push(now_s, here.step.kind == StepKind::send ? at : here.other, What::begins);
  }

  void begin(At at, double now_s) {
    const Node& here = node(at);
    Rank& rank = ranks_[rank_of(at.lane)];
    const double bytes = static_cast<double>(here.step.range.elems()) * elem_bytes_;
    if (!is_message(here.step)) {
      rank.cpu_free_s = std::max(rank.cpu_free_s, now_s) + bytes / network_.add_bytes_per_s;
      return push(rank.cpu_free_s, at, What::ends);
    }
    double& out_free_s = card_of(at).out_free_s;
    const double start_s = std::max(now_s, out_free_s);
    out_free_s = start_s + bytes / link_of(at).bytes_per_s + link_of(at).latency_s / 2;
    push(start_s, at, What::leaves);
  }

  // The message occupies the sender's card from now on.
  void leave(At at, double now_s) {
    const At other = node(at).other;
    const Link& link = link_of(at);
    const double bytes = static_cast<double>(node(at).step.range.elems()) * elem_bytes_;
    double start_s = now_s;
    if (const int up = switch_of(at), down = switch_of(other); up != down)
      for (double* free_s : {&uplinks_[up].out_free_s, &uplinks_[down].in_free_s}) {
        start_s = std::max(start_s, *free_s);
        *free_s = start_s + bytes / network_.uplink_bytes_per_s;
      }
    double& in_free_s = card_of(other).in_free_s;
    in_free_s = std::max(start_s + link.latency_s / 2, in_free_s) + bytes / link.bytes_per_s + link.latency_s / 2;
    push(in_free_s, at, What::ends);
    push(in_free_s, other, What::ends);
  }

  bool stays_inside(At at) const { return host_of(at) == host_of(lanes_[at.lane].nodes[at.index].other); }
  int host_of(At at) const { return hosts_[rank_of(at.lane)]; }
  const Link& link_of(At at) const { return stays_inside(at) ? network_.inside : network_.between; }
  // The card at this end of the message.
  Card& card_of(At at) { return stays_inside(at) ? ranks_[rank_of(at.lane)].card : cards_[host_of(at)]; }
  int switch_of(At at) const { return network_.hosts_per_switch > 0 ? host_of(at) / network_.hosts_per_switch : 0; }

  // Called when one of the steps that `at` waits for is done.
  void one_less_missing(At at, double now_s) {
    if (--node(at).missing == 0) offer(at, now_s);
  }

  void end(At at, double now_s) {
    Lane& lane = lanes_[at.lane];
    lane.nodes[at.index].done = true;
    for (const std::size_t waiting : lane.nodes[at.index].waiting) one_less_missing({at.lane, waiting}, now_s);
    while (lane.done_below < lane.nodes.size() && lane.nodes[lane.done_below].done) ++lane.done_below;
    while (!lane.barriers.empty() && lane.barriers.begin()->first <= lane.done_below) {
      const std::size_t waiting = lane.barriers.begin()->second;
      lane.barriers.erase(lane.barriers.begin());
      one_less_missing({at.lane, waiting}, now_s);
    }
  }

  const std::vector<int>& hosts_;
  const Network& network_;
  double elem_bytes_;
  std::vector<Rank> ranks_;
  std::vector<Lane> lanes_;      // by collective, then rank
  std::map<int, Card> cards_;    // by host
  std::map<int, Card> uplinks_;  // by switch
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t order_ = 0;
  std::size_t total_ = 0;
};

}  // namespace

double plan_time_s(const std::vector<std::shared_ptr<const Plan>>& plans, const std::vector<int>& hosts,
                   const Network& network, std::size_t elem_bytes) {
  return plan_times_s({{.plans = plans}}, hosts, network, static_cast<double>(elem_bytes)).front();
}

std::vector<double> plan_times_s(const std::vector<TimedPlans>& collectives, const std::vector<int>& hosts,
                                 const Network& network, double elem_bytes) {
  return VirtualRun(collectives, hosts, network, elem_bytes).run(collectives);
}

}  // namespace echelon::inline comm

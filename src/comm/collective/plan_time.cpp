#include "comm/collective/plan_time.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "base/check.hpp"

namespace echelon::inline comm {
namespace {

struct At {
  std::size_t rank = 0, index = 0;
};

struct Node {
  Step step;
  int missing = 0;     // earlier steps that it still waits for; after_all counts as one
  bool ready = false;  // nothing is missing
  bool done = false;
  std::vector<std::size_t> waiting;  // steps of this rank that name it
  At other;                          // the message's other end
};

struct Event {
  double time_s = 0;
  std::int64_t order = 0;
  At at;
  bool ends = false;  // else: may begin
  friend bool operator>(const Event& a, const Event& b) {
    return a.time_s != b.time_s ? a.time_s > b.time_s : a.order > b.order;
  }
};

bool is_message(const Step& step) { return step.kind == StepKind::send || step.kind == StepKind::recv; }

class VirtualRun {
 public:
  VirtualRun(const std::vector<std::shared_ptr<const Plan>>& plans, const std::vector<int>& hosts,
             const Network& network, std::size_t elem_bytes)
      : hosts_(hosts), network_(network), elem_bytes_(static_cast<double>(elem_bytes)), ranks_(plans.size()) {
    for (std::size_t r = 0; r < plans.size(); ++r) load(r, *plans[r]);
    join_ends();
  }

  double run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t i = 0; i < ranks_[r].nodes.size(); ++i)
        if (ranks_[r].nodes[i].missing == 0) offer({r, i}, 0);
    double last_s = 0;
    std::size_t ended = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.ends) {
        last_s = std::max(last_s, event.time_s);
        ++ended;
        end(event.at, event.time_s);
      } else {
        begin(event.at, event.time_s);
      }
    }
    ECHELON_CHECK_EQ(ended, total_, "plans that wait for each other");
    return last_s;
  }

 private:
  struct Rank {
    std::vector<Node> nodes;
    std::multimap<std::size_t, std::size_t> barriers;  // by after_all: the steps that wait for it
    std::size_t done_below = 0;                        // all steps below are done
    double cpu_free_s = 0, out_free_s = 0, in_free_s = 0;
  };
  struct Card {
    double out_free_s = 0, in_free_s = 0;
  };

  Node& node(At at) { return ranks_[at.rank].nodes[at.index]; }

  void load(std::size_t r, const Plan& plan) {
    ECHELON_CHECK(!plan.uses_library(), "plan {} is the library's own", plan.name());
    Rank& rank = ranks_[r];
    rank.nodes.resize(static_cast<std::size_t>(plan.steps()));
    total_ += rank.nodes.size();
    for (std::size_t i = 0; i < rank.nodes.size(); ++i) {
      Node& at = rank.nodes[i];
      at.step = plan.step(static_cast<std::int64_t>(i));
      for (const std::int64_t earlier : at.step.after)
        if (earlier >= 0) {
          ++at.missing;
          rank.nodes[static_cast<std::size_t>(earlier)].waiting.push_back(i);
        }
      if (at.step.after_all > 0) {
        ++at.missing;
        rank.barriers.emplace(static_cast<std::size_t>(at.step.after_all), i);
      }
    }
  }

  // The i-th send to a peer is its i-th receive from here.
  void join_ends() {
    std::map<std::pair<std::size_t, std::size_t>, std::queue<At>> sends;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t i = 0; i < ranks_[r].nodes.size(); ++i)
        if (const Step& step = ranks_[r].nodes[i].step; step.kind == StepKind::send)
          sends[{r, static_cast<std::size_t>(step.peer)}].push({r, i});
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t i = 0; i < ranks_[r].nodes.size(); ++i) {
        Node& at = ranks_[r].nodes[i];
        if (at.step.kind != StepKind::recv) continue;
        auto& from = sends[{static_cast<std::size_t>(at.step.peer), r}];
        ECHELON_CHECK(!from.empty(), "rank {} waits for a message that rank {} does not send", r, at.step.peer);
        at.other = from.front();
        node(at.other).other = {r, i};
        from.pop();
      }
  }

  void push(double time_s, At at, bool ends) { events_.push({time_s, order_++, at, ends}); }

  // Nothing is missing any more. A message begins once that is so at both ends.
  void offer(At at, double now_s) {
    Node& here = node(at);
    here.ready = true;
    if (!is_message(here.step)) return push(now_s, at, false);
    if (node(here.other).ready) push(now_s, here.step.kind == StepKind::send ? at : here.other, false);
  }

  void begin(At at, double now_s) {
    const Node& here = node(at);
    Rank& rank = ranks_[at.rank];
    const double bytes = static_cast<double>(here.step.range.elems()) * elem_bytes_;
    if (!is_message(here.step)) {
      rank.cpu_free_s = std::max(rank.cpu_free_s, now_s) + bytes / network_.add_bytes_per_s;
      return push(rank.cpu_free_s, at, true);
    }
    const std::size_t to = here.other.rank;
    const bool inside = hosts_[at.rank] == hosts_[to];
    const Link& link = inside ? network_.inside : network_.between;
    double& out_free_s = inside ? rank.out_free_s : cards_[hosts_[at.rank]].out_free_s;
    double& in_free_s = inside ? ranks_[to].in_free_s : cards_[hosts_[to]].in_free_s;
    const double start_s = std::max({now_s, out_free_s, in_free_s});
    out_free_s = in_free_s = start_s + bytes / link.bytes_per_s + link.latency_s / 2;
    const double there_s = start_s + bytes / link.bytes_per_s + link.latency_s;
    push(there_s, at, true);
    push(there_s, here.other, true);
  }

  // One of the steps that `at` waits for is done.
  void one_less_missing(At at, double now_s) {
    if (--node(at).missing == 0) offer(at, now_s);
  }

  void end(At at, double now_s) {
    Rank& rank = ranks_[at.rank];
    rank.nodes[at.index].done = true;
    for (const std::size_t waiting : rank.nodes[at.index].waiting) one_less_missing({at.rank, waiting}, now_s);
    while (rank.done_below < rank.nodes.size() && rank.nodes[rank.done_below].done) ++rank.done_below;
    while (!rank.barriers.empty() && rank.barriers.begin()->first <= rank.done_below) {
      const std::size_t waiting = rank.barriers.begin()->second;
      rank.barriers.erase(rank.barriers.begin());
      one_less_missing({at.rank, waiting}, now_s);
    }
  }

  const std::vector<int>& hosts_;
  const Network& network_;
  double elem_bytes_;
  std::vector<Rank> ranks_;
  std::map<int, Card> cards_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t order_ = 0;
  std::size_t total_ = 0;
};

}  // namespace

double plan_time_s(const std::vector<std::shared_ptr<const Plan>>& plans, const std::vector<int>& hosts,
                   const Network& network, std::size_t elem_bytes) {
  ECHELON_CHECK_EQ(plans.size(), hosts.size());
  return VirtualRun(plans, hosts, network, elem_bytes).run();
}

}  // namespace echelon::inline comm

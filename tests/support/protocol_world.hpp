// Machines of protocols on virtual time: one actor a rank, without engine or threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/protocol/driver.hpp"
#include "comm/virtual/world.hpp"

namespace echelon::test {

// A machine, its host and its transport. What the host does by itself (a step's compute, say) it schedules with `at`.
class ProtocolActor final : public VirtualActor {
 public:
  // `over`: whether this rank is done. `sends`: the budget of sends under way.
  ProtocolActor(std::unique_ptr<Transport> transport, Machine& machine, ProtocolHost& host, std::function<bool()> over,
                int sends = 8);
  ~ProtocolActor() override;

  bool pass() override;
  bool done() const override { return over_() && !driver_.busy(); }
  double wakes_at_s() const override;

  void post(Token token) { driver_.post(token); }
  // Calls `what` at this virtual time, or at once where it has passed.
  void at(double time_s, std::function<void()> what) { plans_.emplace(time_s, std::move(what)); }
  double now_s() const { return transport_->clock().now_s(); }
  const WireCounters& wire() const { return driver_.wire(); }
  std::vector<ProtocolWait> waits() const { return driver_.waits(); }

 private:
  std::unique_ptr<Transport> transport_;
  ProtocolDriver driver_;
  SendBudget budget_;
  std::function<bool()> over_;
  std::multimap<double, std::function<void()>> plans_;
};

// A protocol on all ranks of a virtual network, run until each is done. Rank r is Rank(args..., r, world), and its
// `actor` points to its ProtocolActor. The constructor throws what a rank throws, and an EnvironmentError where the
// ranks wait for ever or are not done after 10 s of virtual time.
template <class Rank>
class ProtocolRun {
 public:
  template <class... Args>
  ProtocolRun(int ranks, const VirtualNetwork& network, const Args&... args) : world_(ranks, network) {
    std::vector<VirtualActor*> actors;
    for (int r = 0; r < ranks; ++r) {
      ranks_.push_back(std::make_unique<Rank>(args..., r, world_));
      actors.push_back(&*ranks_.back()->actor);
    }
    world_.run(actors, 10);
  }
  const std::vector<std::unique_ptr<Rank>>& ranks() const { return ranks_; }

 private:
  VirtualWorld world_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace echelon::test

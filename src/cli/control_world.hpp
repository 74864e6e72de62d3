// SPDX-License-Identifier: Apache-2.0
// Ranks on virtual time that measure the cost of control (control_bench.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cli/control_bench.hpp"
#include "cli/metered.hpp"
#include "comm/virtual/protocol_actor.hpp"

namespace echelon::cli {

// The time of a link, whatever its message, so that the time of a chain is its number of links.
inline constexpr double kLink_s = 1e-3;

// A rank with one machine. It is done once it has received the requested notices and reached the requested time.
class MachineRank final : public VirtualActor, private ProtocolHost {
 public:
  MachineRank(VirtualWorld& world, int rank, const std::function<std::unique_ptr<Machine>(int rank)>& make);

  template <class Kind>
  Kind& machine() {
    return static_cast<Kind&>(*machine_);
  }
  void post(Token token) { actor_->post(token); }
  void at(double time_s, std::function<void()> what) { actor_->at(time_s, std::move(what)); }
  void await(int notices) { expected_ = notices_ + notices; }
  void await_time(double until_s) { until_s_ = until_s; }

  bool pass() override;
  bool done() const override { return notices_ >= expected_ && actor_->now_s() >= until_s_; }
  double wakes_at_s() const override;
  const Meter& meter() const { return meter_; }
  WireCounters counters() const { return transport_->counters(); }

 private:
  void on_notified(Token, double) override { ++notices_; }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  Meter meter_;
  Transport* transport_ = nullptr;  // owned by the actor
  std::unique_ptr<Machine> machine_;
  std::optional<ProtocolActor> actor_;
  std::int64_t notices_ = 0, expected_ = 0;
  double until_s_ = 0;
};

class MachineWorld {
 public:
  MachineWorld(int ranks, const std::function<std::unique_ptr<Machine>(int rank)>& make);

  int size() const { return world_.ranks(); }
  MachineRank& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  double now_s() const { return world_.clock().now_s(); }
  void run();
  // Measures `rounds` calls of `round`, which must end with run(), after a first call that does not count.
  ControlCost measure(std::string part, std::string unit, int rounds, const std::function<void()>& round);
  // Returns the links until all ranks have been notified once of the operation that `begin` starts.
  int links_of(const std::function<void()>& begin);

 private:
  VirtualWorld world_;
  std::vector<std::unique_ptr<MachineRank>> ranks_;
  std::vector<VirtualActor*> actors_;
};

VirtualNetwork network_of_links();
BusiestAndMean over_ranks(const std::vector<double>& by_rank);
double median_of(std::vector<double> values);

}  // namespace echelon::cli

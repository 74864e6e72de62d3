// SPDX-License-Identifier: Apache-2.0
// Runs the machine of a protocol (comm/protocol/machine.hpp) with its host as the program of a rank on virtual time,
// without an engine or threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/protocol/driver.hpp"
#include "comm/virtual/world.hpp"

namespace echelon::inline comm {

// The host schedules its own work (for example the compute of a step) with `at`.
class ProtocolActor final : public VirtualActor {
 public:
  static constexpr int kSends = 8;

  // `over` returns whether this rank is done. `sends` and `short_bytes` are the parameters of SendBudget; for
  // `frame_bytes` see ProtocolDriver.
  ProtocolActor(std::unique_ptr<Transport> transport, Machine& machine, ProtocolHost& host, std::function<bool()> over,
                int sends = kSends, std::size_t frame_bytes = kFrameBytes, double short_bytes = SendBudget::kShort);
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
  double moved_s_ = 0;  // time of the last progress
};

}  // namespace echelon::inline comm

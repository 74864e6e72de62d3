// SPDX-License-Identifier: Apache-2.0
// Runs a plan with its executor as the program of a rank on virtual time.
#pragma once

#include <memory>

#include "comm/collective/executor.hpp"
#include "comm/virtual/world.hpp"

namespace echelon::inline comm {

class PlanActor final : public VirtualActor {
 public:
  // `data` has the meaning of Executor::start.
  PlanActor(std::unique_ptr<Transport> transport, std::shared_ptr<const Plan> plan, void* data, DType dtype, int tag,
            int window = 16)
      : transport_(std::move(transport)), executor_(window) {
    executor_.start(std::move(plan), data, dtype, tag);
  }

  bool pass() override { return !done() && executor_.advance(*transport_); }
  bool done() const override { return executor_.done(); }
  double wakes_at_s() const override { return transport_->wakes_at_s(); }

 private:
  std::unique_ptr<Transport> transport_;
  Executor executor_;
};

}  // namespace echelon::inline comm

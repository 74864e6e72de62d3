// SPDX-License-Identifier: Apache-2.0
// Runs the steps of one plan that work on memory shared by the ranks of a host (plan.hpp: put, sum, get). Used by the
// executor, on the thread that drives.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/plan.hpp"
#include "comm/shared_channel.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

class SharedSteps {
 public:
  static constexpr int kDone = -2, kUnknown = -1;

  // `data` is the caller's buffer. All arguments outlive the run of the plan.
  void start(const Plan& plan, void* data, DType dtype, int tag);
  // Runs the next step on shared memory in the plan's order and returns kDone, or returns the rank that it waits for
  // (kUnknown if that is not known). Polls the memory for about a microsecond; never blocks. Throws what
  // Transport::shared_channel throws.
  int run(const Step& step, Transport& transport);
  // To be called once all steps of the plan are done.
  void finish();

 private:
  int missing(const Step& step) const;
  int wait_briefly(const Step& step) const;
  template <class T>
  void carry_out(const Step& step);
  template <class T>
  void sum(T* buffer, T* kept, std::int64_t elems);

  const SharedUse* use_ = nullptr;
  SharedChannel* channel_ = nullptr;  // null before the first step
  std::byte* data_ = nullptr;
  DType dtype_ = DType::f32;
  int tag_ = 0, me_ = 0;
  std::vector<const void*> terms_;
};

}  // namespace echelon::inline comm

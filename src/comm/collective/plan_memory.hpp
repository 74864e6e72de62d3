// SPDX-License-Identifier: Apache-2.0
// The memory of one plan in flight: the caller's buffer, the slots of the plan and, for encoded values, the messages of
// both. Used only by the executor, on the thread that drives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/plan.hpp"
#include "comm/collective/wire_form.hpp"

namespace echelon::inline comm {

// Memory that grows if it is too small and never shrinks, for one plan after another.
class Scratch {
 public:
  // Returns at least `bytes` bytes at a multiple of 64; growing loses the content. Throws MemoryError, which names
  // `plan`.
  std::byte* reserve(std::size_t bytes, std::string_view plan);
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

class PlanMemory {
 public:
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  // `form` null: values are sent unencoded. Reserves in `scratch`, which no other plan in flight may use, slots *
  // slot_elems values, or their most_bytes with a form; a form that is in_place also needs the most_bytes of the whole
  // buffer. All arguments outlive the run of the plan. Throws MemoryError. Calls form->begin if the plan has steps;
  // `finish` calls form->finish.
  void start(const Plan& plan, void* data, DType dtype, WireForm* form, Scratch& scratch);
  void finish();

  // Returns the message of a send. If `same_bytes` is above 0, exactly this range is already in flight in a message of
  // that length, which is sent again without encoding.
  Block outgoing(const Step& step, std::size_t same_bytes);
  // Whether the step's message is in memory that is also used by messages of overlapping ranges.
  bool shares_messages(const Step& step) const { return form_ && step.slot < 0; }
  // `incoming` returns the memory for the message of a receive. `arrived` decodes the message, or notes its length; it
  // returns false where the length is not valid for this range.
  Block incoming(const Step& step);
  bool arrived(const Step& step, std::size_t bytes);

  void reduce(const Step& step);
  void copy(const Step& step);
  void* buffer(const Step& step) const { return data_ + static_cast<std::size_t>(step.range.begin) * size_of(dtype_); }

 private:
  std::byte* slot(const Step& step) const { return slots_ + static_cast<std::size_t>(step.slot) * slot_bytes_; }
  std::byte* image(const Step& step) const { return image_ + form_->most_bytes(step.range.begin); }
  std::size_t plain_bytes(const Step& step) const {
    return static_cast<std::size_t>(step.range.elems()) * size_of(dtype_);
  }
  std::size_t& filled(const Step& step) { return filled_[static_cast<std::size_t>(step.slot)]; }

  std::byte* data_ = nullptr;
  DType dtype_ = DType::f32;
  WireForm* form_ = nullptr;
  std::size_t slot_bytes_ = 0;
  std::vector<std::size_t> filled_;  // length of the message in each slot
  std::byte* slots_ = nullptr;
  std::byte* image_ = nullptr;  // memory for the messages of the buffer's ranges
};

}  // namespace echelon::inline comm

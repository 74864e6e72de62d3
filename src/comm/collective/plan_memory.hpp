// The memory of one plan under way: the buffer of the caller, the slots of the plan, and, where values are coded, the
// messages of both. Used by the executor alone, on the thread that drives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/plan.hpp"
#include "comm/collective/wire_form.hpp"

namespace echelon::inline comm {

class PlanMemory {
 public:
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  // Scratch bytes that `start` needs: slots * slot_elems values, or their most_bytes with a form; a form that is
  // in_place needs the most_bytes of the whole buffer on top.
  static std::size_t bytes_for(const Plan& plan, DType dtype, const WireForm* form);

  // `form` null: values are sent as they are. Scratch grows where it is too small and never shrinks. All arguments
  // outlive the plan's run. Throws MemoryError. Calls form->begin; `finish` calls form->finish.
  void start(const Plan& plan, void* data, DType dtype, WireForm* form);
  void finish();

  // The message of a send. `same_bytes` above 0: exactly this range is under way already, in a message of that length,
  // which is sent again without encoding.
  Block outgoing(const Step& step, std::size_t same_bytes);
  // Whether the step's message lies in memory that messages of overlapping ranges use too.
  bool shares_messages(const Step& step) const { return form_ && step.slot < 0; }
  // Room for the message of a receive; and, once it is there, decoding it or noting its length. False: its length is
  // not possible for this range.
  Block incoming(const Step& step);
  bool arrived(const Step& step, std::size_t bytes);

  void reduce(const Step& step);
  void copy(const Step& step);
  void* buffer(const Step& step) const { return data_ + static_cast<std::size_t>(step.range.begin) * size_of(dtype_); }

  std::size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::byte* slot(const Step& step) const { return scratch_.get() + static_cast<std::size_t>(step.slot) * slot_bytes_; }
  std::byte* image(const Step& step) const { return image_ + form_->most_bytes(step.range.begin); }
  std::size_t plain_bytes(const Step& step) const {
    return static_cast<std::size_t>(step.range.elems()) * size_of(dtype_);
  }
  std::size_t& filled(const Step& step) { return filled_[static_cast<std::size_t>(step.slot)]; }

  std::byte* data_ = nullptr;
  DType dtype_ = DType::f32;
  WireForm* form_ = nullptr;
  std::size_t slot_bytes_ = 0;
  std::vector<std::size_t> filled_;  // by slot: the length of the message in it
  std::byte* image_ = nullptr;       // of the buffer: where its ranges' messages lie
  std::unique_ptr<std::byte, Free> scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace echelon::inline comm

// The wire format of a plan's messages, where it is not the plain values.
//
// The executor keeps slots in wire form: `copy` into a slot encodes, `copy` out of it decodes, `reduce` decodes and
// adds, what is received into a slot or sent from one stays as it is. A message of a range of the buffer is encoded
// when it is sent and decoded when it has come. So any plan of point-to-point messages can carry any form with
// in_place(); sums are always computed on decoded values.
//
// That all ranks end with identical bits rests on two rules: encode replaces the values by those that others will
// decode, and encoding what was decoded gives the same message again.
//
// One call at a time, from the thread that drives the engine or, where helped(), from one that helps it; none may
// block. What they throw ends the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/collective/plan.hpp"

namespace echelon::inline comm {

class WireForm {
 public:
  virtual ~WireForm() = default;
  virtual std::string_view name() const = 0;
  // Values of the whole buffer.
  virtual std::int64_t elems() const = 0;
  // No message of n values is longer. Where `in_place`, proportional to n.
  virtual std::size_t most_bytes(std::int64_t n) const = 0;
  virtual bool exact_size() const = 0;  // nor shorter
  // Messages may be of any range of the buffer; else only plans whose messages are all in slots (direct) can be run.
  virtual bool in_place() const = 0;

  // Threads that help the engine (comm/helper_threads.hpp) may make the calls of copies and sums.
  virtual bool helped() const { return false; }

  // Of the buffer, before the first step and after the last.
  virtual void begin(void* buffer) = 0;
  virtual void finish(void* buffer) = 0;

  // `values` are those of `range`; `sum`: summed over all ranks already. Returns the message's length.
  virtual std::size_t encode(void* values, ElemRange range, bool sum, std::byte* wire) = 0;
  virtual void decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) = 0;
  virtual void decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) = 0;
};

}  // namespace echelon::inline comm

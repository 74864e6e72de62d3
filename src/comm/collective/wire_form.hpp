// SPDX-License-Identifier: Apache-2.0
// The wire format of a plan's messages, where it differs from the plain values.
//
// The executor keeps slots in wire form: `copy` into a slot encodes, `copy` out of it decodes, `reduce` decodes and
// adds. A message that is received into a slot or sent from one is left as it is. A message of a range of the buffer is
// encoded when it is sent and decoded when it has arrived. So any plan of point-to-point messages can carry any form
// with in_place(); sums are always computed on decoded values.
//
// All ranks end with identical bits because of two rules: encode replaces the values by those that others will decode,
// and encoding decoded values gives the same message again.
//
// Calls are made one at a time, by the thread that drives the engine or, where helped(), by one of its helpers; none
// may block. An exception from any of them ends the job.
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
  // Number of values of the whole buffer.
  virtual std::int64_t elems() const = 0;
  // The longest message of n values. Where `in_place`, it is proportional to n.
  virtual std::size_t most_bytes(std::int64_t n) const = 0;
  virtual bool exact_size() const = 0;  // no message of n values is shorter either
  // Whether messages may be of any range of the buffer; if not, only plans that send from slots only (direct) can be
  // run.
  virtual bool in_place() const = 0;

  // Whether threads that help the engine (comm/helper_threads.hpp) may make the calls for copies and sums.
  virtual bool helped() const { return false; }

  // Called with the buffer before the first step and after the last.
  virtual void begin(void* buffer) = 0;
  virtual void finish(void* buffer) = 0;

  // `values` are those of `range`; `sum` states that they are already summed over all ranks. Returns the message's
  // length.
  virtual std::size_t encode(void* values, ElemRange range, bool sum, std::byte* wire) = 0;
  virtual void decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) = 0;
  virtual void decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) = 0;
};

}  // namespace echelon::inline comm

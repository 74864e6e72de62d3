// SPDX-License-Identifier: Apache-2.0
// Values as a device stores them: rounded to a dtype, laid out, and surrounded by guards that must not change.
#pragma once

#include <cstddef>
#include <vector>

#include "device/device.hpp"

namespace echelon::verify {

using Bytes = std::vector<std::byte>;

// The reference device, shared by all tests of one thread.
Device& oracle();

// Rounds values to the nearest values of `dtype`.
std::vector<double> rounded(std::vector<double> values, DType dtype);
// Convert plain values to the bytes of a tensor in `layout` (padding is zero), and back, by the oracle's reorder.
Bytes to_stored(const std::vector<double>& plain, DType dtype, const Shape& shape, Layout layout);
std::vector<double> from_stored(const Bytes& stored, DType dtype, const Shape& shape, Layout layout);

// One argument in device memory between two guards, `offset` bytes past the alignment of the device's memory.
class Guarded {
 public:
  Guarded(Device& device, const Bytes& content, std::size_t offset);
  void* data() const { return memory_.bytes_at(kGuard + offset_); }
  Bytes content() const;
  bool guards_hold() const;

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kMark{0xA5};
  Bytes image() const;
  Device& device_;
  std::size_t bytes_, offset_;
  Memory memory_;
};

}  // namespace echelon::verify

// SPDX-License-Identifier: Apache-2.0
// The residual of a rank: the values that a lossy codec has left out of its messages, element by element of the arenas.
// They are added to the values that are encoded next. The residual is in host memory, or in that of a device that
// encodes by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/state.hpp"
#include "device/arenas.hpp"
#include "exchange/residual_state.hpp"

namespace echelon::inline exchange {

class Residual {
 public:
  Residual() = default;  // empty: nothing is lost
  explicit Residual(std::int64_t elems, DType dtype = DType::f32)
      : dtype_(dtype), values_(static_cast<std::size_t>(elems) * size_of(dtype)) {}
  // In the device's memory, counted as `tag`.
  Residual(Device& device, std::int64_t elems, DType dtype = DType::f32, std::string_view tag = "codec residual")
      : dtype_(dtype),
        device_(&device),
        memory_(device.allocate(static_cast<std::size_t>(elems) * size_of(dtype), tag)) {}

  bool empty() const { return values_.empty() && !memory_.data(); }
  bool on_device() const { return memory_.data() != nullptr; }
  // The address of this element of the arenas, in host or device memory.
  std::byte* at(std::int64_t elem) {
    return (on_device() ? static_cast<std::byte*>(memory_.data()) : values_.data()) +
           static_cast<std::size_t>(elem) * size_of(dtype_);
  }
  // The values on the host, which must be f32; empty if the residual is not there.
  std::span<float> on_host(ArenaRange range) {
    if (values_.empty()) return {};
    return {reinterpret_cast<float*>(at(range.begin)), static_cast<std::size_t>(range.elems())};
  }

  void clear(ArenaRange range);
  // The sum of squares on the host; 0 if the residual is not there.
  double squares(ArenaRange range);
  // For values that this rank does not send: adds the residual to the values of a device, and clears it.
  void release(Device& device, void* values, ArenaRange range);
  // Visits "<prefix>/<parameter>", one row per replica, without running statistics; another number of replicas reads
  // the sum of the rows, divided.
  void visit(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, ReplicaPosition position);

 private:
  DType dtype_ = DType::f32;
  std::vector<std::byte> values_;
  Device* device_ = nullptr;
  Memory memory_;
};

}  // namespace echelon::inline exchange

// The residual of a rank: what a lossy codec has left out of its messages,
// value by value of the arenas, and what is added to the values that are
// encoded next. In host memory, or in that of a device that encodes by itself.
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
  Residual() = default;  // nothing is lost, and nothing kept
  explicit Residual(std::int64_t elems, DType dtype = DType::f32)
      : dtype_(dtype), values_(static_cast<std::size_t>(elems) * size_of(dtype)) {}
  Residual(Device& device, std::int64_t elems)
      : device_(&device), memory_(device.allocate(static_cast<std::size_t>(elems) * sizeof(float), "codec residual")) {}

  bool empty() const { return values_.empty() && !memory_.data(); }
  bool on_device() const { return memory_.data() != nullptr; }
  // From this element of the arenas on, wherever it lies.
  std::byte* at(std::int64_t elem) {
    return (on_device() ? static_cast<std::byte*>(memory_.data()) : values_.data()) +
           static_cast<std::size_t>(elem) * size_of(dtype_);
  }
  // On the host, f32; empty where nothing is kept there.
  std::span<float> on_host(ArenaRange range) {
    if (values_.empty()) return {};
    return {reinterpret_cast<float*>(at(range.begin)), static_cast<std::size_t>(range.elems())};
  }

  void clear(ArenaRange range);
  // The sum of squares on the host; 0 where nothing is kept there.
  double squares(ArenaRange range);
  // Of what is not sent from here: values of a device += residual; residual =
  // 0.
  void release(Device& device, void* values, ArenaRange range);
  // As visit_residual.
  void visit(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, ReplicaPosition place);

 private:
  DType dtype_ = DType::f32;
  std::vector<std::byte> values_;
  Device* device_ = nullptr;
  Memory memory_;
};

}  // namespace echelon::inline exchange

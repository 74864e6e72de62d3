// How signatures are put together: op_spec.cpp, and sequence_args.cpp for what works on sequences.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "device/op_spec.hpp"

namespace echelon::inline device {

// Builds the argument list of one spec; the methods read like the table in op_spec.hpp.
class Signature {
 public:
  explicit Signature(DType dtype) : dtype_(dtype) {}

  Signature& in(std::string_view name, const Shape& shape) { return put(name, ArgRole::input, shape, dtype_); }
  Signature& in(std::string_view name, const Shape& shape, DType dtype) {
    return put(name, ArgRole::input, shape, dtype);
  }
  Signature& out(std::string_view name, const Shape& shape) { return put(name, ArgRole::output, shape, dtype_); }
  Signature& out(std::string_view name, const Shape& shape, DType dtype) {
    return put(name, ArgRole::output, shape, dtype);
  }
  Signature& in_part() { return args_.back().in_part = true, *this; }
  Signature& adds() { return args_.back().adds = true, *this; }
  Signature& parameter() { return args_.back().parameter = true, wide(); }
  // f32 where activations are halves: parameters and their gradients.
  Signature& wide() { return args_.back().dtype = wide_of(args_.back().dtype), *this; }
  // An activation; only one of four axes has other layouts.
  Signature& movable() { return args_.back().movable = args_.back().shape.rank() == 4, *this; }

  std::vector<ArgInfo> take() {
    ECHELON_CHECK_LE(args_.size(), static_cast<std::size_t>(kMaxArgs), "kMaxArgs in op_spec.hpp is too small");
    return std::move(args_);
  }

 private:
  Signature& put(std::string_view name, ArgRole role, const Shape& shape, DType dtype) {
    args_.push_back({name, role, shape, dtype});
    return *this;
  }
  DType dtype_;
  std::vector<ArgInfo> args_;
};

[[noreturn]] inline void wrong_dims(const OpSpec& spec) {
  check_failed(__FILE__, __LINE__, "the dims belong to the kind", {}, std::string(name_of(spec.kind)));
}

void add_args(Signature& sig, const OpSpec& spec, const AttentionDims& d);
void add_args(Signature& sig, const OpSpec& spec, const SequencePoolDims& d);
void add_args(Signature& sig, const OpSpec& spec, const BroadcastDims& d);
void add_args(Signature& sig, const OpSpec& spec, const RnnDims& d);
void add_args(Signature& sig, const OpSpec& spec, const RnnStepDims& d);
void add_args(Signature& sig, const OpSpec& spec, const PlaceStepDims& d);
void add_args(Signature& sig, const OpSpec& spec, const EmbeddingDims& d);

}  // namespace echelon::inline device

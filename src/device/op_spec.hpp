// SPDX-License-Identifier: Apache-2.0
// Specifies what an op computes: its kind, dtype, extents, and the layouts of its activations. A plain value that is
// known before any memory is allocated.
//
// A device can build an op from its spec alone (Device::make), and a caller or a test can feed it from
// `signature(spec)` alone: the name, shape, dtype and direction of each argument, in order. Ops come in families, which
// share dims, code and a header: device/ops/<family>.hpp has the formula, the kinds with their arguments, and the
// paper; device/ops/list.hpp lists the families.
//
// Conventions that hold for every kind
//   * Dimension letters are those of base/dims.hpp. All extents are those of one micro-batch on one rank; none is 0.
//   * Everything is in the spec's dtype unless the family's header says otherwise.
//   * Gradients are sums over samples (never means); the factor 1/W enters once, in the loss's backward (`scale`).
//   * An output marked `adds` is overwritten, or added to if its bit in OpArgs::accumulate is set. Every implementation
//     supports both.
//   * An output may share the memory of an input only if the family's header allows it, and if it does not add.
//   * An output `in_part` keeps its content except for the step of a sequence that the op writes.
//   * `saved` is memory in the device's own format that a forward op leaves for its backward twin on that device (the
//     positions of a max pool, a library's workspace); `scratch` lives for one call and is shared by all ops of a
//     program.
//
// Mixed precision: in a spec of f16 or bf16, parameters and their gradients are f32, activations and their gradients
// are halves, and sums are computed in f32 or f64. Device::has tells which kinds a device computes in this way.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.hpp"
#include "device/arg_info.hpp"
#include "device/layout.hpp"
#include "device/ops/list.hpp"

namespace echelon::inline device {

enum class OpKind : std::uint8_t {
#define X(kind) kind,
#define F(family, family_dims, kinds) kinds
  ECHELON_OP_FAMILIES(F)
#undef F
#undef X
};

std::string_view name_of(OpKind kind);
// All kinds, in the order of the list.
std::vector<OpKind> all_op_kinds();

// Whether mixed precision computes a kind in halves. Losses, and the steps of recurrent layers that are split over
// ranks, compute in f32.
bool computes_in_halves(OpKind kind);

// The dims of any family: std::variant<ConvDims, PoolDims, ..>. `First` stands for the empty text before the list's
// first comma.
template <class First, class... FamilyDims>
using VariantBehind = std::variant<FamilyDims...>;
#define F(family, family_dims, kinds) , family_dims
using Dims = VariantBehind<void ECHELON_OP_FAMILIES(F)>;
#undef F

struct OpSpec {
  OpKind kind;
  DType dtype = DType::f32;  // f32, f64; f16 and bf16 if the device supports them
  Dims dims;
  std::array<Layout, kMaxArgs> layouts{};  // by argument; not plain only if ArgInfo::movable

  // "conv_forward f32 N64 C1 H28 W28 K32 3x3 pad 1": kind and extents; a reorder, whose work they are, also has
  // layouts. Distinguishes specs that differ in work; tables of paced devices are keyed by it. Throws as signature()
  // does.
  std::string text() const;
  friend bool operator==(const OpSpec&, const OpSpec&) = default;
};

// Arguments in order, inputs first. Throws Error (a defect) for dims that no op has: a window larger than its image, an
// empty tensor, the dims of another family.
std::vector<ArgInfo> signature(const OpSpec& spec);

// Floating-point operations of one run, by formula: 2 * multiply-adds; elementwise kinds count one per element.
double flops(const OpSpec& spec);
// Bytes of a run, by formula: each argument is read or written once.
double traffic_bytes(const OpSpec& spec);

}  // namespace echelon::inline device

// SPDX-License-Identifier: Apache-2.0
#include "device/op_spec.hpp"

#include <fmt/format.h>

#include "base/check.hpp"

namespace echelon::inline device {
namespace {

[[noreturn]] void wrong_dims(OpKind kind) {
  check_failed(__FILE__, __LINE__, "the dims must belong to the kind", {}, std::string(name_of(kind)));
}

// One overload per family: the part common to its kinds, then that of the kind.
#define X(kind_)      \
  case OpKind::kind_: \
    dims.common(op);  \
    return dims.kind_(op);
#define F(family, family_dims, kinds)                                      \
  void describe(OpDescription& op, OpKind kind, const family_dims& dims) { \
    switch (kind) {                                                        \
      default: wrong_dims(kind); kinds                                     \
    }                                                                      \
  }
ECHELON_OP_FAMILIES(F)
#undef F
#undef X

OpDescription description(const OpSpec& spec) {
  OpDescription op(spec.dtype, spec.layouts);
  std::visit([&](const auto& dims) { describe(op, spec.kind, dims); }, spec.dims);
  return op;
}

// Families compute in halves unless their dims declare otherwise.
template <class FamilyDims>
constexpr bool in_halves() {
  if constexpr (requires { FamilyDims::kInHalves; })
    return FamilyDims::kInHalves;
  else
    return true;
}

}  // namespace

std::string_view name_of(OpKind kind) {
  switch (kind) {
#define X(name)      \
  case OpKind::name: \
    return #name;
#define F(family, family_dims, kinds) kinds
    ECHELON_OP_FAMILIES(F)
#undef F
#undef X
  }
  return "?";
}

std::vector<OpKind> all_op_kinds() {
  return {
#define X(name) OpKind::name,
#define F(family, family_dims, kinds) kinds
      ECHELON_OP_FAMILIES(F)
#undef F
#undef X
  };
}

bool computes_in_halves(OpKind kind) {
  switch (kind) {
#define X(name) case OpKind::name:
#define F(family, family_dims, kinds) kinds return in_halves<family_dims>();
    ECHELON_OP_FAMILIES(F)
#undef F
#undef X
  }
  return true;
}

std::string OpSpec::text() const {
  return fmt::format("{} {} {}", name_of(kind), name_of(dtype), description(*this).text());
}

std::vector<ArgInfo> signature(const OpSpec& spec) {
  std::vector<ArgInfo> args = description(spec).take_args();
  ECHELON_CHECK_LE(args.size(), static_cast<std::size_t>(kMaxArgs), "kMaxArgs in device/arg_info.hpp is too small");
  for (const ArgInfo& arg : args)
    ECHELON_CHECK_GT(arg.shape.elems(), 0, "argument {} of {} is empty", arg.name, spec.text());
  return args;
}

double flops(const OpSpec& spec) { return description(spec).flops(); }

double traffic_bytes(const OpSpec& spec) { return description(spec).traffic_bytes(); }

}  // namespace echelon::inline device

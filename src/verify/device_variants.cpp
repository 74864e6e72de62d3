// SPDX-License-Identifier: Apache-2.0
#include "verify/device_variants.hpp"

#include <algorithm>
#include <set>

#include "verify/device_contract.hpp"

namespace echelon::verify {
namespace {

OpSpec with_inputs_in(const OpSpec& spec, Layout layout) {
  OpSpec asked = spec;
  const auto args = signature(spec);
  for (std::size_t a = 0; a < args.size(); ++a)
    asked.layouts[a] = args[a].movable && args[a].role == ArgRole::input ? layout : Layout::plain;
  return asked;
}

// Every layout that some op of the device asks for, starting from plain ones, until no new one appears.
std::set<Layout> device_layouts(const Device& device, DType dtype) {
  std::set<Layout> known = {Layout::plain}, asked;
  const std::vector<OpSpec> specs = contract_specs(dtype);
  while (asked != known) {
    const std::set<Layout> ask = known;
    for (Layout layout : ask)
      for (const OpSpec& spec : specs)
        if (spec.kind != OpKind::reorder)
          for (Layout wished : device.layouts(with_inputs_in(spec, layout)).layouts) known.insert(wished);
    asked = ask;
  }
  return known;
}

}  // namespace

std::vector<OpSpec> variants(const Device& device, const OpSpec& spec) {
  std::vector<OpSpec> all = {spec};
  if (spec.kind == OpKind::reorder && !signature(spec).front().movable) return all;
  const auto* reorder = std::get_if<ReorderDims>(&spec.dims);
  const std::set<Layout> layouts =
      device_layouts(device, reorder && reorder->from && is_half(*reorder->from) ? *reorder->from : spec.dtype);
  for (Layout from : layouts)
    for (Layout to : layouts) {
      OpSpec variant = spec;
      if (spec.kind == OpKind::reorder)
        variant.layouts = {from, to};
      else
        variant.layouts = device.layouts(with_inputs_in(spec, from)).layouts;
      if (std::find(all.begin(), all.end(), variant) == all.end()) all.push_back(variant);
    }
  return all;
}

}  // namespace echelon::verify

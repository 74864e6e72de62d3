// SPDX-License-Identifier: Apache-2.0
#include "model/measured_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "device/arenas.hpp"
#include "model/build.hpp"
#include "model/least_profile.hpp"
#include "model/program.hpp"

namespace echelon::inline model {
namespace {

constexpr double kMostFlops = 4e9, kLeastGain = 0.03;

bool has_convolutions(const std::vector<OpReport>& ops) {
  return std::any_of(ops.begin(), ops.end(),
                     [](const OpReport& op) { return std::holds_alternative<ConvDims>(op.spec.dims); });
}

// Empty for a model without convolutions.
std::vector<OpReport> measure(const Graph& graph, Device& device, DType dtype, std::int64_t batch) {
  Arenas arenas(device, graph.parameters(), wide_of(dtype));
  Program program(graph, arenas, {.batch = batch, .dtype = dtype});
  if (!has_convolutions(program.ops())) return {};
  return least_profile(program);
}

double total(const std::vector<OpReport>& ops) {
  double seconds = 0;
  for (const OpReport& op : ops) seconds += op.seconds;
  return seconds;
}

double seconds_of(const std::vector<OpReport>& ops, const ConvDims& conv) {
  double seconds = 0;
  for (const OpReport& op : ops) {
    const auto* dims = std::get_if<ConvDims>(&op.spec.dims);
    if (dims && *dims == conv) seconds += op.seconds;
  }
  return seconds;
}

std::int64_t measured_batch(const Graph& graph, DType dtype, std::int64_t batch) {
  const ModelCosts costs = model_costs(graph, dtype);
  const double fit = kMostFlops / std::max(1.0, costs.forward_flops + costs.backward_flops);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(fit), 1, batch);
}

}  // namespace

MeasuredLayouts measure_layouts(const Graph& graph, DType dtype, std::int64_t batch,
                                const std::function<std::unique_ptr<Device>(const LayoutTable&)>& open) {
  struct Candidate {
    std::string name;
    LayoutTable table;
    std::vector<OpReport> ops;
  };
  std::vector<Candidate> candidates;
  const std::int64_t samples = measured_batch(graph, dtype, batch);
  const auto add = [&](std::string name, LayoutTable table) {
    const std::unique_ptr<Device> device = open(table);
    candidates.push_back({std::move(name), std::move(table), {}});
    candidates.back().ops = measure(graph, *device, dtype, samples);
  };
  for (const ConvLayout layout : {ConvLayout::rule, ConvLayout::channels_last, ConvLayout::blocked}) {
    add(std::string(name_of(layout)), LayoutTable(layout));
    if (candidates.back().ops.empty()) return {{}, "no convolutions"};
  }

  LayoutTable mixed;
  for (const OpReport& op : candidates.front().ops)
    if (const auto* conv = std::get_if<ConvDims>(&op.spec.dims)) {
      const auto fastest = std::min_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
        return seconds_of(a.ops, *conv) < seconds_of(b.ops, *conv);
      });
      mixed.set(*conv, fastest->table.of(*conv));
    }
  add("each as it was fastest", mixed);

  const auto slower = [](const Candidate& a, const Candidate& b) { return total(a.ops) < total(b.ops); };
  auto best = std::min_element(candidates.begin(), candidates.end(), slower);
  if (total(best->ops) > (1 - kLeastGain) * total(candidates.front().ops)) best = candidates.begin();
  MeasuredLayouts found{best->table, fmt::format("of {}:", counted(samples, "sample"))};
  for (const Candidate& candidate : candidates)
    found.report += fmt::format(" {} {},", candidate.name, seconds_text(total(candidate.ops)));
  found.report.back() = ';';
  found.report += fmt::format(" chosen: {}", best->name);
  return found;
}

}  // namespace echelon::inline model

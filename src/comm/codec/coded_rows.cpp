// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/coded_rows.hpp"

#include <algorithm>

namespace echelon::inline comm {
namespace {

// Counts the tensors that the ranks of one stage hold together as whole: the same on all of them.
std::int64_t elems_of_stage(const ParameterSet& parameters) {
  std::int64_t elems = 0;
  for (const Parameter& parameter : parameters.all())
    if (!parameter.alone) elems += parameter.global_shape.elems();
  return elems;
}

// 0: as it is.
std::int64_t row_of(const Parameter& parameter, std::int64_t all) {
  if (parameter.kind == ParameterKind::statistic) return parameter.elems();
  const std::int64_t whole = parameter.global_shape.elems();
  if (parameter.shape.rank() < 2 || (whole < kLeastCodedTensor && whole * kLeastCodedPart < all)) return 0;
  const std::int64_t row = parameter.elems() / parameter.shape[0];
  return row < kLeastCodedRow ? 0 : row;
}

}  // namespace

std::vector<CodedRun> coded_rows(const ParameterSet& parameters, ArenaRange range) {
  const std::int64_t all = elems_of_stage(parameters);
  std::vector<CodedRun> runs;
  const auto add = [&](std::int64_t elems, std::int64_t row) {
    if (elems == 0) return;
    if (row == 0 && !runs.empty() && runs.back().row == 0)
      runs.back().elems += elems;
    else
      runs.push_back({elems, row});
  };
  for (const Parameter& parameter : parameters.all()) {
    std::int64_t begin = std::max(parameter.begin, range.begin) - parameter.begin;
    const std::int64_t end = std::min(parameter.end(), range.end) - parameter.begin, row = row_of(parameter, all);
    if (begin >= end) continue;
    if (row == 0) {
      add(end - begin, 0);
      continue;
    }
    const auto part = [&](std::int64_t until) {  // adds the run up to `until`, which is inside one row
      const std::int64_t elems = std::min(until, end) - begin;
      add(elems, elems);
      begin += elems;
    };
    if (begin % row > 0) part((begin / row + 1) * row);
    const std::int64_t whole = begin < end ? (end - begin) / row * row : 0;
    add(whole, row);
    begin += whole;
    if (begin < end) part(end);
  }
  return runs;
}

std::size_t onebit_bytes(const ParameterSet& parameters, ArenaRange range) {
  std::size_t bytes = 0;
  for (const CodedRun& run : coded_rows(parameters, range)) bytes += onebit_bytes(run);
  return bytes;
}

}  // namespace echelon::inline comm

// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/update.hpp"
#include "device/update_rules/list.hpp"

namespace echelon::cuda {
namespace {

template <class T, int kStates>
struct States {
  T* at[kStates > 0 ? kStates : 1];
};

template <class Rule, class T>
States<T, Rule::kStates> states_of(std::span<void* const> states) {
  States<T, Rule::kStates> ranges{};
  for (int s = 0; s < Rule::kStates; ++s) ranges.at[s] = static_cast<T*>(states[static_cast<std::size_t>(s)]);
  return ranges;
}

}  // namespace

template <class Rule, class T>
void update_range(T* w, const T* g, std::span<void* const> states, std::size_t n, const RuleScalars& scalars,
                  cudaStream_t stream) {
  States<T, Rule::kStates> ranges = states_of<Rule, T>(states);
  each(static_cast<std::int64_t>(n), stream,
       [=] __device__(std::int64_t i) { Rule::apply(w[i], g[i], ranges.at, static_cast<std::size_t>(i), scalars); });
}

template <class Rule, class T>
void update_rows(T* w, const T* g, std::span<void* const> states, const RowMarks& marks, const RuleScalars& scalars,
                 cudaStream_t stream) {
  States<T, Rule::kStates> ranges = states_of<Rule, T>(states);
  const std::uint32_t* words = marks.words;
  const std::int64_t width = marks.width;
  each(marks.rows * width, stream, [=] __device__(std::int64_t i) {
    if (row_marked(words, i / width)) Rule::apply(w[i], g[i], ranges.at, static_cast<std::size_t>(i), scalars);
  });
}

#define ECHELON_INSTANTIATE_FOR(Rule, T)                                                                        \
  template void update_range<Rule, T>(T*, const T*, std::span<void* const>, std::size_t, const RuleScalars&,    \
                                      cudaStream_t);                                                            \
  template void update_rows<Rule, T>(T*, const T*, std::span<void* const>, const RowMarks&, const RuleScalars&, \
                                     cudaStream_t);
#define ECHELON_INSTANTIATE(Rule) ECHELON_INSTANTIATE_FOR(Rule, float) ECHELON_INSTANTIATE_FOR(Rule, double)
ECHELON_UPDATE_RULES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE
#undef ECHELON_INSTANTIATE_FOR

}  // namespace echelon::cuda

#include "cuda/kernels/each.cuh"
#include "cuda/kernels/update.hpp"
#include "device/update_rules/list.hpp"

namespace echelon::cuda {
namespace {

template <class T, int kStates>
struct States {
  T* at[kStates > 0 ? kStates : 1];
};

}  // namespace

template <class Rule, class T>
void update_range(T* w, const T* g, std::span<void* const> states, std::size_t n, const RuleScalars& scalars,
                  cudaStream_t stream) {
  States<T, Rule::kStates> ranges{};
  for (int s = 0; s < Rule::kStates; ++s) ranges.at[s] = static_cast<T*>(states[static_cast<std::size_t>(s)]);
  each(static_cast<std::int64_t>(n), stream,
       [=] __device__(std::int64_t i) { Rule::apply(w[i], g[i], ranges.at, static_cast<std::size_t>(i), scalars); });
}

#define ECHELON_INSTANTIATE(Rule)                                                                       \
  template void update_range<Rule, float>(float*, const float*, std::span<void* const>, std::size_t,    \
                                          const RuleScalars&, cudaStream_t);                            \
  template void update_range<Rule, double>(double*, const double*, std::span<void* const>, std::size_t, \
                                           const RuleScalars&, cudaStream_t);
ECHELON_UPDATE_RULES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda

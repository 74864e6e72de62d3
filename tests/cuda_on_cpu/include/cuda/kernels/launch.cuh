// SPDX-License-Identifier: Apache-2.0
// Replaces the repository's header of this name: a launch is run to its end before it returns.
#pragma once

#include <cuda_runtime.h>

namespace echelon::cuda {

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t, const A&... args) {
  const auto thread = [&] { kernel(args...); };
  on_cpu::run_grid(
      grid, block, [](const void* body) { (*static_cast<const decltype(thread)*>(body))(); }, &thread);
}

}  // namespace echelon::cuda

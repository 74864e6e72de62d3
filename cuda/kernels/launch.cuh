// SPDX-License-Identifier: Apache-2.0
// The only place that launches kernels. tests/cuda_on_cpu has a header of the same name, which the tests find first; it
// runs the threads on the CPU.
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace echelon::cuda {

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, A&&... args) {
  kernel<<<grid, block, 0, stream>>>(std::forward<A>(args)...);
}

}  // namespace echelon::cuda

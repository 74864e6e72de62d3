// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library (libnvidia-ml.so.1), which comes with the driver and is opened at run time.
#pragma once

namespace echelon::cuda {

// The reasons why this GPU's clocks are reduced (device/throttling.hpp), 0 if nothing is known. `index` is CUDA's.
// Takes about 10 us. Any thread; does not throw.
unsigned throttled(int index);

}  // namespace echelon::cuda

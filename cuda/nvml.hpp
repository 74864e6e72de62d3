// NVIDIA's management library (libnvidia-ml.so.1), which comes with the driver and is opened at run time.
#pragma once

namespace echelon::cuda {

// Why this GPU's clocks are below what they could be (device/throttling.hpp), 0 where nothing is known. `index` as
// CUDA counts. About 10 us. Any thread; nothing throws.
unsigned throttled(int index);

}  // namespace echelon::cuda

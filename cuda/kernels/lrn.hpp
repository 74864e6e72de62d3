// Local response normalisation across channels; formulas in device/op_spec.hpp. T is float or double.
#pragma once

#include <cuda_runtime_api.h>

#include "device/op_spec.hpp"

namespace echelon::cuda {

template <class T>
void lrn_forward(const LrnDims& d, const T* x, T* y, cudaStream_t stream);
// scratch: as many T as x has.
template <class T>
void lrn_backward(const LrnDims& d, const T* x, const T* dy, T* dx, bool add, T* scratch, cudaStream_t stream);

}  // namespace echelon::cuda

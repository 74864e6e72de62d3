// SPDX-License-Identifier: Apache-2.0
// Used instead of nccl.cpp if nccl.h is missing when the library is built.
#include "base/error.hpp"
#include "cuda/nccl.hpp"

namespace echelon::cuda {

std::string nccl_problem() { return "libechelon_cuda.so was built without NCCL, because nccl.h was not found"; }

std::unique_ptr<DeviceAllreduce> make_nccl(const Context&, const DeviceGroup&) {
  throw EnvironmentError(nccl_problem());
}

}  // namespace echelon::cuda

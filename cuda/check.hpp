// SPDX-License-Identifier: Apache-2.0
// Every call of CUDA, cuDNN and cuBLAS is checked. An error is reported with the text of the call, file:line and the
// library's message. Out of memory is a MemoryError, all other errors are EnvironmentErrors.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <string>

namespace echelon::cuda {

void check(cudaError_t status, const char* call, const char* file, int line);
void check(cudnnStatus_t status, const char* call, const char* file, int line);
void check(cublasStatus_t status, const char* call, const char* file, int line);

// Returns whether the work queried by cudaEventQuery or cudaStreamQuery is done (ECHELON_CUDA_PASSED). CUDA keeps the
// answer "not ready" as the thread's last error; it is cleared here, so that check_launch does not find it.
bool passed(cudaError_t query, const char* call, const char* file, int line);

// Called after kernels were launched for `what`: checks the launch itself, not errors that kernels meet later.
void check_launch(const std::string& what);

}  // namespace echelon::cuda

#define ECHELON_CUDA(call) ::echelon::cuda::check((call), #call, __FILE__, __LINE__)
#define ECHELON_CUDA_PASSED(query) ::echelon::cuda::passed((query), #query, __FILE__, __LINE__)

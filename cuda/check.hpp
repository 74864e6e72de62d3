// Every call of CUDA, cuDNN and cuBLAS is checked: its text, file:line and the library's own words for the error.
// Out of memory is a MemoryError, all else an EnvironmentError.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <string>

namespace echelon::cuda {

void check(cudaError_t status, const char* call, const char* file, int line);
void check(cudnnStatus_t status, const char* call, const char* file, int line);
void check(cublasStatus_t status, const char* call, const char* file, int line);

// Of cudaEventQuery or cudaStreamQuery (ECHELON_CUDA_PASSED): whether the work is done. The answer that it is not stays
// behind in the thread as if it were an error, and is taken away here, so that check_launch does not find it.
bool passed(cudaError_t query, const char* call, const char* file, int line);

// After kernels were launched for `what`: the launch itself, not what the kernels find later.
void check_launch(const std::string& what);

}  // namespace echelon::cuda

#define ECHELON_CUDA(call) ::echelon::cuda::check((call), #call, __FILE__, __LINE__)
#define ECHELON_CUDA_PASSED(query) ::echelon::cuda::passed((query), #query, __FILE__, __LINE__)

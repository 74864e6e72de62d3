// SPDX-License-Identifier: Apache-2.0
// A context has a cuDNN handle even if nothing uses it; no op of this ring does.
#pragma once

#include <cuda_runtime_api.h>

using cudnnHandle_t = struct cudnnContext*;
enum cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4002,
  CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4003
};

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
const char* cudnnGetErrorString(cudnnStatus_t status);
void cudnnGetLastErrorString(char* text, std::size_t bytes);

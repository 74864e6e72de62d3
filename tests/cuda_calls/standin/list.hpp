// SPDX-License-Identifier: Apache-2.0
// Every call of CUDA's runtime, cuDNN, cuBLAS and NCCL that cuda/ makes, with its kind. The stand-in defines exactly
// these calls: a missing one does not link, and the ring checks that each of them is made.
#pragma once

namespace echelon::calls {

enum class Act {
  sure,  // cannot fail, or reports a failure
  ask,   // changes nothing on the device
  make,  // takes memory, makes an object or sets one
  work,  // enqueues work
  wait,  // returns once the device has done some work
  end,   // destroys an object, even if it reports the error of an earlier call
};

}  // namespace echelon::calls

// X(name, act).
#define ECHELON_CUDA_CALLS(X)                            \
  X(cudaSetDevice, ask)                                  \
  X(cudaGetDeviceCount, ask)                             \
  X(cudaGetDeviceProperties, ask)                        \
  X(cudaDeviceGetAttribute, ask)                         \
  X(cudaGetLastError, sure)                              \
  X(cudaGetErrorString, sure)                            \
  X(cudaGetErrorName, sure)                              \
  X(cudaMemGetInfo, ask)                                 \
  X(cudaMalloc, make)                                    \
  X(cudaFree, end)                                       \
  X(cudaHostAlloc, make)                                 \
  X(cudaFreeHost, end)                                   \
  X(cudaMemcpyAsync, work)                               \
  X(cudaMemsetAsync, work)                               \
  X(cudaIpcGetMemHandle, make)                           \
  X(cudaIpcOpenMemHandle, make)                          \
  X(cudaIpcCloseMemHandle, end)                          \
  X(cudaStreamCreateWithFlags, make)                     \
  X(cudaStreamDestroy, end)                              \
  X(cudaStreamSynchronize, wait)                         \
  X(cudaStreamQuery, ask)                                \
  X(cudaStreamWaitEvent, work)                           \
  X(cudaEventCreateWithFlags, make)                      \
  X(cudaEventDestroy, end)                               \
  X(cudaEventRecord, work)                               \
  X(cudaEventQuery, ask)                                 \
  X(cudaEventSynchronize, wait)                          \
  X(cudaEventElapsedTime, ask)                           \
  X(cudaStreamBeginCapture, make)                        \
  X(cudaStreamEndCapture, end)                           \
  X(cudaGraphInstantiate, make)                          \
  X(cudaGraphLaunch, work)                               \
  X(cudaGraphDestroy, end)                               \
  X(cudaGraphExecDestroy, end)                           \
  X(__cudaPushCallConfiguration, sure)                   \
  X(__cudaPopCallConfiguration, sure)                    \
  X(__cudaGetKernel, sure)                               \
  X(__cudaLaunchKernel, work)                            \
  X(cudnnGetVersion, sure)                               \
  X(cudnnGetErrorString, sure)                           \
  X(cudnnGetLastErrorString, sure)                       \
  X(cudnnCreate, make)                                   \
  X(cudnnDestroy, end)                                   \
  X(cudnnSetStream, make)                                \
  X(cudnnCreateTensorDescriptor, make)                   \
  X(cudnnSetTensor4dDescriptor, make)                    \
  X(cudnnSetTensorNdDescriptor, make)                    \
  X(cudnnDestroyTensorDescriptor, end)                   \
  X(cudnnCreateFilterDescriptor, make)                   \
  X(cudnnSetFilter4dDescriptor, make)                    \
  X(cudnnSetFilterNdDescriptor, make)                    \
  X(cudnnDestroyFilterDescriptor, end)                   \
  X(cudnnCreateConvolutionDescriptor, make)              \
  X(cudnnSetConvolution2dDescriptor, make)               \
  X(cudnnSetConvolutionNdDescriptor, make)               \
  X(cudnnSetConvolutionGroupCount, make)                 \
  X(cudnnSetConvolutionMathType, make)                   \
  X(cudnnDestroyConvolutionDescriptor, end)              \
  X(cudnnGetConvolutionForwardAlgorithm_v7, ask)         \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7, ask)    \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7, ask)  \
  X(cudnnGetConvolutionForwardWorkspaceSize, ask)        \
  X(cudnnGetConvolutionBackwardDataWorkspaceSize, ask)   \
  X(cudnnGetConvolutionBackwardFilterWorkspaceSize, ask) \
  X(cudnnConvolutionForward, work)                       \
  X(cudnnConvolutionBackwardData, work)                  \
  X(cudnnConvolutionBackwardFilter, work)                \
  X(cudnnCreateDropoutDescriptor, make)                  \
  X(cudnnSetDropoutDescriptor, make)                     \
  X(cudnnDestroyDropoutDescriptor, end)                  \
  X(cudnnCreateRNNDescriptor, make)                      \
  X(cudnnSetRNNDescriptor_v8, make)                      \
  X(cudnnDestroyRNNDescriptor, end)                      \
  X(cudnnCreateRNNDataDescriptor, make)                  \
  X(cudnnSetRNNDataDescriptor, make)                     \
  X(cudnnDestroyRNNDataDescriptor, end)                  \
  X(cudnnGetRNNWeightSpaceSize, ask)                     \
  X(cudnnGetRNNTempSpaceSizes, ask)                      \
  X(cudnnGetRNNWeightParams, ask)                        \
  X(cudnnRNNForward, work)                               \
  X(cudnnRNNBackwardData_v8, work)                       \
  X(cudnnRNNBackwardWeights_v8, work)                    \
  X(cublasCreate_v2, make)                               \
  X(cublasDestroy_v2, end)                               \
  X(cublasSetStream_v2, make)                            \
  X(cublasSetWorkspace_v2, make)                         \
  X(cublasSetMathMode, make)                             \
  X(cublasGetStatusString, sure)                         \
  X(cublasGemmEx_64, work)                               \
  X(cublasGemmBatchedEx_64, work)                        \
  X(cublasGemmStridedBatchedEx_64, work)                 \
  X(ncclGetUniqueId, make)                               \
  X(ncclCommInitRank, make)                              \
  X(ncclCommGetAsyncError, ask)                          \
  X(ncclAllReduce, work)                                 \
  X(ncclGetErrorString, sure)                            \
  X(ncclGetLastError, sure)                              \
  X(ncclCommDestroy, end)                                \
  X(ncclCommAbort, end)

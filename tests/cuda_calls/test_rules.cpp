// SPDX-License-Identifier: Apache-2.0
// Breaks each of the stand-in's own rules once on purpose: a rule that would let a wrong call pass fails here.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "tests/cuda_calls/fixture.hpp"

using namespace echelon;
using namespace echelon::test;

// Declared by nvcc's host code; no header of g++ declares it.
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t);

namespace {

// A function of the stand-in: CALL(cudaMalloc, &data, 10).
#define CALL(name, ...) (reinterpret_cast<decltype(&name)>(standin_symbol(#name))(__VA_ARGS__))

constexpr std::size_t kBytes = 1 << 16;

// The valid setup that every misuse begins with.
struct Bench {
  cudaStream_t stream = nullptr, other = nullptr;  // the other one on the first GPU
  cudaEvent_t event = nullptr;
  void *memory = nullptr, *more = nullptr, *work = nullptr, *pinned = nullptr;
  cudnnHandle_t dnn = nullptr;
  cublasHandle_t blas = nullptr;
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
  std::size_t needed = 0;

  Bench() {
    CALL(cudaSetDevice, 0);
    CALL(cudaStreamCreateWithFlags, &other, cudaStreamNonBlocking);
    CALL(cudaSetDevice, kGpu);
    CALL(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
    CALL(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
    for (void** at : {&memory, &more, &work}) CALL(cudaMalloc, at, kBytes);
    CALL(cudaHostAlloc, &pinned, kBytes, cudaHostAllocDefault);
    CALL(cudnnCreate, &dnn);
    CALL(cudnnSetStream, dnn, stream);
    CALL(cublasCreate_v2, &blas);
    CALL(cublasSetStream_v2, blas, stream);
    CALL(cudnnCreateTensorDescriptor, &x);
    CALL(cudnnCreateTensorDescriptor, &y);
    CALL(cudnnCreateFilterDescriptor, &w);
    CALL(cudnnCreateConvolutionDescriptor, &conv);
    CALL(cudnnSetTensor4dDescriptor, x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 8, 8);
    CALL(cudnnSetTensor4dDescriptor, y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 6, 6);
    CALL(cudnnSetFilter4dDescriptor, w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
    CALL(cudnnSetConvolution2dDescriptor, conv, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  }
  ~Bench() {
    CALL(cudaSetDevice, kGpu);
    CALL(cudnnDestroyTensorDescriptor, x);
    CALL(cudnnDestroyTensorDescriptor, y);
    CALL(cudnnDestroyFilterDescriptor, w);
    CALL(cudnnDestroyConvolutionDescriptor, conv);
    CALL(cublasDestroy_v2, blas);
    CALL(cudnnDestroy, dnn);
    for (void* at : {memory, more, work})
      if (at) CALL(cudaFree, at);
    CALL(cudaFreeHost, pinned);
    CALL(cudaEventDestroy, event);
    if (stream) CALL(cudaStreamDestroy, stream);
    CALL(cudaStreamDestroy, other);
  }

  float* floats(void* at, std::size_t elem = 0) const { return static_cast<float*>(at) + elem; }
  // Calls y = x * w with the given arguments.
  void convolve(const void* x_at, void* y_at, std::size_t work_bytes, cudnnConvolutionFwdAlgo_t algo,
                bool asks = true) {
    if (asks) CALL(cudnnGetConvolutionForwardWorkspaceSize, dnn, x, w, conv, y, algo, &needed);
    const float one = 1, zero = 0;
    CALL(cudnnConvolutionForward, dnn, &one, x, x_at, w, floats(more, 4096), conv, algo, work,
         std::min(work_bytes, needed), &zero, y, y_at);
  }
  void multiply(std::int64_t lda, cudaDataType type, cublasComputeType_t compute, const float* c) {
    const float one = 1, zero = 0;
    CALL(cublasGemmEx_64, blas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, memory, type, lda, more, type, 8, &zero,
         const_cast<float*>(c), type, 8, compute, CUBLAS_GEMM_DEFAULT);
  }
};

constexpr auto kGemm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr std::size_t kAll = ~std::size_t{0};

struct Misuse {
  const char* rule;  // the ledger's text for it
  std::function<void(Bench&)> act;
};

std::vector<Misuse> misuses() {
  return {
      {"", [](Bench& b) { b.convolve(b.memory, b.more, kAll, kGemm); }},
      {"", [](Bench& b) { b.multiply(8, CUDA_R_32F, CUBLAS_COMPUTE_32F, b.floats(b.work)); }},
      {"y is 2x4x6x6, the convolution's output is 2x3x6x6",
       [](Bench& b) {
         CALL(cudnnSetFilter4dDescriptor, b.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3, 3, 3, 3);
         b.convolve(b.memory, b.more, kAll, kGemm);
       }},
      {"y is 2x3x8x8", [](Bench& b) { std::swap(b.x, b.y), b.convolve(b.memory, b.more, kAll, kGemm); }},
      {"different layouts",
       [](Bench& b) {
         CALL(cudnnSetTensor4dDescriptor, b.x, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 3, 8, 8);
         b.convolve(b.memory, b.more, kAll, kGemm);
       }},
      {"of different types",
       [](Bench& b) {
         CALL(cudnnSetTensor4dDescriptor, b.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 2, 3, 8, 8);
         b.convolve(b.memory, b.more, kAll, kGemm);
       }},
      {"not groups times",
       [](Bench& b) {
         CALL(cudnnSetConvolutionGroupCount, b.conv, 2);
         b.convolve(b.memory, b.more, kAll, kGemm);
       }},
      {"a workspace of 540 bytes", [](Bench& b) { b.convolve(b.memory, b.more, 540, kGemm); }},
      {"was not asked for", [](Bench& b) { b.convolve(b.memory, b.more, kAll, kGemm, false); }},
      {"x and y overlap|y and x overlap", [](Bench& b) { b.convolve(b.memory, b.memory, kAll, kGemm); }},
      {"not aligned to 16 bytes", [](Bench& b) { b.convolve(b.floats(b.memory, 1), b.more, kAll, kGemm); }},
      {"bytes behind its block",
       [](Bench& b) { b.convolve(b.memory, b.floats(b.more, kBytes / 4 - 100), kAll, kGemm); }},
      {"in no memory", [](Bench& b) { b.convolve(&b, b.more, kAll, kGemm); }},
      {"in host memory", [](Bench& b) { b.convolve(b.pinned, b.more, kAll, kGemm); }},
      {"was not set",
       [](Bench& b) {
         cudnnTensorDescriptor_t unset = nullptr;
         CALL(cudnnCreateTensorDescriptor, &unset);
         std::swap(unset, b.x);
         b.convolve(b.memory, b.more, kAll, kGemm);
         std::swap(unset, b.x);
         CALL(cudnnDestroyTensorDescriptor, unset);
       }},
      {"a tensor descriptor that is destroyed",
       [](Bench&) {
         cudnnTensorDescriptor_t gone = nullptr;
         CALL(cudnnCreateTensorDescriptor, &gone);
         CALL(cudnnDestroyTensorDescriptor, gone);
         CALL(cudnnDestroyTensorDescriptor, gone);
       }},
      {"a filter descriptor given as a tensor descriptor",
       [](Bench& b) {
         CALL(cudnnSetTensor4dDescriptor, reinterpret_cast<cudnnTensorDescriptor_t>(b.w), CUDNN_TENSOR_NCHW,
              CUDNN_DATA_FLOAT, 1, 1, 1, 1);
       }},
      {"a cuDNN handle of device 1 while device 0 is current",
       [](Bench& b) {
         CALL(cudaSetDevice, 0);
         b.convolve(b.memory, b.more, kAll, kGemm);
       }},
      {"a stream of device 0, a handle of 1", [](Bench& b) { CALL(cudnnSetStream, b.dnn, b.other); }},
      {"whose stream is destroyed",
       [](Bench& b) {
         CALL(cudaStreamDestroy, b.stream);
         b.stream = nullptr;
         b.convolve(b.memory, b.more, kAll, kGemm);
       }},
      {"leading dimension 7 of 8 rows",
       [](Bench& b) { b.multiply(7, CUDA_R_32F, CUBLAS_COMPUTE_32F, b.floats(b.work)); }},
      {"sums of", [](Bench& b) { b.multiply(8, CUDA_R_16F, CUBLAS_COMPUTE_64F, b.floats(b.work)); }},
      {"C and A overlap", [](Bench& b) { b.multiply(8, CUDA_R_32F, CUBLAS_COMPUTE_32F, b.floats(b.memory, 60)); }},
      {"captured with the library's own workspace",
       [](Bench& b) {
         cudaGraph_t graph = nullptr;
         CALL(cudaStreamBeginCapture, b.stream, cudaStreamCaptureModeThreadLocal);
         b.multiply(8, CUDA_R_32F, CUBLAS_COMPUTE_32F, b.floats(b.work));
         CALL(cudaStreamEndCapture, b.stream, &graph);
         CALL(cudaGraphDestroy, graph);
       }},
      {"while this thread captures a stream",
       [](Bench& b) {
         cudaGraph_t graph = nullptr;
         CALL(cudaStreamBeginCapture, b.stream, cudaStreamCaptureModeThreadLocal);
         CALL(cudaStreamSynchronize, b.stream);
         CHECK(CALL(cudaStreamEndCapture, b.stream, &graph) == cudaErrorStreamCaptureInvalidated);
       }},
      {"the workspace of a cuBLAS handle that is alive",
       [](Bench& b) {
         CALL(cublasSetWorkspace_v2, b.blas, b.work, kBytes);
         CALL(cudaFree, b.work);
         b.work = nullptr;
       }},
      {"or is freed",
       [](Bench& b) {
         CALL(cudaFree, b.work);
         CALL(cudaFree, b.work);
         b.work = nullptr;
       }},
      {"a place is not what", [](Bench& b) { CALL(cudaFree, b.floats(b.memory, 4)); }},
      {"direction 1, where it is 2",
       [](Bench& b) { CALL(cudaMemcpyAsync, b.pinned, b.memory, 16, cudaMemcpyHostToDevice, b.stream); }},
      {"ends behind its pinned block",
       [](Bench& b) {
         CALL(cudaMemcpyAsync, b.floats(b.pinned, kBytes / 4 - 1), b.memory, 8, cudaMemcpyDefault, b.stream);
       }},
      {"the default stream", [](Bench& b) { CALL(cudaMemsetAsync, b.memory, 0, 16, nullptr); }},
      {"was freed before the stream came to it",
       [](Bench& b) {
         CALL(cudaMemcpyAsync, b.pinned, b.memory, 16, cudaMemcpyDefault, b.stream);
         CALL(cudaFreeHost, b.pinned);
         CALL(cudaStreamSynchronize, b.stream);
         CALL(cudaHostAlloc, &b.pinned, kBytes, cudaHostAllocDefault);
       }},
      {"an event of device 1, a stream of 0", [](Bench& b) { CALL(cudaEventRecord, b.event, b.other); }},
      {"no kernel", [](Bench& b) { CALL(__cudaLaunchKernel, nullptr, dim3(1), dim3(1), nullptr, 0, b.stream); }},
  };
}

}  // namespace

TEST_CASE("the stand-in notes every rule that is broken", "[cuda_calls][rules]") {
  for (const Misuse& misuse : misuses()) {
    ledger().begin({.late = true});
    {
      Bench bench;
      REQUIRE(ledger().broken_rules().empty());
      misuse.act(bench);
    }
    const std::vector<std::string> broken = ledger().broken_rules();
    INFO(misuse.rule);
    std::string text;
    for (const std::string& rule : broken) text += rule + "\n";
    INFO(text);
    CHECK(broken.empty() == (misuse.rule[0] == 0));
    const std::string rule = misuse.rule;
    const std::size_t bar = rule.find('|');
    CHECK((text.find(rule.substr(0, bar)) != std::string::npos ||
           (bar != std::string::npos && text.find(rule.substr(bar + 1)) != std::string::npos)));
  }
}

TEST_CASE("what is not given back is listed", "[cuda_calls][rules]") {
  ledger().begin({});
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  CALL(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
  CALL(cudaMalloc, &memory, 100);
  CHECK(ledger().alive() ==
        std::vector<std::string>{"1 x device memory of 100 bytes", "1 x event of cudaEventCreateWithFlags"});
  CALL(cudaEventDestroy, event);
  CALL(cudaFree, memory);
  CHECK(ledger().alive().empty());
}

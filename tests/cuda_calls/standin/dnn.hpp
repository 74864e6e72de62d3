// SPDX-License-Identifier: Apache-2.0
// cuDNN's handles and descriptors.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda_calls/standin/streams.hpp"

namespace echelon::calls {

inline constexpr const char *kDnn = "cuDNN handle", *kTensor = "tensor descriptor", *kFilter = "filter descriptor",
                            *kConvolution = "convolution descriptor", *kDropout = "dropout descriptor",
                            *kRnn = "RNN descriptor", *kRnnData = "RNN data descriptor";

struct DnnHandle : Object {
  Stream* stream = nullptr;
  std::set<std::string> answered;  // convolutions and algorithms whose workspace size was asked for
};

struct Descriptor : Object {
  bool set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};
struct Tensor : Descriptor {
  std::vector<std::int64_t> extents, strides;
};
struct Filter : Descriptor {
  std::vector<std::int64_t> extents;  // K C R S, or K C T R S
  bool last = false;                  // (K, R, S, C)
};
struct Convolution : Descriptor {  // `type` is that of sums
  std::vector<std::int64_t> pads, strides, dilations;
  std::int64_t groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};
struct Dropout : Descriptor {};
struct Rnn : Descriptor {
  cudnnRNNMode_t cell = CUDNN_LSTM;
  bool padded_io = false;
  std::int64_t F = 0, H = 0, gates = 0;  // one layer, one direction, no projection
};
struct RnnData : Descriptor {
  std::int64_t T = 0, N = 0, values = 0;
  std::vector<int> lengths;
};

std::int64_t size_of(cudnnDataType_t type);  // 0: an unknown type
// Bytes from the first element to the last.
std::size_t bytes_of(const Tensor& tensor);
std::size_t bytes_of(const Filter& filter);

// Returns the handle, with its stream set, on the current device; otherwise null, and a broken rule.
DnnHandle* dnn_of(const Call& call, cudnnHandle_t handle);
// Returns a descriptor that was set; otherwise null, and a broken rule.
template <class T, class Handle>
T* set_one(const Call& call, Handle handle, const char* kind) {
  T* descriptor = call.find<T>(handle, kind);
  if (descriptor && !call.demand(descriptor->set, "a {} that was not set", kind)) return nullptr;
  return descriptor;
}

// cuDNN may load 16 bytes at once (Developer Guide, "Tensor Core Operations": data pointers are 128-bit aligned).
inline constexpr std::size_t kDnnAlignment = 16;

}  // namespace echelon::calls

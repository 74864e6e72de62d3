// SPDX-License-Identifier: Apache-2.0
// cuDNN's descriptors of one recurrent layer in one direction, and the offsets of its weights in the library's weight
// space.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

#include "cuda/cudnn/descriptors.hpp"
#include "cuda/kernels/rnn_weights.hpp"

namespace echelon::cuda {

class RnnDescriptors {
 public:
  // Extents fit an int.
  RnnDescriptors(cudnnHandle_t dnn, const RnnDims& d, DType dtype);

  // Sets the number of valid steps of each sample in x and y: N values in host memory, from 1 to T.
  void set_lengths(const int* lengths);

  cudnnRNNDescriptor_t rnn() const { return rnn_.get(); }
  cudnnRNNDataDescriptor_t x() const { return x_.get(); }
  cudnnRNNDataDescriptor_t y() const { return y_.get(); }
  cudnnTensorDescriptor_t state() const { return state_.get(); }
  std::size_t weight_bytes() const { return weight_bytes_; }
  std::size_t work_bytes() const { return work_bytes_; }
  std::size_t reserve_bytes() const { return reserve_bytes_; }

  // The offsets of the gates in a space of weight_bytes() that begins at `space`, in elements of `elem_bytes`.
  RnnParts parts(cudnnHandle_t dnn, const void* space, std::size_t elem_bytes) const;

 private:
  RnnDims d_;
  cudnnDataType_t type_;
  Descriptor<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor> dropout_;
  Descriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor> rnn_;
  Descriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor> x_, y_;
  Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor> state_;
  std::size_t weight_bytes_ = 0, work_bytes_ = 0, reserve_bytes_ = 0;
};

}  // namespace echelon::cuda

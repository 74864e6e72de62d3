// SPDX-License-Identifier: Apache-2.0
// One oneDNN primitive with its memory objects, built once and executed without allocating memory of our own.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/onednn/halves.hpp"
#include "device/onednn/library.hpp"
#include "device/onednn/ops.hpp"

namespace echelon::inline device::onednn {

class Primitive {
 public:
  Primitive() = default;
  // `args`: DNNL_ARG_* and the descriptor of the memory bound to it, in the order of `run`'s addresses. Arguments with
  // empty descriptors (a scratchpad of no bytes) are not passed on, but keep their place in the order.
  Primitive(const Context& context, const dnnl::primitive& primitive,
            std::initializer_list<std::pair<int, dnnl::memory::desc>> args);

  explicit operator bool() const { return static_cast<bool>(primitive_); }
  void run(std::initializer_list<const void*> addresses);

 private:
  dnnl::primitive primitive_;
  int threads_ = 1;
  dnnl_stream_t stream_ = nullptr;
  std::vector<dnnl::memory> memories_;  // one per argument; null for an empty descriptor
  std::vector<const void*> bound_;
  std::vector<dnnl_exec_arg_t> args_;
};

// dst = src in another format, or dst += src.
Primitive make_reorder(const Context& context, const dnnl::memory::desc& src, const dnnl::memory::desc& dst,
                       bool add = false);
// The name of the implementation of such a reorder, such as "jit:blk".
std::string reorder_implementation(const Context& context, const dnnl::memory::desc& src,
                                   const dnnl::memory::desc& dst);

// Parts of a scratch area, each aligned to a cache line.
class ScratchPlan {
 public:
  static constexpr std::size_t kAlignment = 64;
  // Offset of the next `bytes` from an aligned start.
  std::size_t take(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  // The size that OpArgs::scratch must have at any alignment; 0 if nothing was taken.
  std::size_t bytes() const { return bytes_ == 0 ? 0 : bytes_ + kAlignment; }
  static std::byte* align(void* scratch) {
    const auto address = reinterpret_cast<std::uintptr_t>(scratch);
    return reinterpret_cast<std::byte*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }

 private:
  std::size_t bytes_ = 0;
};

// Weights in the format and precision that a primitive needs, made from the plain ones (f32) once per parameter
// version.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const Context& context, const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
                const Precision& precision = kSingle);
  const void* get(const void* plain, std::uint64_t version);
  // Makes this object use the copy of `other`, which has the same plain weights, if the formats agree.
  void share(const PackedWeights& other);

 private:
  struct Packed {
    dnnl::memory::desc from, to;
    Primitive reorder;       // none if the plain format is needed, rounded
    Memory rounded, memory;  // rounded in f32, if that is needed; packed
    dnnl::memory::data_type half = dnnl::memory::data_type::bf16;
    int threads = 1;
    const void* source = nullptr;
    std::uint64_t version = 0;
  };
  std::shared_ptr<Packed> packed_;  // none if the plain weights are used directly
};

}  // namespace echelon::inline device::onednn

// SPDX-License-Identifier: Apache-2.0
// An op that runs a function which launches kernels on the context's stream.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cuda/check.hpp"
#include "cuda/context.hpp"
#include "device/op.hpp"

namespace echelon::cuda {

template <class T>
T* tensor(const OpArgs& args, int index) {
  return static_cast<T*>(args.tensors[index]);
}

inline bool adds(const OpArgs& args, int index) { return (args.accumulate >> index & 1u) != 0; }

// Library kernels may load 16 bytes at once, but parameters are stored unpadded in their arena.
inline bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

class KernelOp final : public Op {
 public:
  using Body = std::function<void(const OpArgs&, cudaStream_t)>;

  KernelOp(const Context& context, const OpSpec& spec, Body body, std::size_t scratch_bytes = 0,
           std::size_t saved_bytes = 0)
      : context_(context),
        text_(spec.text()),
        body_(std::move(body)),
        scratch_bytes_(scratch_bytes),
        saved_bytes_(saved_bytes) {}

  std::size_t saved_bytes() const override { return saved_bytes_; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string implementation() const override { return "cuda kernel"; }
  void run(const OpArgs& args) override {
    context_.use();
    body_(args, context_.stream());
    check_launch(text_);
  }

 private:
  const Context& context_;
  std::string text_;
  Body body_;
  std::size_t scratch_bytes_;
  std::size_t saved_bytes_;
};

}  // namespace echelon::cuda

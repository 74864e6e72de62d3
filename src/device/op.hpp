// SPDX-License-Identifier: Apache-2.0
// An op: built once from a spec and run every step; `run` does not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/op_spec.hpp"

namespace echelon::inline device {

struct OpArgs {
  void* const* tensors =
      nullptr;  // by argument of the signature; device memory, in the spec's layouts, 64-byte aligned or not
  unsigned accumulate = 0;  // bit a set: add into argument a instead of overwriting it (outputs that `adds` only)
  void* saved = nullptr;    // saved_bytes() of the forward twin
  void* scratch = nullptr;  // at least scratch_bytes()
  double scale = 1.0;       // kinds with a scalar `scale`
  double count = 0.0;       // kinds with a scalar `count`; 0: this micro-batch's own N*H*W
  std::uint64_t key = 0;    // dropout: hash of (seed, node, step)
  std::uint64_t parameter_version =
      0;  // changes whenever the parameters' values may have changed; equal: packed weights are still valid
};

class Op {
 public:
  virtual ~Op() = default;

  // Sizes of memory besides the arguments. A backward op reports the saved_bytes of its forward twin.
  virtual std::size_t saved_bytes() const { return 0; }
  virtual std::size_t scratch_bytes() const { return 0; }

  // Name of the implementation, for `bench step`: "plain loop", "jit:avx512_core", "cudnn algorithm 1". Contains "ref"
  // if a library falls back to unoptimised code.
  virtual std::string implementation() const = 0;

  // Whether the work that `run` enqueued may be enqueued again unchanged (Device::record_ops): it does not wait, and
  // keeps no state from run to run.
  virtual bool replays() const { return true; }

  // Enqueues the op in the device's stream; on a GPU it returns before the op is done. Reads each input and writes each
  // output of the signature. Only the device's thread may call it.
  virtual void run(const OpArgs& args) = 0;
};

}  // namespace echelon::inline device

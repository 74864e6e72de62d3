// SPDX-License-Identifier: Apache-2.0
// Codes a replica's updates of one bucket, with its residual r and its threshold tau:
//
//   r     += u
//   entry  = i with |r_i| >= tau, sent as +tau or -tau (message.hpp)
//   r_i   -= the sent value
//
// The sent values and the residual add up to the sum of the updates: exactly if tau is a power of two and r + u does
// not round, else up to one rounding of f32 (f64) per step. Values of both types are compared with tau in f32. Unless
// tau is given, it adapts to a density (comm/codec/tau.hpp). A value that is inf or NaN leaves no residual, and its
// message has tau = NaN.
//
// Cost of an encoding: one pass that reads the residual and the weights before and after the step, and writes the
// residual; O(entries); memory for the entries and 16 KiB.
// residual, and O(entries); work space of the entries and 16 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "comm/codec/tau.hpp"
#include "device/parameter.hpp"

namespace echelon::inline exchange {

// Returns the runs in `range` that are not running statistics.
std::vector<ArenaRange> weights_in(const ParameterSet& parameters, ArenaRange range);

struct StromFormat {
  DType dtype = DType::f32;
  bool entropy = true;
  double tau = 0;         // 0: tau adapts to `density`
  double density = 0.01;  // fraction of the values that are sent
};

class StromCoder {
 public:
  // u = scale * (changed - weights). All three are host memory of the arenas' size and of the format's dtype.
  struct Update {
    const void* changed = nullptr;
    const void* weights = nullptr;
    void* residual = nullptr;
    double scale = 1;
  };

  // `weights` are the ranges of the arena, inside the bucket, that are not running statistics.
  StromCoder(const StromFormat& format, ArenaRange bucket, std::vector<ArenaRange> weights);

  // Adds the update to the residual and writes a message of the entries; returns its length in bytes.
  std::size_t encode(const Update& update, std::byte* message);
  // Writes the whole residual, including the update, as a message and clears it; returns its length in bytes.
  std::size_t encode_dense(const Update& update, std::byte* message);
  // Adds the update to the residual and sends nothing.
  void hold(const Update& update);

  ArenaRange bucket() const { return bucket_; }
  const StromFormat& format() const { return format_; }
  // Figures of the last of these three calls: fraction of the values that was sent, number of entries, threshold (0:
  // none), sum of squares of the residual.
  double density() const;
  std::size_t entries() const { return selected_.count; }
  double sent_tau() const { return sent_tau_; }
  double residual_squares() const { return squares_; }
  // The threshold of the next message; 0: there is none yet. set_tau restores a threshold that adapts.
  double tau() const { return tau_; }
  void set_tau(double tau);

 private:
  template <class T>
  void select(const Update& update, float tau);
  template <class T>
  void add_to_residual(const Update& update);
  template <class T>
  void begin(const Update& update);
  template <class Body>
  void each_block(const Body& body) const;

  StromFormat format_;
  ArenaRange bucket_;
  std::vector<ArenaRange> weights_;
  std::int64_t elems_ = 0;  // number of weights
  float tau_;
  Selected selected_;
  std::vector<float> block_;
  bool dense_ = false;
  double sent_tau_ = 0, squares_ = 0;
};

}  // namespace echelon::inline exchange

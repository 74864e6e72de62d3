// What a replica sends of one bucket's updates, and what it keeps: the residual and the threshold tau.
//
//   r     += u
//   entry  = i with |r_i| >= tau, sent as +tau or -tau (message.hpp)
//   r_i   -= what is sent
//
// so that what was sent and the residual add up to the sum of the updates: exactly, where tau is a power of two and r +
// u needs no rounding; else to one rounding of f32 (f64) a step. Sizes are compared in f32 for both types. tau adapts
// to a density where it is not given (comm/codec/tau.hpp). A value that is inf or NaN leaves no residual, and its
// message has tau = NaN.
//
// Cost of an encoding: one pass that reads the weights before and after the step and the residual and writes the
// residual, and O(entries); work space of the entries and 16 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "comm/codec/tau.hpp"
#include "device/parameter.hpp"

namespace echelon::inline exchange {

// Of `range`, what is no running statistic.
std::vector<ArenaRange> weights_in(const ParameterSet& parameters, ArenaRange range);

struct StromFormat {
  DType dtype = DType::f32;
  bool entropy = true;
  double tau = 0;         // 0: adapts to `density`
  double density = 0.01;  // of the values
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

  // `weights`: the ranges of the arena, inside the bucket, that are not running statistics.
  StromCoder(const StromFormat& format, ArenaRange bucket, std::vector<ArenaRange> weights);

  // Adds the update to the residual and writes a message of what is sent; returns its length.
  std::size_t encode(const Update& update, std::byte* message);
  // All of it is sent; the residual becomes 0.
  std::size_t encode_dense(const Update& update, std::byte* message);
  // Nothing is sent.
  void hold(const Update& update);

  ArenaRange bucket() const { return bucket_; }
  const StromFormat& format() const { return format_; }
  // Of the newest of these three: the fraction of the values that was sent, the number of entries, the threshold (0:
  // none), the sum of squares of the residual.
  double density() const;
  std::size_t entries() const { return selected_.count; }
  double sent_tau() const { return sent_tau_; }
  double residual_squares() const { return squares_; }
  // The threshold of the next message; 0: there is none yet. set_tau restores one that adapts.
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
  std::int64_t elems_ = 0;  // of the weights
  float tau_;
  Selected selected_;
  std::vector<float> block_;
  bool dense_ = false;
  double sent_tau_ = 0, squares_ = 0;
};

}  // namespace echelon::inline exchange

// SPDX-License-Identifier: Apache-2.0
// Small blocking collectives for the control of a run: agreement, evaluation sums, metrics. Each is a plan on the
// engine that the calling thread drives, and throws what Ticket::wait throws. All ranks must make the same calls with
// the same sizes in the same order; results have the same bits on every rank.
//
// Cost per rank for values of B bytes: at most 2 ceil(log2 k) messages and steps. `sum`, `broadcast`, `of_first`
// and `barrier` send messages of at most B bytes, so that they may be called in every step; `gather` and `max` send
// messages of up to k B bytes, and are for the start, the end and errors. `gather_to_first` sends each rank's bytes
// once, and is for large buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/engine.hpp"

namespace echelon::inline comm {

class Group {
 public:
  // For all ranks of the engine's transport. Nothing else uses `channel`, which is the same on all ranks.
  Group(Engine& engine, int channel) : engine_(engine), channel_(channel) {}

  int rank() const { return engine_.rank(); }
  int size() const { return engine_.size(); }

  // values[i] = sum over ranks. Up to kInTree values, the result has the bits of ((0+1)+(2+3))+.., which one rank that
  // holds 2^m shares would compute. With more values this holds if the number of ranks is a power of two
  // (`halving_doubling`: each rank sends at most twice the values' bytes).
  static constexpr std::int64_t kInTree = 1024;
  // The plan of `sum`.
  static std::shared_ptr<const Plan> plan_of_sum(int rank, int ranks, std::int64_t values);
  void sum(std::span<double> values);
  double max(double value);  // NaN if that of any rank is NaN
  // Sends `bytes` bytes of rank `root` to all; ceil(log2 k) steps.
  void broadcast(void* data, std::size_t bytes, int root);
  std::vector<double> gather(double value);  // the values of all ranks, on every rank
  // The same for several values, equally many on each rank, in blocks by rank.
  std::vector<double> gather(std::span<const double> values);
  // The texts of all ranks, of any length: two all-gathers, the second of k times the longest text.
  std::vector<std::string> gather(const std::string& text);
  // Sends the bytes of all ranks directly to rank 0. There those of rank r arrive in ranges[r] of `data`; on other
  // ranks they are at the front of `data`. All ranks give the same ranges, which do not overlap; rank 0 has filled in
  // its own.
  void gather_to_first(void* data, const std::vector<ElemRange>& ranges);
  // Returns the text of rank 0 on every rank; two broadcasts.
  std::string of_first(std::string text);
  void barrier();  // returns after all ranks have called it

 private:
  void gather_blocks(void* blocks, std::size_t block_bytes);

  Engine& engine_;
  int channel_;
};

}  // namespace echelon::inline comm

// Small blocking collectives for the control of a run: agreement, evaluation sums, metrics. Each is a plan on the
// engine, driven by the calling thread, with the errors of Ticket::wait. All ranks make the same calls with the same
// sizes in the same order; results have the same bits on every rank.
//
// Cost a rank, of values of B bytes: at most 2 ceil(log2 k) messages and links. `sum`, `broadcast`, `of_first` and
// `barrier` have messages of at most B bytes, so that they may be called in every step; `gather` and `max` have
// messages of up to k B bytes, and are for the start, the end and errors. `gather_to_first` sends each rank's bytes
// once, and is for large ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/engine.hpp"

namespace echelon::inline comm {

// ((0+1)+(2+3))+.., of any number of values; 0 for none. Where contiguous blocks of 2^m values are summed so first and
// their sums so again, the result has the same bits.
double sum_in_tree(std::vector<double> values);

class Group {
 public:
  // All ranks of the engine's transport; `channel` is its own and the same on all ranks.
  Group(Engine& engine, int channel) : engine_(engine), channel_(channel) {}

  int rank() const { return engine_.rank(); }
  int size() const { return engine_.size(); }

  // values[i] = sum over ranks. Up to kInTree values: the bits of sum_in_tree, which are those of one rank holding 2^m
  // shares. More: the same for a power of two of ranks (`halving_doubling`: at most twice the values' bytes a rank).
  static constexpr std::int64_t kInTree = 1024;
  // The plan of a sum of f64 values.
  static std::shared_ptr<const Plan> plan_of_sum(int rank, int ranks, std::int64_t values);
  void sum(std::span<double> values);
  double max(double value);  // NaN where that of any rank is NaN
  // `bytes` of rank `root` to all: ceil(log2 k) links.
  void broadcast(void* data, std::size_t bytes, int root);
  std::vector<double> gather(double value);  // of every rank, on every rank
  // Likewise of values, as many on each rank: blocks by rank.
  std::vector<double> gather(std::span<const double> values);
  // Texts of any length: two all-gathers, the second of k times the longest.
  std::vector<std::string> gather(const std::string& text);
  // Bytes of all ranks on rank 0, straight from each: those of rank r in places[r] of `data` there, at the front of
  // `data` elsewhere. All ranks give the same places, which do not overlap; rank 0 has filled in its own.
  void gather_to_first(void* data, const std::vector<ElemRange>& places);
  // The text of rank 0, on every rank: two broadcasts.
  std::string of_first(std::string text);
  void barrier();  // returns after all ranks have called it

 private:
  void gather_blocks(void* blocks, std::size_t block_bytes);

  Engine& engine_;
  int channel_;
};

}  // namespace echelon::inline comm

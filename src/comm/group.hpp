// Small blocking collectives for the control of a run: agreement, evaluation sums, metrics. Each is a plan on the
// engine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/engine.hpp"

namespace echelon::inline comm {

// ((0+1)+(2+3))+..: what contiguous powers of two of ranks, each summed so, come to in turn.
double sum_in_tree(std::vector<double> values);

class Group {
 public:
  // All ranks of the engine's transport; `channel` is its own and the same on all ranks.
  Group(Engine& engine, int channel) : engine_(engine), channel_(channel) {}

  int rank() const { return engine_.rank(); }
  int size() const { return engine_.size(); }

  // Every rank ends with the same bits. Few values are added in a balanced binary tree over the ranks.
  void sum(std::span<double> values);
  double max(double value);  // NaN where any rank's is
  void broadcast(void* data, std::size_t bytes, int root);
  std::vector<double> gather(double value);  // of every rank, on every rank
  // Likewise of values, as many on each rank: blocks by rank.
  std::vector<double> gather(std::span<const double> values);
  std::vector<std::string> gather(const std::string& text);
  void barrier();

 private:
  void gather_blocks(void* blocks, std::size_t block_bytes);

  Engine& engine_;
  int channel_;
};

}  // namespace echelon::inline comm

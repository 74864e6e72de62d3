// One bucket of gradients on each of k ranks, exchanged with a codec by one thread: what tests of codecs run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/codec/coded_bucket.hpp"
#include "comm/transport.hpp"

namespace echelon::test {

class CodecWorld {
 public:
  // `algorithm` for codecs that ride any plan.
  CodecWorld(const std::string& codec, const std::string& algorithm, int ranks, std::int64_t elems,
             CodecOptions options = {});

  // data[r] becomes what rank r holds in the end.
  void exchange(std::vector<std::vector<float>>& data, std::uint64_t step);

  CodedBucket& bucket(int rank) { return *buckets_[static_cast<std::size_t>(rank)]; }
  const std::vector<float>& residual(int rank) const { return residuals_[static_cast<std::size_t>(rank)]; }
  const std::vector<float>& sum_residual(int rank) const { return residual_[static_cast<std::size_t>(rank)]; }
  // What all ranks together have not said of the sum: element by element.
  std::vector<double> residual() const;
  const std::vector<WireCounters>& counters() const { return counters_; }  // of the last exchange

 private:
  std::int64_t elems_;
  std::vector<std::shared_ptr<const Plan>> plans_;
  std::vector<std::vector<float>> residuals_, residual_;
  std::vector<std::unique_ptr<CodedBucket>> buckets_;
  std::vector<WireCounters> counters_;
};

}  // namespace echelon::test

// SPDX-License-Identifier: Apache-2.0
// Exchanges one bucket of gradients on each of k ranks with a codec, in one thread; the tests of codecs use it.
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
  // `algorithm` matters to codecs that can use any plan.
  CodecWorld(const std::string& codec, const std::string& algorithm, int ranks, std::int64_t elems,
             CodecOptions options = {});

  // Replaces data[r] by what rank r holds after the exchange.
  void exchange(std::vector<std::vector<float>>& data, std::uint64_t step);

  CodedBucket& bucket(int rank) { return *buckets_[static_cast<std::size_t>(rank)]; }
  const std::vector<float>& residual(int rank) const { return residuals_[static_cast<std::size_t>(rank)]; }
  const std::vector<float>& sum_residual(int rank) const { return residual_[static_cast<std::size_t>(rank)]; }
  // Returns, element by element, the part of the sum that all ranks together still owe.
  std::vector<double> residual() const;
  const std::vector<WireCounters>& counters() const { return counters_; }  // for the last exchange, one per rank

 private:
  std::int64_t elems_;
  std::vector<std::shared_ptr<const Plan>> plans_;
  std::vector<std::vector<float>> residuals_, residual_;
  std::vector<std::unique_ptr<CodedBucket>> buckets_;
  std::vector<WireCounters> counters_;
};

}  // namespace echelon::test

// SPDX-License-Identifier: Apache-2.0
// How fast loaders read a data set.
#pragma once

#include <cstdint>
#include <functional>

#include "data/dataset.hpp"
#include "data/loader.hpp"

namespace echelon::inline data {

struct ReadingOptions {
  int readers = 1;         // replicas that read their shares of the set, each with a loader
  std::int64_t batch = 0;  // samples a batch of a reader; 0: 64, or about 64 MiB where samples are large
  double most_s = 1;       // reading ends with the epoch, or after this many seconds
  std::int64_t epochs = 1;
  LoaderOptions loading{};                    // of each reader
  std::function<void(const Batch&)> first{};  // takes the first batch of the first reader
};

struct ReadingRate {
  std::int64_t samples = 0;
  double seconds = 0;
  std::uint64_t bytes = 0;  // read from files

  double samples_s() const { return static_cast<double>(samples) / seconds; }
};

// Reads in the order of training, shuffled as `config` says, and normalises as for training. The files may lie in the
// system's cache. Throws what reading throws, and ConfigError for more readers than samples.
ReadingRate reading_rate(const Dataset& set, const DataConfig& config = {}, const ReadingOptions& options = {});

}  // namespace echelon::inline data

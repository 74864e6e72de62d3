// SPDX-License-Identifier: Apache-2.0
// Shuffles records in two passes and bounded memory. The first pass deals each record to one of many piles at random;
// with more than one pile, the piles are files beside the target. The second pass reads pile after pile and permutes
// each. Every order of all records is equally likely (Rao 1961, Sandelius 1962). The order depends only on the numbers
// of records and piles, so a repeated import writes the same files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/import/fresh_folder.hpp"

namespace echelon::inline data {

inline constexpr std::int64_t kPileBytes = 64 << 20;

class Mixer {
 public:
  // `bytes`: approximate size of all records. Piles have about `pile_bytes` each, and the buffers of all piles together
  // half of that. Their files are in a folder beside `place`, which the destructor removes.
  Mixer(const std::string& place, std::int64_t bytes, std::int64_t pile_bytes = kPileBytes);

  void add(std::string_view record);
  // Calls body(number, record) for each record in the shuffled order; `number` counts the calls of add, from 0. Call it
  // once, after the last add. Throws EnvironmentError if a pile cannot be written or read.
  using Body = std::function<void(std::int64_t, std::string_view)>;
  void each(const Body& body);

  // Returns the numbers in the order of each() for this many records, which need not have been added yet.
  std::vector<std::int64_t> order(std::int64_t records) const;
  std::int64_t piles() const { return static_cast<std::int64_t>(piles_.size()); }

 private:
  struct Pile {
    std::string held;  // not yet in its file: records, each after its number and its length
    bool on_disk = false;
  };
  std::size_t pile_of(std::int64_t number) const;
  void permute(std::vector<std::size_t>& values, std::size_t pile) const;
  std::string file_of(std::size_t pile) const;
  void flush(std::size_t pile);

  std::optional<FreshFolder> folder_;
  std::vector<Pile> piles_;
  std::size_t most_held_;  // bytes of a pile that are held before they are written
  std::int64_t records_ = 0;
};

}  // namespace echelon::inline data

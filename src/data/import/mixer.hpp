// Puts records into a random order in two passes over them, in bounded memory: the first deals each to a random one of
// many piles, files beside the target where there is more than one; the second reads pile after pile and permutes each.
// Every order of all records is equally likely (Rao 1961, Sandelius 1962). The order is a function of the number of
// records and of piles alone, so that a repeated import writes the same files.
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
  // `bytes`: of all records, about. Piles have about `pile_bytes` each, and buffers of all piles together half of that.
  // Their files are in a folder beside `place` that goes with this object.
  Mixer(const std::string& place, std::int64_t bytes, std::int64_t pile_bytes = kPileBytes);

  void add(std::string_view record);
  // Calls body(number, record) for each record in the mixed order; `number`: of its add, from 0. Once, after the last
  // add. EnvironmentError where a pile cannot be written or read.
  using Body = std::function<void(std::int64_t, std::string_view)>;
  void each(const Body& body);

  // The numbers in the order of each(), for so many records: known before they are added.
  std::vector<std::int64_t> order(std::int64_t records) const;
  std::int64_t piles() const { return static_cast<std::int64_t>(piles_.size()); }

 private:
  struct Pile {
    std::string held;  // not in its file yet: records, each behind its number and its length
    bool on_disk = false;
  };
  std::size_t pile_of(std::int64_t number) const;
  void permute(std::vector<std::size_t>& values, std::size_t pile) const;
  std::string file_of(std::size_t pile) const;
  void flush(std::size_t pile);

  std::optional<FreshFolder> folder_;
  std::vector<Pile> piles_;
  std::size_t most_held_;  // of a pile before it is written
  std::int64_t records_ = 0;
};

}  // namespace echelon::inline data

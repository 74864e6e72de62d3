// Mean, standard deviation and range of the stored values of a data set, by channel, in one pass over them.
#pragma once

#include <cstdint>
#include <vector>

#include "data/import/source.hpp"

namespace echelon::inline data {

class Statistics {
 public:
  struct Moments {                        // of one channel
    double n = 0, mean = 0, squares = 0;  // squares: summed squared distances from the mean
    double least = 0, greatest = 0;
  };

  explicit Statistics(const SourceInfo& info);
  void add(const std::uint8_t* samples, std::int64_t count);  // (count, C, H, W), as stored

  // Of another part of the set, by channel. What parts add up to depends on their order, in the last bits.
  void add(const std::vector<Moments>& part);
  const std::vector<Moments>& moments() const { return channels_; }

  // By channel, in units of value * scale. std is sqrt(sum of squared distances / n); 1 where all values are equal.
  std::vector<double> mean() const;
  std::vector<double> std() const;
  std::vector<double> value_range() const;  // {least, greatest} stored value

 private:
  static void merge(Moments& into, const Moments& part);

  SourceInfo info_;
  std::vector<Moments> channels_;
};

}  // namespace echelon::inline data

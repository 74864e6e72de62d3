// SPDX-License-Identifier: Apache-2.0
// Mean, standard deviation and range of the stored values of a data set, per channel, in one pass.
#pragma once

#include <cstdint>
#include <vector>

#include "data/import/source.hpp"

namespace echelon::inline data {

class Statistics {
 public:
  struct Moments {                        // for one channel
    double n = 0, mean = 0, squares = 0;  // squares: sum of the squared distances from the mean
    double least = 0, greatest = 0;
  };

  explicit Statistics(const SourceInfo& info);
  void add(const std::uint8_t* samples, std::int64_t count);  // (count, C, H, W), as stored

  // Adds the moments of another part of the set, per channel. The order of parts affects the last bits of the result.
  void add(const std::vector<Moments>& part);
  const std::vector<Moments>& moments() const { return channels_; }

  // Per channel, in units of value * scale. std is sqrt(sum of squared distances / n); 1 if all values are equal.
  std::vector<double> mean() const;
  std::vector<double> std() const;
  std::vector<double> value_range() const;  // {least, greatest} stored value

 private:
  static void merge(Moments& into, const Moments& part);

  SourceInfo info_;
  std::vector<Moments> channels_;
};

}  // namespace echelon::inline data

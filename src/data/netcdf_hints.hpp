// SPDX-License-Identifier: Apache-2.0
// Reads which datasets of a netCDF-4 file describe others, and what the axes of a variable are, by the conventions for
// climate and forecasts (CF 1.11, chapters 4 to 7).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "h5/file.hpp"

namespace echelon::inline data {

class NetcdfHints {
 public:
  NetcdfHints(const h5::Reader& file, const std::vector<h5::DatasetInfo>& datasets);

  // Whether the dataset holds coordinates, bounds of cells or other numbers that belong to a variable.
  bool describes_others(const std::string& dataset) const { return describing_.contains(dataset); }
  // The letters of data.hdf5.axes by the coordinates of the variable's dimensions: time N, levels C, latitude or y H,
  // longitude or x W. Empty if a dimension has no such coordinate, or two have the same letter.
  std::string axes_of(const h5::DatasetInfo& variable) const;

 private:
  struct Scale {
    std::int64_t id = -1, extent = 0;
    char letter = 0;  // 0: not known
  };
  char letter_of(const std::string& scale) const;

  const h5::Reader& file_;
  std::set<std::string> describing_;
  std::vector<Scale> scales_;
};

}  // namespace echelon::inline data

// SPDX-License-Identifier: Apache-2.0
// The normalisation of files of other programs: numbers of the config, or a file of statistics.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"
#include "data/foreign_file.hpp"

namespace echelon::inline data {

std::vector<double> ForeignFile::per_channel(const std::vector<double>& values, const std::string& what,
                                             double fallback) const {
  const auto n = static_cast<std::size_t>(channels());
  if (values.empty()) return std::vector<double>(n, fallback);
  if (values.size() == 1) return std::vector<double>(n, values.front());
  if (values.size() != n)
    throw DataError(fmt::format("{}: {} has {} for {}", path_, what, counted(std::ssize(values), "number"),
                                counted(channels(), "channel")));
  return values;
}

// One of the two statistics, of the channels that are used.
std::vector<double> ForeignFile::statistic(std::size_t which) const {
  const std::filesystem::path named = keys_.statistics;
  std::error_code ignored;
  const bool here = named.is_absolute() || std::filesystem::exists(named, ignored);
  const h5::Reader reader(here ? named.string() : (std::filesystem::path(path_).parent_path() / named).string());
  const std::string& dataset = keys_.statistics_of[which];
  std::vector<double> all(static_cast<std::size_t>(reader.info(dataset).shape.elems()));
  reader.read_all(dataset, all.data(), DType::f64);
  std::size_t channels_of_all = 0;
  for (const Source& source : sources_) channels_of_all += source.places.size();
  if (all.size() == channels_of_all && !keys_.channels.empty()) {  // of all channels: take those that are used
    std::vector<double> used;
    for (const std::int64_t channel : keys_.channels) used.push_back(all[static_cast<std::size_t>(channel)]);
    all = std::move(used);
  }
  return per_channel(all, fmt::format("'{}' of {}", dataset, reader.path()), 0);
}

void ForeignFile::set_normalisation() {
  const auto set_range = [&](const std::vector<double>& least, const std::vector<double>& greatest) {
    mean_ = least;
    std_ = greatest;
    for (std::size_t c = 0; c < std_.size(); ++c) std_[c] -= mean_[c];
  };
  if (!keys_.statistics.empty()) {
    const std::vector<double> first = statistic(0), second = statistic(1);
    if (keys_.statistics_are == StatisticsAre::range) {
      set_range(first, second);
    } else {
      mean_ = first;
      std_ = second;
    }
  } else if (!keys_.range.empty()) {
    set_range(per_channel({keys_.range[0]}, "", 0), per_channel({keys_.range[1]}, "", 1));
  } else {
    scale_ = keys_.scale != 0 ? keys_.scale : holds_bytes() ? 1.0 / 255 : 1.0;
    mean_ = per_channel(keys_.mean, "data.hdf5.mean", 0);
    std_ = per_channel(keys_.std, "data.hdf5.std", 1);
  }
  for (std::size_t c = 0; c < std_.size(); ++c) {
    const bool usable = std_[c] > 0 && std::isfinite(static_cast<float>(scale_ / std_[c])) &&
                        std::isfinite(static_cast<float>(mean_[c] / std_[c]));
    if (!usable)
      throw DataError(
          fmt::format("{}: channel {} cannot be normalised with mean {:g} and standard deviation {:g} "
                      "([data.hdf5] mean, std, range, statistics)",
                      path_, c, mean_[c], std_[c]));
  }
}

}  // namespace echelon::inline data

// SPDX-License-Identifier: Apache-2.0
#include "device/paced/table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"

namespace echelon::inline device {

PacedTable read_paced_table(const std::string& path) {
  const std::string text = read_file_whole(path);
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    throw ConfigError(
        fmt::format("{}: the file is not a table of op times, which has the form {{\"dense_forward f32 N64 F800 K10\": "
                    "0.0001, ..}}",
                    path));
  PacedTable table;
  for (const auto& [op, seconds] : json.items()) {
    if (!seconds.is_number() || !(seconds.get<double>() >= 0) || !std::isfinite(seconds.get<double>()))
      throw ConfigError(fmt::format("{}: the time of '{}' is {}, but must be a number of seconds, 0 or more", path, op,
                                    seconds.dump()));
    table[op] = seconds.get<double>();
  }
  return table;
}

}  // namespace echelon::inline device

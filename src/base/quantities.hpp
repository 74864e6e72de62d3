// SPDX-License-Identifier: Apache-2.0
// Parses sizes and rates with units, from the command line and from configs. Units may be in any case and follow a
// space. All functions throw ConfigError with the name of `option` (or key) and an example of valid text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline base {

// Parses "4096", "4KiB", "32 MiB", "1MB" (powers of 1000) as bytes.
std::int64_t parse_bytes(const std::string& text, const std::string& option);

// Parses "4KiB..32MiB", sizes that double from the first to the last, or a list, "1KiB,64KiB".
std::vector<std::int64_t> parse_sizes(const std::string& text, const std::string& option);

// Parses "1gbit", "25Gbit", "800mbit", "1gbps" (bits per second, powers of 1000), "120MB", "1GiB" (bytes per second),
// each also with "/s". Returns bytes per second.
double parse_rate(const std::string& text, const std::string& option);

// Parses one or more rates separated by commas.
std::vector<double> parse_rates(const std::string& text, const std::string& option);

}  // namespace echelon::inline base

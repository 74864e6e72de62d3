// Sizes and rates with units, of the command line and of configs. Units in any case, a space before them is allowed.
// All throw ConfigError with the name of `option` (or key) and an example of valid text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline base {

// "4096", "4KiB", "32 MiB", "1MB" (thousands): bytes.
std::int64_t parse_bytes(const std::string& text, const std::string& option);

// "4KiB..32MiB": from the first, doubling, up to the last; or a list, "1KiB,64KiB".
std::vector<std::int64_t> parse_sizes(const std::string& text, const std::string& option);

// "1gbit", "25Gbit", "800mbit", "1gbps" (bits a second, thousands), "120MB", "1GiB" (bytes a second), each also with
// "/s": bytes a second.
double parse_rate(const std::string& text, const std::string& option);

// One or more of them, between commas: at least one.
std::vector<double> parse_rates(const std::string& text, const std::string& option);

}  // namespace echelon::inline base

// SPDX-License-Identifier: Apache-2.0
#include "base/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/error.hpp"

namespace echelon::inline base {
namespace {

struct Unit {
  const char* name;
  double factor;
};

constexpr Unit kByteUnits[] = {
    {"", 1},     {"b", 1},    {"kib", 1024}, {"mib", 1024.0 * 1024}, {"gib", 1024.0 * 1024 * 1024},
    {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}};
constexpr Unit kBitUnits[] = {{"bit", 1.0 / 8},  {"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8},
                              {"kbps", 1e3 / 8}, {"mbps", 1e6 / 8}, {"gbps", 1e9 / 8}};

struct Quantity {
  double number = -1;
  std::string unit;  // lower case, without blanks
};

Quantity split(const std::string& text) {
  char* end = nullptr;
  Quantity quantity;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number)) return quantity;
  quantity.number = number;
  for (; *end != '\0'; ++end)
    if (*end != ' ') quantity.unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*end)));
  return quantity;
}

template <std::size_t kUnits>
double factor_of(const Unit (&units)[kUnits], const std::string& name) {
  for (const Unit& unit : units)
    if (name == unit.name) return unit.factor;
  return 0;
}

// Calls `take` with each comma-separated part of the text, at least one.
template <class Take>
void for_parts(const std::string& text, const Take& take) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    take(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
}

}  // namespace

std::int64_t parse_bytes(const std::string& text, const std::string& option) {
  const Quantity quantity = split(text);
  const double bytes = quantity.number * factor_of(kByteUnits, quantity.unit);
  if (quantity.number < 0 || factor_of(kByteUnits, quantity.unit) == 0 || bytes > 1e12 || bytes != std::floor(bytes))
    throw ConfigError(fmt::format("{} \"{}\": must be a number of bytes, such as 4096, 4KiB or 32MiB", option, text));
  return static_cast<std::int64_t>(bytes);
}

std::vector<std::int64_t> parse_sizes(const std::string& text, const std::string& option) {
  std::vector<std::int64_t> sizes;
  if (const auto dots = text.find(".."); dots != std::string::npos) {
    const std::int64_t first = parse_bytes(text.substr(0, dots), option);
    const std::int64_t last = parse_bytes(text.substr(dots + 2), option);
    if (first < 1 || last < first)
      throw ConfigError(fmt::format("{} \"{}\": must be an increasing range from at least 1 byte, such as 4KiB..32MiB",
                                    option, text));
    for (std::int64_t size = first; size <= last; size *= 2) sizes.push_back(size);
    return sizes;
  }
  for_parts(text, [&](const std::string& part) { sizes.push_back(parse_bytes(part, option)); });
  return sizes;
}

double parse_rate(const std::string& text, const std::string& option) {
  Quantity quantity = split(text);
  if (quantity.unit.ends_with("/s")) quantity.unit.resize(quantity.unit.size() - 2);
  const double bits = factor_of(kBitUnits, quantity.unit);
  const double factor = bits > 0 ? bits : quantity.unit.empty() ? 0 : factor_of(kByteUnits, quantity.unit);
  const double rate = quantity.number * factor;
  if (!(rate > 0) || !std::isfinite(rate))
    throw ConfigError(fmt::format("{} \"{}\": must be a rate, such as 1gbit, 25gbit or 120MB/s", option, text));
  return rate;
}

std::vector<double> parse_rates(const std::string& text, const std::string& option) {
  std::vector<double> rates;
  for_parts(text, [&](const std::string& part) { rates.push_back(parse_rate(part, option)); });
  return rates;
}

}  // namespace echelon::inline base

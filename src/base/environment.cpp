// SPDX-License-Identifier: Apache-2.0
#include "base/environment.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

namespace echelon::inline base {
namespace {

template <typename T>
std::optional<T> read(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view value_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::optional<std::int64_t> whole_in_environment(const char* name, const std::string& meaning, std::int64_t low,
                                                 std::int64_t high) {
  const std::string_view text = value_of(name);
  if (text.empty()) return std::nullopt;
  const auto value = read<std::int64_t>(text);
  if (!value || *value < low || *value > high)
    throw ConfigError(fmt::format("{}={}: not a whole number of {} from {} to {}", name, text, meaning, low, high));
  return value;
}

std::optional<double> positive_in_environment(const char* name, const std::string& meaning) {
  const std::string_view text = value_of(name);
  if (text.empty()) return std::nullopt;
  const auto value = read<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0)
    throw ConfigError(fmt::format("{}={}: not a number of {} above 0", name, text, meaning));
  return value;
}

}  // namespace echelon::inline base

// SPDX-License-Identifier: Apache-2.0
#include "config/trace_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <vector>

#include "config/refuse.hpp"

namespace echelon::inline config {
namespace {

constexpr const char* kKey = "run.trace";
constexpr std::int64_t kMostStep = 1'000'000'000'000;

// Returns the whole numbers in a text, in order, capped at kMostStep.
std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> all;
  for (std::size_t at = 0; at < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
      ++at;
      continue;
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
    all.push_back(error == std::errc() ? std::min(number, kMostStep) : kMostStep);
    at = static_cast<std::size_t>(end - text.data());
  }
  return all;
}

std::string text_of(const TraceSteps& steps) { return fmt::format("steps {}..{}", steps.first, steps.last); }

// Suggests valid steps made of the numbers that were given.
TraceSteps nearest(const std::vector<std::int64_t>& numbers) {
  if (numbers.empty()) return {.first = 10, .last = 20};
  const std::int64_t first = std::max<std::int64_t>(1, numbers.front());
  const std::int64_t second = numbers.size() < 2 ? first : std::max<std::int64_t>(1, numbers[1]);
  return {.first = std::min(first, second), .last = std::max(first, second)};
}

}  // namespace

std::optional<TraceSteps> trace_steps(const Config& config) {
  const std::string& text = config.run.trace;
  if (text.empty()) return {};
  const TraceSteps steps = nearest(numbers_in(text));
  const bool one = steps.first == steps.last;
  if (text == text_of(steps) || (one && text == fmt::format("step {}", steps.first))) return steps;
  refuse(config, kKey,
         fmt::format(
             "run.trace = \"{}\" is not a range of steps, which are counted from 1 and increase; nearest valid: \"{}\"",
             text, text_of(steps)));
}

void check_trace_steps(const Config& config, std::int64_t total_steps) {
  const std::optional<TraceSteps> steps = trace_steps(config);
  if (!steps || steps->first <= total_steps) return;
  const std::int64_t length = steps->last - steps->first;
  refuse(config, kKey,
         fmt::format("run.trace = \"{}\" begins after the last step of the run, {}; nearest valid: \"{}\"",
                     config.run.trace, total_steps,
                     text_of({.first = std::max<std::int64_t>(1, total_steps - length), .last = total_steps})));
}

}  // namespace echelon::inline config

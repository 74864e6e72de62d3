// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutate.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

namespace echelon::fuzz {
namespace {

constexpr std::array<std::uint64_t, 20> kBoundaries = {
    0,   1,   2,      7,      8,          16,         63,         64,         127,        128,
    255, 256, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 32, 1ULL << 62, ~0ULL >> 1,
};

constexpr double kFlood = 0.002;  // share of all inputs

std::ptrdiff_t at(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

void set_integer(std::string& input, Draws& draws) {
  const std::size_t bytes = std::size_t{1} << draws.below(4);
  if (input.size() < bytes) return;
  const std::size_t first = draws.below(input.size() - bytes + 1);
  std::uint64_t value = draws.one_of(kBoundaries);
  if (draws.chance(0.3)) value = ~value;
  const bool big = draws.chance(0.3);
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t byte = big ? bytes - 1 - i : i;
    input[first + i] = static_cast<char>(value >> (8 * byte));
  }
}

// Picks a block of the input: first byte and length.
std::pair<std::size_t, std::size_t> block_of(const std::string& input, Draws& draws) {
  const std::size_t first = draws.below(input.size());
  const std::size_t most = std::min<std::size_t>(input.size() - first, draws.chance(0.2) ? 512 : 16);
  return {first, 1 + draws.below(most)};
}

void change_bytes(std::string& input, const std::vector<std::string>& others, Draws& draws) {
  if (input.empty()) {
    input = draws.bytes(1 + draws.below(16));
    return;
  }
  const auto [first, count] = block_of(input, draws);
  switch (draws.below(10)) {
    case 0:
    case 1: input[first] = static_cast<char>(input[first] ^ (1 << draws.below(8))); return;
    case 2: input[first] = static_cast<char>(draws.bits()); return;
    case 3:
    case 4: return set_integer(input, draws);
    case 5: input.replace(first, count, draws.bytes(count)); return;
    case 6: input.erase(first, count); return;
    case 7: input.insert(draws.below(input.size()), std::string(input, first, count)); return;
    case 8:
      if (draws.chance(0.3))
        input.resize(first);
      else
        input.replace(first, count, std::string(count, '\0'));
      return;
    default: {
      const std::string& other = others.empty() ? input : draws.one_of(others);
      if (other.empty()) return;
      const auto [from, length] = block_of(other, draws);
      const std::string part(other, from, length);
      input.replace(first, draws.chance(0.5) ? 0 : count, part);
    }
  }
}

// Repeats a short block many times: deep or long input for a reader that recurses.
void flood(std::string& input, Draws& draws) {
  if (input.empty()) return;
  const std::size_t first = draws.below(input.size());
  const std::string block(input, first, 1 + draws.below(4));
  std::string many;
  for (std::size_t i = std::size_t{1} << (8 + draws.below(11)); i > 0; --i) many += block;
  input.insert(first, many);
}

void change_number(std::string& text, Draws& draws) {
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end > i) numbers.emplace_back(i, end - i);
    i = end + 1;
  }
  if (numbers.empty()) return;
  const auto [first, count] = draws.one_of(numbers);
  text.replace(first, count, boundary_text(draws));
}

void change_lines(std::string& text, const std::vector<std::string>& others, Draws& draws) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) return;
  const std::size_t line = draws.below(lines.size()), to = draws.below(lines.size());
  switch (draws.below(4)) {
    case 0: lines.erase(lines.begin() + at(line)); break;
    case 1: lines.insert(lines.begin() + at(to), std::string(lines[line])); break;
    case 2: std::swap(lines[line], lines[to]); break;
    default:
      if (others.empty()) break;
      if (const auto theirs = lines_of(draws.one_of(others)); !theirs.empty())
        lines.insert(lines.begin() + at(to), draws.one_of(theirs));
  }
  text = joined_lines(lines);
}

}  // namespace

std::string boundary_text(Draws& draws) {
  static const std::array<std::string, 24> kOdd = {"0",          "-0",
                                                   "-1",         "+1",
                                                   "1e308",      "1e309",
                                                   "-1e309",     "1e-400",
                                                   "nan",        "inf",
                                                   "-inf",       "0x10",
                                                   "1_000",      "007",
                                                   "1.",         ".5",
                                                   "1e",         "1e99",
                                                   "0.0",        "0.5",
                                                   "16777217",   "9007199254740993",
                                                   "4294967296", "18446744073709551616"};
  if (draws.chance(0.5)) return draws.one_of(kOdd);
  const std::uint64_t value = draws.one_of(kBoundaries);
  return (draws.chance(0.3) ? "-" : "") + std::to_string(value);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string mutate_bytes(std::string input, const std::vector<std::string>& others, Draws& draws) {
  const std::size_t changes = draws.chance(0.5) ? 1 : 1 + draws.below(8);
  for (std::size_t i = 0; i < changes; ++i) change_bytes(input, others, draws);
  if (draws.chance(kFlood)) flood(input, draws);
  return input;
}

std::string mutate_text(std::string input, const std::vector<std::string>& others,
                        const std::vector<std::string>& words, Draws& draws) {
  const std::size_t changes = 1 + draws.below(4);
  for (std::size_t i = 0; i < changes; ++i) {
    switch (draws.below(4)) {
      case 0: change_number(input, draws); break;
      case 1: change_lines(input, others, draws); break;
      case 2:
        if (words.empty()) break;
        if (const std::size_t place = draws.below(input.size() + 1); true) input.insert(place, draws.one_of(words));
        break;
      default: {  // replaces one word by another
        if (words.empty()) break;
        const std::string& from = draws.one_of(words);
        const std::size_t place = input.find(from);
        if (!from.empty() && place != std::string::npos) input.replace(place, from.size(), draws.one_of(words));
      }
    }
  }
  if (draws.chance(0.25)) change_bytes(input, others, draws);
  if (draws.chance(kFlood)) flood(input, draws);
  return input;
}

}  // namespace echelon::fuzz

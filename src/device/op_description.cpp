// SPDX-License-Identifier: Apache-2.0
#include "device/op_description.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace echelon::inline device {
namespace {

std::string text_of(const OpDescription::Value& value) {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

void append(std::string& words, std::string_view word) {
  if (!words.empty()) words += ' ';
  words += word;
}

}  // namespace

OpDescription& OpDescription::require(bool holds, std::string_view otherwise, std::initializer_list<Value> values,
                                      std::source_location where) {
  if (holds) return *this;
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const Value& value : values) store.push_back(text_of(value));
  check_failed(where.file_name(), static_cast<int>(where.line()), "the dims must describe an op", {},
               fmt::vformat(otherwise, store));
}

OpDescription& OpDescription::extents(std::initializer_list<std::pair<std::string_view, std::int64_t>> named) {
  for (const auto& [letter, extent] : named) append(words_, fmt::format("{}{}", letter, extent));
  return *this;
}

OpDescription& OpDescription::word(std::string_view text) { return append(words_, text), *this; }
OpDescription& OpDescription::word(std::string_view name, const Value& value) {
  return word(fmt::format("{} {}", name, text_of(value)));
}

OpDescription& OpDescription::flag(bool shown, std::string_view text) {
  if (shown) append(flags_, text);
  return *this;
}
OpDescription& OpDescription::flag(bool shown, std::string_view name, const Value& value) {
  return flag(shown, fmt::format("{} {}", name, text_of(value)));
}

std::string OpDescription::text() const {
  std::string text = words_;
  if (!flags_.empty()) append(text, flags_);
  return text;
}

double OpDescription::flops() const { return flops_.value_or(static_cast<double>(args_.front().shape.elems())); }

double OpDescription::traffic_bytes() const {
  if (traffic_bytes_) return *traffic_bytes_;
  double bytes = 0;
  for (const ArgInfo& arg : args_) {
    const double steps = one_step_ && arg.shape.rank() == 3 ? static_cast<double>(arg.shape[1]) : 1;
    bytes += static_cast<double>(arg.shape.elems()) * static_cast<double>(size_of(arg.dtype)) / steps;
  }
  return bytes;
}

int argument_index(const std::vector<ArgInfo>& args, std::string_view name) {
  const auto found = std::find_if(args.begin(), args.end(), [&](const ArgInfo& arg) { return arg.name == name; });
  return found == args.end() ? -1 : static_cast<int>(found - args.begin());
}

}  // namespace echelon::inline device

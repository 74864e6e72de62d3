// SPDX-License-Identifier: Apache-2.0
// Supplies what clang-tidy 14 (`make analyze`) lacks beside g++ 12: names of newer processor features, and the builtin
// behind std::source_location. Nothing that is built includes this file.
#pragma once

#include <cstdint>
#include <version>

#define __builtin_cpu_supports(feature) (sizeof(feature) > 1)

#ifndef __cpp_lib_source_location
namespace std {
struct source_location {
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           const char* function = __builtin_FUNCTION(),
                                           uint_least32_t line = __builtin_LINE()) noexcept {
    source_location where;
    where.file_ = file, where.function_ = function, where.line_ = line;
    return where;
  }
  constexpr const char* file_name() const noexcept { return file_; }
  constexpr const char* function_name() const noexcept { return function_; }
  constexpr uint_least32_t line() const noexcept { return line_; }
  constexpr uint_least32_t column() const noexcept { return 0; }

 private:
  const char *file_ = "", *function_ = "";
  uint_least32_t line_ = 0;
};
}  // namespace std
#endif

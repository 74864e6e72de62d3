// SPDX-License-Identifier: Apache-2.0
// Checks of the program's own assumptions ("a failed check" in the contracts of other headers). They are active in
// release builds. A failed one is a defect of echelon and throws Error(kExitInternal) with file:line, the condition,
// both operands, the rank of the thread and a hint. Mistakes of the user are one of the other error types of error.hpp
// instead. A check that passes costs one comparison, because the hint is formatted only after a failure.
//
//   ECHELON_CHECK(ready, "begin_step() comes first");
//   ECHELON_CHECK_EQ(grads.elems, weights.elems, "arena of {}", name);
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace echelon::inline base {

// The rank to which messages and failed checks of this thread are attributed; -1 before a world exists. It is
// thread-local and not inherited: every thread that a rank starts must set its own.
void set_thread_rank(int rank);
int thread_rank();

// Throws; `file` is shortened to start at src/.
[[noreturn]] void check_failed(const char* file, int line, std::string_view condition, const std::string& operands,
                               const std::string& hint);

namespace detail {
inline std::string hint() { return {}; }
template <class... Args>
std::string hint(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::format(text, std::forward<Args>(args)...);
}
}  // namespace detail

}  // namespace echelon::inline base

#define ECHELON_CHECK(condition, ...)                                                                    \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]]                                                                       \
      ::echelon::check_failed(__FILE__, __LINE__, #condition, {}, ::echelon::detail::hint(__VA_ARGS__)); \
  } while (false)

#define ECHELON_CHECK_OP(a, op, b, ...)                                           \
  do {                                                                            \
    const auto& check_a_ = (a);                                                   \
    const auto& check_b_ = (b);                                                   \
    if (!(check_a_ op check_b_)) [[unlikely]]                                     \
      ::echelon::check_failed(__FILE__, __LINE__, #a " " #op " " #b,              \
                              ::fmt::format("{} against {}", check_a_, check_b_), \
                              ::echelon::detail::hint(__VA_ARGS__));              \
  } while (false)

#define ECHELON_CHECK_EQ(a, b, ...) ECHELON_CHECK_OP(a, ==, b, ##__VA_ARGS__)
#define ECHELON_CHECK_NE(a, b, ...) ECHELON_CHECK_OP(a, !=, b, ##__VA_ARGS__)
#define ECHELON_CHECK_LT(a, b, ...) ECHELON_CHECK_OP(a, <, b, ##__VA_ARGS__)
#define ECHELON_CHECK_LE(a, b, ...) ECHELON_CHECK_OP(a, <=, b, ##__VA_ARGS__)
#define ECHELON_CHECK_GE(a, b, ...) ECHELON_CHECK_OP(a, >=, b, ##__VA_ARGS__)
#define ECHELON_CHECK_GT(a, b, ...) ECHELON_CHECK_OP(a, >, b, ##__VA_ARGS__)

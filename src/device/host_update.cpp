// SPDX-License-Identifier: Apache-2.0
#include "device/host_update.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.hpp"
#include "device/update_rules/choose.hpp"

namespace echelon::inline device {
namespace {

// With fewer elements, waking a team of threads costs more than it saves.
constexpr std::size_t kElemsPerThread = 32768;

template <class Rule, class T>
void apply_range(T* w, const T* g, T* const* states, std::size_t n, RuleScalars scalars) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) Rule::apply(w[i], g[i], states, i, scalars);
}

template <class Rule, class T>
class HostUpdate final : public Update {
 public:
  explicit HostUpdate(int threads) : threads_(std::max(1, threads)) {}

  void apply(void* w, const void* g, std::span<void* const> states, std::size_t n,
             const RuleScalars& scalars) override {
    ECHELON_CHECK_EQ(states.size(), static_cast<std::size_t>(Rule::kStates),
                     "rule {} was given the wrong number of states", Rule::kName);
    const auto parts =
        static_cast<int>(std::clamp<std::size_t>(n / kElemsPerThread, 1, static_cast<std::size_t>(threads_)));
    if (parts == 1) return part(w, g, states, 0, n, scalars);
#pragma omp parallel for num_threads(parts) schedule(static)
    for (int p = 0; p < parts; ++p) {
      const auto at = [&](int index) { return n * static_cast<std::size_t>(index) / static_cast<std::size_t>(parts); };
      part(w, g, states, at(p), at(p + 1), scalars);
    }
  }

  // Applies the rule to runs of rows, divided among threads by words of marks if there is enough work.
  void apply_rows(void* w, const void* g, std::span<void* const> states, const RowMarks& marks,
                  const RuleScalars& scalars) override {
    ECHELON_CHECK_EQ(states.size(), static_cast<std::size_t>(Rule::kStates),
                     "rule {} was given the wrong number of states", Rule::kName);
    const std::int64_t words = row_words(marks.rows);
    std::int64_t rows = 0;
    for (std::int64_t i = 0; i < words; ++i) rows += std::popcount(marks.words[i]);
    const auto parts = static_cast<int>(
        std::clamp<std::int64_t>(rows * marks.width / static_cast<std::int64_t>(kElemsPerThread), 1, threads_));
#pragma omp parallel for num_threads(parts) schedule(static) if (parts > 1)
    for (int p = 0; p < parts; ++p) {
      const std::int64_t begin = words * p / parts * kRowsOfWord;
      const std::int64_t end = std::min(marks.rows, words * (p + 1) / parts * kRowsOfWord);
      for_each_run(marks.words + begin / kRowsOfWord, end - begin, [&](std::int64_t first, std::int64_t count) {
        const std::int64_t at = (begin + first) * marks.width;
        part(w, g, states, static_cast<std::size_t>(at), static_cast<std::size_t>(at + count * marks.width), scalars);
      });
    }
  }

 private:
  static void part(void* w, const void* g, std::span<void* const> states, std::size_t begin, std::size_t end,
                   const RuleScalars& scalars) {
    std::array<T*, std::max(1, Rule::kStates)> parts{};
    for (std::size_t s = 0; s < states.size(); ++s) parts[s] = static_cast<T*>(states[s]) + begin;
    apply_range<Rule>(static_cast<T*>(w) + begin, static_cast<const T*>(g) + begin, parts.data(), end - begin, scalars);
  }

  int threads_;
};

template <class Rule>
std::unique_ptr<Update> make_rule(DType dtype, int threads) {
  ECHELON_CHECK(dtype == DType::f32 || dtype == DType::f64, "rule {} cannot update parameters of dtype {}", Rule::kName,
                name_of(dtype));
  return with_float(
      dtype, [&]<class T>(T) -> std::unique_ptr<Update> { return std::make_unique<HostUpdate<Rule, T>>(threads); });
}

}  // namespace

std::unique_ptr<Update> make_host_update(std::string_view rule, DType dtype, int threads) {
  return with_rule(rule, [&]<class Rule>() { return make_rule<Rule>(dtype, threads); });
}

}  // namespace echelon::inline device

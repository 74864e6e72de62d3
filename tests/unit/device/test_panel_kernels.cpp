// SPDX-License-Identifier: Apache-2.0
// The panel kernels at every number of rows and columns: those that this CPU runs; those of AVX-512 and AVX512_BF16
// with their instructions in plain C++ (avx512_on_cpu.hpp); and both with the same bits on CPUs that have these.
#include "device/onednn/panel_kernel.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "base/processor.hpp"
#include "tests/support/random.hpp"

namespace echelon::inline device {
namespace emulated_single {
using namespace onednn;
}
namespace emulated_halves {
using namespace onednn;
using namespace emulated_single;  // what both kernels share (panel_512.hpp)
}  // namespace emulated_halves
}  // namespace echelon::inline device

#include "tests/unit/device/avx512_on_cpu.hpp"
#define onednn emulated_single
#include "device/onednn/panel_kernel.cpp"
#undef onednn
#define onednn emulated_halves
#include "device/onednn/half_panel_kernel.cpp"
#undef onednn
#undef __attribute__

using namespace echelon;
using onednn::BHalf;
using onednn::PanelBlock;

namespace {

template <class T>
using Kernel = void (*)(int rows, const PanelBlock<T>& block);

float value_of(float x) { return x; }
float value_of(BHalf x) { return onednn::widened(x); }

template <class T>
std::vector<T> drawn(std::int64_t n, const std::string& name) {
  std::vector<T> values;
  for (const double value : test::random_values(static_cast<std::size_t>(n), name)) {
    if constexpr (sizeof(T) == sizeof(float))
      values.push_back(static_cast<T>(value));
    else
      values.push_back(onednn::rounded(static_cast<float>(value)));
  }
  return values;
}

// A product of rows of x, which lie a few elements apart, with a panel; it gives some columns of y.
template <class T>
struct Problem {
  int rows;
  std::int64_t depth, columns, panel, x_row, y_row;
  bool add;
  std::vector<T> x, w;
  std::vector<float> y;

  Problem(int its_rows, std::int64_t its_depth, std::int64_t its_columns, std::int64_t its_panel, bool adds)
      : rows(its_rows),
        depth(its_depth),
        columns(its_columns),
        panel(its_panel),
        x_row(depth + 3),
        y_row(panel + 5),
        add(adds),
        x(drawn<T>(rows * x_row, "x")),
        w(drawn<T>(depth * panel, "w")),
        y(drawn<float>(rows * y_row, "y")) {}

  std::vector<float> run(Kernel<T> kernel, bool avx512) const {
    std::vector<float> result = y;
    PanelBlock<T> block;
    block.x = x.data(), block.x_row = x_row, block.w = w.data(), block.y = result.data(), block.y_row = y_row;
    block.depth = depth, block.columns = columns, block.add = add, block.avx512 = avx512;
    block.ahead = reinterpret_cast<const std::byte*>(w.data());
    kernel(rows, block);
    return result;
  }
  double weight(std::int64_t k, std::int64_t c) const {
    const std::int64_t at = sizeof(T) == sizeof(float) ? k * panel + c : (k / 2 * panel + c) * 2 + k % 2;
    return value_of(w[static_cast<std::size_t>(at)]);
  }
  // Checks the product, and that everything outside the block is unchanged.
  void check(const std::vector<float>& result) const {
    double worst = 0;
    bool untouched = true;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < y_row; ++c) {
        const auto at = static_cast<std::size_t>(r * y_row + c);
        if (c >= columns) {
          untouched &= result[at] == y[at];
          continue;
        }
        double sum = add ? y[at] : 0, scale = std::abs(sum);
        for (std::int64_t k = 0; k < depth; ++k) {
          const double term = value_of(x[static_cast<std::size_t>(r * x_row + k)]) * weight(k, c);
          sum += term, scale += std::abs(term);
        }
        const double error = std::abs(result[at] - sum) / (scale + 1e-30);
        if (!(error <= worst)) worst = error;  // true for NaN too
      }
    CHECK(worst < static_cast<double>(depth + 2) * std::numeric_limits<float>::epsilon() / 2);  // one rounding per term
    CHECK(untouched);
  }
};

template <class T>
void check_all(const onednn::PanelForm& form, const std::vector<std::int64_t>& depths,
               const std::function<void(const Problem<T>&)>& check) {
  for (int rows = 1; rows <= form.rows; ++rows)
    for (std::int64_t columns = 1; columns <= form.columns; ++columns)
      for (const std::int64_t depth : depths)
        for (const bool add : {false, true}) {
          CAPTURE(rows, columns, depth, add);
          check(Problem<T>(rows, depth, columns, form.columns, add));
        }
}

}  // namespace

TEST_CASE("panels of f32 at every number of rows and columns", "[onednn][panels]") {
  check_all<float>(onednn::kPanels512, {1, 6, 19}, [](const Problem<float>& problem) {
    const std::vector<float> emulated = problem.run(emulated_single::multiply_panel, true);
    problem.check(emulated);
    if (processor_has(Isa::avx512)) CHECK(problem.run(onednn::multiply_panel, true) == emulated);
  });
  check_all<float>(onednn::kPanels256, {1, 6, 19},
                   [](const Problem<float>& problem) { problem.check(problem.run(onednn::multiply_panel, false)); });
}

TEST_CASE("panels of bf16 at every number of rows and columns", "[onednn][halves][panels]") {
  check_all<BHalf>(onednn::kPanels512, {2, 6, 18}, [](const Problem<BHalf>& problem) {
    const std::vector<float> emulated = problem.run(emulated_halves::multiply_panel, true);
    problem.check(emulated);
    if (processor_has(Isa::avx512_bf16)) CHECK(problem.run(onednn::multiply_panel, true) == emulated);
    problem.check(problem.run(onednn::multiply_panel, false));
  });
}

// SPDX-License-Identifier: Apache-2.0
// Synthetic fields beside a plain Fourier sum: their power has the index and amplitude that their targets tell.
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <numbers>

#include "base/error.hpp"
#include "data/import/source.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"

using namespace echelon;

namespace {

// |sum over x of f(x) exp(-2 pi i k x / n)|^2 of a field (n, m).
double power(const float* field, int n, int m, int k, int l) {
  std::complex<double> sum = 0;
  for (int x = 0; x < n; ++x)
    for (int y = 0; y < m; ++y)
      sum += static_cast<double>(field[x * m + y]) *
             std::polar(1.0, -2 * std::numbers::pi * (static_cast<double>(k * x) / n + static_cast<double>(l * y) / m));
  return std::norm(sum);
}

}  // namespace

TEST_CASE("synthetic fields have the spectrum of their targets", "[import]") {
  constexpr int kRows = 6, kColumns = 9, kSamples = 400, kCells = kRows * kColumns;
  const auto source = make_fields({.samples = kSamples, .shape = {2, kRows, kColumns}, .seed = verify::test_seed()});
  CHECK(source->info().targets == 2);
  std::vector<float> fields(2 * kSamples * kCells), targets(2 * kSamples), again(fields.size());
  REQUIRE(source->read(kSamples, reinterpret_cast<std::uint8_t*>(fields.data()), targets.data()) == kSamples);
  CHECK(source->read(1, nullptr, nullptr) == 0);

  // The power of each frequency over its expectation is 1 on average, for the lowest ones and the highest ones.
  double low = 0, high = 0, squares = 0;
  int lows = 0, highs = 0;
  for (int i = 0; i < kSamples; ++i) {
    REQUIRE(std::abs(targets[2 * i]) <= 1);
    REQUIRE(std::abs(targets[2 * i + 1]) <= 1);
    const double index = 2.5 + 1.5 * static_cast<double>(targets[2 * i]);
    const double amplitude = 1.25 + 0.75 * static_cast<double>(targets[2 * i + 1]);
    const float* field = fields.data() + (2 * i + i % 2) * kCells;
    const auto expected = [&](int k, int l) {
      const double a = std::min(k, kRows - k), b = std::min(l, kColumns - l);
      return std::pow(a * a + b * b, -index / 2);
    };
    double norm = 0;
    for (int k = 0; k < kRows; ++k)
      for (int l = k == 0 ? 1 : 0; l < kColumns; ++l) norm += expected(k, l);
    for (int k = 0; k < kRows; ++k)
      for (int l = k == 0 ? 1 : 0; l < kColumns; ++l) {
        const double over = power(field, kRows, kColumns, k, l) * norm / expected(k, l) /
                            (amplitude * amplitude * static_cast<double>(kCells) * static_cast<double>(kCells));
        const bool is_low = std::min(k, kRows - k) + std::min(l, kColumns - l) <= 2;
        (is_low ? low : high) += over;
        ++(is_low ? lows : highs);
      }
    for (int cell = 0; cell < kCells; ++cell) squares += std::pow(static_cast<double>(field[cell]) / amplitude, 2);
  }
  // Power of a frequency is exponential, and frequencies pair up as conjugates: the mean over the low ones has a
  // deviation of 1 / sqrt(2400) = 0.02; the margin is five of them.
  CHECK(low / lows == Approx(1).margin(0.11));
  CHECK(high / highs == Approx(1).margin(0.11));
  CHECK(squares / kSamples / kCells == Approx(1).margin(0.11));

  source->rewind();
  REQUIRE(source->read(7, reinterpret_cast<std::uint8_t*>(again.data()), targets.data()) == 7);
  CHECK(std::equal(again.begin(), again.begin() + 7 * 2 * kCells, fields.begin()));
}

TEST_CASE("synthetic fields have one to three spatial axes with more than one place", "[import]") {
  for (const Shape& shape : {Shape{1, 5}, Shape{1, 3, 2}, Shape{2, 2, 3, 4}})
    CHECK(make_fields({.samples = 1, .shape = shape})->info().sample == shape);
  CHECK(test::refusal<ConfigError>([] {
          make_fields({.samples = 1, .shape = {4, 1, 1}});
        }).find("one place") != std::string::npos);
  CHECK(test::refusal<ConfigError>([] {
          make_fields({.samples = 0, .shape = {1, 4}});
        }).find("--samples") != std::string::npos);
}

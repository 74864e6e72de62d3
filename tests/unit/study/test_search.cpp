// SPDX-License-Identifier: Apache-2.0
// Searches: the meaning of a coordinate, and how soon each method finds the minimum of known functions.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "study/search/gaussian_process.hpp"
#include "study/search/proposer.hpp"

namespace echelon {
namespace {

// Branin and Hartmann-6 on the unit cube; minima 0.397887 and -3.32237.
double branin(const Point& p) {
  const double x = 15 * p[0] - 5, y = 15 * p[1];
  const double a = y - 5.1 / (4 * M_PI * M_PI) * x * x + 5 / M_PI * x - 6;
  return a * a + 10 * (1 - 1 / (8 * M_PI)) * std::cos(x) + 10;
}

double hartmann(const Point& p) {
  constexpr double kAlpha[4] = {1, 1.2, 3, 3.2};
  constexpr double kA[4][6] = {
      {10, 3, 17, 3.5, 1.7, 8}, {.05, 10, 17, .1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, .05, 10, .1, 14}};
  constexpr double kP[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                               {2329, 4135, 8307, 3736, 1004, 9991},
                               {2348, 1451, 3522, 2883, 3047, 6650},
                               {4047, 8828, 8732, 5743, 1091, 381}};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double exponent = 0;
    for (std::size_t j = 0; j < 6; ++j) exponent += kA[i][j] * std::pow(p[j] - 1e-4 * kP[i][j], 2);
    sum -= kAlpha[i] * std::exp(-exponent);
  }
  return sum;
}

// Returns the trials until the value is at most `good`, or `most` where it takes more.
int trials_to(const std::function<double(const Point&)>& f, std::size_t dimensions, SearchMethod method,
              std::uint64_t seed, double good, int most) {
  const Proposer proposer(method, std::vector<SearchRange>(dimensions), seed);
  std::vector<Trial> trials;
  for (int n = 1; n <= most; ++n) {
    const Point point = method == SearchMethod::random ? random_point(dimensions, seed, static_cast<std::uint64_t>(n))
                                                       : *proposer.next(trials);
    const double value = f(point);
    if (value <= good) return n;
    if (method != SearchMethod::random) trials.push_back({point, value});
  }
  return most;
}

int median_trials(const std::function<double(const Point&)>& f, std::size_t dimensions, SearchMethod method, int seeds,
                  double good, int most) {
  std::vector<int> all;
  for (int seed = 1; seed <= seeds; ++seed)
    all.push_back(trials_to(f, dimensions, method, static_cast<std::uint64_t>(seed), good, most));
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace

TEST_CASE("a coordinate stands for a value of its range, settled in the middle of its like", "[study][search]") {
  const SearchRange rate{.key = "a", .low = 1e-4, .high = 1, .logarithmic = true};
  CHECK(rate.value(0) == "0.0001");
  CHECK(rate.value(0.5) == "0.01");
  CHECK(rate.value(1) == "1.0");
  const SearchRange layers{.key = "b", .low = 2, .high = 5, .whole = true};
  CHECK(layers.value(0) == "2");
  CHECK(layers.value(0.99) == "5");
  CHECK(layers.settle(0.3) == Approx(1.0 / 3));
  const SearchRange rule{.key = "c", .choices = {"\"sgd\"", "\"adam\"", "\"lamb\""}};
  CHECK(rule.value(0.2) == "\"sgd\"");
  CHECK(rule.value(1) == "\"lamb\"");
  CHECK(rule.settle(0.4) == Approx(0.5));
  for (const SearchRange& range : {rate, layers, rule})
    for (std::uint64_t i = 0; i < 100; ++i) {
      const double at = static_cast<double>(i) / 99;
      CHECK(range.value(range.settle(at)) == range.value(at));
      CHECK(range.settle(range.settle(at)) == Approx(range.settle(at)));
    }
}

TEST_CASE("a grid has every combination once, from end to end", "[study][search]") {
  const Proposer grid(SearchMethod::grid,
                      {{.key = "x", .low = 0, .high = 3},
                       {.key = "n", .low = 1, .high = 2, .whole = true},
                       {.key = "c", .choices = {"a", "b", "c"}}},
                      1, 4);
  CHECK(grid.grid_size() == 4 * 2 * 3);
  std::vector<Trial> trials;
  std::vector<std::string> seen;
  while (const std::optional<Point> point = grid.next(trials)) {
    std::string text;
    for (std::size_t d = 0; d < 3; ++d) text += grid.ranges()[d].value((*point)[d]) + " ";
    seen.push_back(text);
    trials.push_back({*point, 1});
  }
  CHECK(seen.size() == 24);
  CHECK(seen.front() == "0.0 1 a ");
  CHECK(seen.back() == "3.0 2 c ");
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("a Gaussian process passes through its points and knows which dimension matters", "[study][search]") {
  const auto f = [](const Point& p) { return std::sin(6 * p[0]) + 0.02 * p[2]; };  // p[1] has no effect
  std::vector<Point> points;
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 40; ++i) {
    points.push_back(random_point(3, 5, i));
    values.push_back(f(points.back()));
  }
  GaussianProcess process;
  process.fit(points, values);
  for (std::size_t i = 0; i < points.size(); ++i) CHECK(process.at(points[i]).mean == Approx(values[i]).margin(0.02));
  for (std::uint64_t i = 100; i < 120; ++i) {
    const Point point = random_point(3, 5, i);
    CHECK(process.at(point).mean == Approx(f(point)).margin(0.1));
    CHECK(process.at(point).deviation < 0.2);
  }
  const std::vector<double> effects = process.main_effects();
  CHECK(effects[0] > 0.9);
  CHECK(effects[1] < 0.02);
  CHECK(effects[2] < 0.02);
}

TEST_CASE("the expected improvement is the mean of what a trial would gain", "[study][search]") {
  CHECK(expected_improvement(0, 1, 0) == Approx(0.3989).epsilon(1e-3));
  CHECK(expected_improvement(-2, 1e-9, 0) == Approx(2));
  CHECK(expected_improvement(2, 0.1, 0) < 1e-12);
  CHECK(known_values({{{}, 1}, {{}, std::nan("")}, {{}, 3}}) == std::vector<double>{1, 3, 3});
}

TEST_CASE("proposals follow from the trials alone, failed ones included", "[study][search]") {
  const Proposer proposer(SearchMethod::bayesian, std::vector<SearchRange>(2), 3), same = proposer;
  std::vector<Trial> trials;
  for (int i = 0; i < 12; ++i) {
    const Point point = *proposer.next(trials);
    CHECK(*same.next(trials) == point);
    trials.push_back({point, i % 3 == 0 ? std::nan("") : branin(point)});
  }
}

TEST_CASE("Bayesian search comes within 1 % of Branin's and Hartmann's minimum in few trials", "[study][search]") {
  constexpr int kRandom = 2000;
  const int found = median_trials(branin, 2, SearchMethod::bayesian, 5, 0.397887 * 1.01, 120);
  CAPTURE(found);
  CHECK(2 * found <= median_trials(branin, 2, SearchMethod::random, 5, 0.397887 * 1.01, kRandom));
  CHECK(found <= 60);
}

TEST_CASE("the same over 20 seeds, and in six dimensions", "[study][search][.soak]") {
  const int two = median_trials(branin, 2, SearchMethod::bayesian, 20, 0.397887 * 1.01, 120);
  const int six = median_trials(hartmann, 6, SearchMethod::bayesian, 20, -3.32237 * 0.99, 120);
  CAPTURE(two, six);
  CHECK(2 * two <= median_trials(branin, 2, SearchMethod::random, 20, 0.397887 * 1.01, 20000));
  CHECK(2 * six <= median_trials(hartmann, 6, SearchMethod::random, 20, -3.32237 * 0.99, 100000));
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Adasum on vectors worked out by hand, and its plan compared with a plain tree in double.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "comm/collective/adasum.hpp"
#include "tests/support/plan_world.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Values = std::vector<double>;

Values combined(const Values& a, const Values& b) {
  Values to(a.size());
  adasum(DType::f64, a.data(), b.data(), to.data(), static_cast<std::int64_t>(a.size()));
  return to;
}

// Combines a and b on [begin, end) as the paper defines it.
void plain_adasum(Values& a, const Values& b, std::size_t begin, std::size_t end) {
  double aa = 0, ab = 0, bb = 0;
  for (std::size_t i = begin; i < end; ++i) aa += a[i] * a[i], ab += a[i] * b[i], bb += b[i] * b[i];
  for (std::size_t i = begin; i < end; ++i)
    a[i] = aa == 0 || bb == 0 ? a[i] + b[i] : (1 - ab / (2 * aa)) * a[i] + (1 - ab / (2 * bb)) * b[i];
}

constexpr std::int64_t kElems = 29;
// Parameters of 7, 1 and 12 values, and a running statistic of 9 values.
const std::vector<AdasumForm::Part> kParts = {{{0, 7}}, {{7, 8}}, {{8, 20}}, {{20, kElems}, true}};

Values plain_tree(std::vector<Values> ranks) {
  const auto into = [](Values& a, const Values& b) {
    for (const AdasumForm::Part& part : kParts) {
      const auto begin = static_cast<std::size_t>(part.range.begin), end = static_cast<std::size_t>(part.range.end);
      if (!part.summed) plain_adasum(a, b, begin, end);
      for (std::size_t i = begin; i < end && part.summed; ++i) a[i] += b[i];
    }
  };
  std::size_t p = 1;
  while (2 * p <= ranks.size()) p *= 2;
  for (std::size_t r = 0; ranks.size() > p; ++r) {  // rank 0 with 1, rank 2 with 3, ..
    into(ranks[r], ranks[r + 1]);
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(r) + 1);
  }
  for (std::size_t apart = 1; apart < p; apart *= 2)
    for (std::size_t r = 0; r < p; r += 2 * apart) into(ranks[r], ranks[r + apart]);
  return ranks[0];
}

}  // namespace

TEST_CASE("Adasum of hand-worked vectors", "[adasum]") {
  CHECK(combined({3, 0, 0}, {0, -2, 5}) == Values{3, -2, 5});    // orthogonal: the sum
  CHECK(combined({1, -2, 4}, {1, -2, 4}) == Values{1, -2, 4});   // equal: their mean
  CHECK(combined({1, -2, 4}, {3, -6, 12}) == Values{2, -4, 8});  // parallel: the mean of both
  CHECK(combined({2, 4}, {-2, -4}) == Values{0, 0});             // opposite: 1.5 a + 1.5 b
  CHECK(combined({0, 0}, {0, 0}) == Values{0, 0});
  CHECK(combined({0, 0}, {5, -1}) == Values{5, -1});
  CHECK(combined({5, -1}, {0, 0}) == Values{5, -1});
  // a.b = 4, |a|^2 = 4, |b|^2 = 8: a / 2 + 3 b / 4
  CHECK(combined({2, 0}, {2, 2}) == Values{2.5, 1.5});
  const std::vector<float> a = {2, 0}, b = {2, 2};
  std::vector<float> to(2);
  adasum(DType::f32, a.data(), b.data(), to.data(), 2);
  CHECK(to == std::vector<float>{2.5f, 1.5f});
}

TEST_CASE("the plan of Adasum is a fixed tree with the same bits on all ranks, and sends what its price says",
          "[adasum]") {
  for (std::size_t k = 1; k <= 9; ++k)
    for (const int window : {kLeastWindow, 16}) {
      CAPTURE(k, window);
      std::vector<Values> data;
      for (std::size_t r = 0; r < k; ++r) data.push_back(test::random_values(kElems, "rank " + std::to_string(r)));
      if (k > 2) std::fill(data[1].begin(), data[1].begin() + 7, 0.0);
      const Values wanted = plain_tree(data);
      RankPlans plans;
      std::vector<void*> buffers;
      std::vector<std::unique_ptr<AdasumForm>> forms;
      std::vector<WireForm*> raw;
      const auto ranks = static_cast<int>(k);
      for (int r = 0; r < ranks; ++r) {
        plans.push_back(make_adasum({.rank = r, .ranks = ranks, .elems = kElems, .segment_elems = 4}));
        buffers.push_back(data[static_cast<std::size_t>(r)].data());
        forms.push_back(std::make_unique<AdasumForm>(DType::f64, r, ranks, kElems, kParts));
        raw.push_back(forms.back().get());
      }
      for (int again = 0; again < 2; ++again) {
        const std::vector<Values> before = data;
        const Values of_before = again == 0 ? wanted : plain_tree(before);
        const std::vector<WireCounters> counters = test::run_plans(plans, buffers, DType::f64, window, raw);
        for (const Values& of_rank : data) CHECK(of_rank == data[0]);
        for (std::size_t i = 0; i < data[0].size(); ++i)
          CHECK(data[0][i] == Approx(of_before[i]).epsilon(1e-12).margin(1e-14));
        std::uint64_t bytes = 0, messages = 0;
        for (const WireCounters& of_rank : counters) bytes += of_rank.bytes_sent, messages += of_rank.messages_sent;
        std::uint64_t p = 1, rounds = 0;
        while (2 * p <= k) p *= 2, ++rounds;
        const std::uint64_t times = p * rounds + 2 * (k - p);
        CHECK(messages == times);
        CHECK(bytes == times * kElems * 8);
        const Price price = price_adasum({.ranks = ranks, .elems = kElems});
        CHECK(static_cast<std::uint64_t>(price.payload_elems) * 8 == bytes);
        CHECK(static_cast<std::uint64_t>(price.messages) == messages);
      }
    }
}

}  // namespace echelon

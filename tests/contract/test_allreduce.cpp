// SPDX-License-Identifier: Apache-2.0
// Compares every registered all-reduce with its row of the price list (configs/strategies/ALLREDUCE.md) and the sum.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "tests/support/allreduce_check.hpp"
#include "tests/support/plan_world.hpp"
#include "tests/support/price_rows.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using test::Row;
using test::row_of;

namespace {

RankPlans plans_of(const std::string& name, int k, std::int64_t n, std::int64_t segment) {
  RankPlans plans;
  for (int r = 0; r < k; ++r)
    plans.push_back(make_allreduce(name, {.rank = r, .ranks = k, .elems = n, .segment_elems = segment, .hosts = {}}));
  return plans;
}

void check_exact(const std::string& name, int k, std::int64_t n, std::int64_t segment, int window, DType dtype) {
  CAPTURE(name, k, n, segment, window, name_of(dtype));
  test::check_exact(plans_of(name, k, n, segment), n, window, dtype, row_of(name, k, n, segment));
}

// Sums fractions: every rank must have the same bits, which are near the sum in double. Rank r takes the drawn values
// from another offset.
void check_bits(const std::string& name, int k, std::int64_t segment, const std::vector<double>& drawn) {
  const auto n = static_cast<std::int64_t>(drawn.size());
  CAPTURE(name, k, n, segment);
  std::vector<std::vector<float>> data(static_cast<std::size_t>(k));
  std::vector<double> exact(static_cast<std::size_t>(n));
  for (std::size_t r = 0; r < data.size(); ++r) {
    const auto first = drawn.begin() + static_cast<std::ptrdiff_t>(r * 7919 % drawn.size());
    data[r].assign(first, drawn.end());
    data[r].insert(data[r].end(), drawn.begin(), first);
    for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += data[r][i];
  }
  test::run_on(plans_of(name, k, n, segment), data, 16);
  CHECK(test::same_bits(data));
  CHECK(test::relative_distance({data[0].begin(), data[0].end()}, exact) < 1e-6);
}

}  // namespace

TEST_CASE("every all-reduce keeps its price and gives exact, equal sums", "[contract][allreduce]") {
  for (const std::string& name : allreduce_names())
    for (int k = 1; k <= 17; ++k)
      for (const std::int64_t n : std::initializer_list<std::int64_t>{0, 1, k - 1, k, k + 1, 4099}) {
        check_exact(name, k, n, 0, 16, DType::f32);
        check_exact(name, k, n, 100, kLeastWindow, DType::f64);
      }
}

TEST_CASE("every all-reduce leaves the same bits on every rank", "[contract][allreduce]") {
  for (const std::string& name : allreduce_names())
    for (int k = 1; k <= 17; ++k) check_bits(name, k, 50, test::random_values(2003, name + std::to_string(k)));
}

TEST_CASE("every all-reduce holds at sizes and segments of any kind", "[contract][allreduce]") {
  const auto ranks = test::random_integers(40, 1, 17, "ranks"), sizes = test::random_integers(40, 0, 3000, "sizes"),
             segments = test::random_integers(40, 0, 300, "segments");
  for (const std::string& name : allreduce_names())
    for (std::size_t i = 0; i < ranks.size(); ++i)
      check_exact(name, static_cast<int>(ranks[i]), sizes[i], segments[i], 4 + static_cast<int>(i % 3) * 7, DType::f32);
}

TEST_CASE("price_allreduce is the price list", "[contract][allreduce]") {
  for (const std::string& name : allreduce_names())
    for (int k = 1; k <= 17; ++k)
      for (const std::int64_t n : {0, 1, 5, 17, 18, 100000, 5000000}) {
        CAPTURE(name, k, n);
        const Row row = row_of(name, k, n, 0);
        const Price price = price_allreduce(name, {.rank = 0, .ranks = k, .elems = n, .hosts = {}});
        CHECK(price.messages == row.messages);
        CHECK(price.payload_elems == (name == "mpi" ? 2 * (k - 1) * n : row.payload_elems));
        CHECK(price.steps == row.steps);
      }
}

TEST_CASE("the longest chain of messages is as long as the price list says", "[contract][allreduce]") {
  for (const std::string& name : allreduce_names())
    for (int k = 1; k <= 17; ++k)
      for (const std::int64_t n : {1, 3, 100}) {
        CAPTURE(name, k, n);
        const int links = longest_chain(plans_of(name, k, n, 0));
        const Row row = row_of(name, k, n, 0);
        CHECK(links <= row.steps);
        if (n >= row.full_steps_from) CHECK(links == row.steps);
      }
}

TEST_CASE("broadcast and all-gather are no more links deep than their trees are high", "[contract][allreduce]") {
  for (int k = 1; k <= 17; ++k) {
    CAPTURE(k);
    const int high = static_cast<int>(std::ceil(std::log2(k)));
    const int root = k / 3;
    RankPlans broadcast, gather;
    for (int r = 0; r < k; ++r) {
      broadcast.push_back(make_broadcast(r, k, root, 10));
      gather.push_back(make_allgather(r, k, 3));
    }
    test::check_rules(broadcast, 10);
    test::check_rules(gather, 3 * k);
    CHECK(longest_chain(broadcast) <= high);
    CHECK(longest_chain(gather) <= 2 * high);
    std::vector<std::vector<float>> data(static_cast<std::size_t>(k), std::vector<float>(10, 0));
    data[static_cast<std::size_t>(root)].assign(10, 5);
    test::run_on(broadcast, data, kLeastWindow);
    for (const auto& of_rank : data) CHECK(of_rank == std::vector<float>(10, 5));
    std::vector<std::vector<float>> blocks(static_cast<std::size_t>(k),
                                           std::vector<float>(3 * static_cast<std::size_t>(k)));
    for (std::size_t r = 0; r < blocks.size(); ++r)
      for (std::size_t i = 0; i < 3; ++i) blocks[r][3 * r + i] = static_cast<float>(10 * r + i);
    test::run_on(gather, blocks, kLeastWindow);
    for (std::size_t r = 0; r < blocks.size(); ++r) CHECK(blocks[r][3 * r + 2] == static_cast<float>(10 * r + 2));
    CHECK(test::same_bits(blocks));
  }
}

TEST_CASE("all-gathers cost what their prices say; blocks may be of unlike size, and empty", "[contract][allreduce]") {
  for (int k = 1; k <= 17; ++k)
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<std::int64_t> blocks(static_cast<std::size_t>(k), 3);
      if (kind == 1) blocks = test::random_integers(blocks.size(), 0, 4, "blocks");
      if (kind == 2) blocks.assign(blocks.size(), 0);
      if (kind == 3) blocks.assign(blocks.size(), 0), blocks[blocks.size() / 2] = 5;
      CAPTURE(k, kind, blocks);
      RankPlans plans;
      const bool even = kind == 0 && k % 2 == 0;  // both all-gathers take turns here
      for (int r = 0; r < k; ++r) plans.push_back(even ? make_allgather(r, k, 3) : make_allgather_blocks(r, blocks));
      const Price price = even ? price_allgather(k, 3) : price_allgather_blocks(blocks);
      const std::int64_t elems = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
      test::check_rules(plans, elems);
      CHECK(longest_chain(plans) <= price.steps);
      std::vector<float> all;
      for (std::size_t r = 0; r < blocks.size(); ++r)
        for (std::int64_t i = 0; i < blocks[r]; ++i) all.push_back(static_cast<float>(10 * r) + static_cast<float>(i));
      std::vector<std::vector<float>> data(blocks.size(), std::vector<float>(all.size(), -1));
      auto from = all.begin();
      for (std::size_t r = 0; r < blocks.size(); ++r) {
        std::copy_n(from, blocks[r], data[r].begin() + (from - all.begin()));
        from += blocks[r];
      }
      std::uint64_t messages = 0, bytes = 0;
      for (const WireCounters& of_rank : test::run_on(plans, data, kLeastWindow))
        messages += of_rank.messages_sent, bytes += of_rank.bytes_sent;
      for (const auto& of_rank : data) CHECK(of_rank == all);
      CHECK(messages == static_cast<std::uint64_t>(price.messages));
      CHECK(bytes == static_cast<std::uint64_t>(price.payload_elems) * sizeof(float));
    }
}

TEST_CASE("ten million elements over 2, 8 or 17 ranks", "[contract][allreduce][slow][sampled]") {
  constexpr std::int64_t kElems = 10'000'019;
  const std::vector<double> drawn = test::random_values(kElems, "ten million");
  for (const std::string& name : allreduce_names())
    for (const int k : test::sampled<int>({2, 8, 17}, 1, name))
      if (row_of(name, k, kElems, 0).scratch_elems * k * 4 < (std::int64_t{3} << 30)) check_bits(name, k, 0, drawn);
}

TEST_CASE("an unknown all-reduce is refused with the nearest name", "[contract][allreduce]") {
  const AllreduceRequest request{.rank = 0, .ranks = 2, .elems = 3, .hosts = {}};
  CHECK_THROWS_WITH(make_allreduce("rign", request), Catch::Contains("did you mean 'ring'"));
  CHECK_THROWS_AS(price_allreduce("rign", request), ConfigError);
}

TEST_CASE("the price list has a row for every all-reduce", "[contract][allreduce]") {
  std::ifstream file("configs/strategies/ALLREDUCE.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const std::string& name : allreduce_names()) CHECK_THAT(text.str(), Catch::Contains("| `" + name + "` |"));
}

// SPDX-License-Identifier: Apache-2.0
// Sums of a Group: they have the bits of the tree for any number of ranks, and take few messages.
#include "comm/group.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "comm/part_transport.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tree_sum.hpp"

namespace echelon {
namespace {

double value_of(int rank, std::size_t i) {
  return HashRng(test::test_seed(), "group").at(static_cast<std::uint64_t>(rank)).uniform(i) - 0.5;
}

}  // namespace

TEST_CASE("a sum has the bits of the tree over ranks, and few messages", "[comm][group]") {
  for (const int k : {1, 2, 3, 5, 6, 7, 8, 12, 16})
    for (const std::size_t n : {std::size_t{1}, std::size_t{1024}, std::size_t{1500}}) {
      const bool in_tree = n <= Group::kInTree || (k & (k - 1)) == 0;
      const auto body = [&](std::unique_ptr<Transport> transport) {
        Engine engine(std::move(transport));
        std::vector<double> values(n);
        for (std::size_t i = 0; i < n; ++i) values[i] = value_of(engine.rank(), i);
        Group(engine, 0).sum(values);
        for (std::size_t i = 0; i < n; ++i) {
          std::vector<double> of_ranks;
          for (int rank = 0; rank < k; ++rank) of_ranks.push_back(value_of(rank, i));
          const double sum = test::sum_in_tree(of_ranks);
          ECHELON_CHECK(in_tree ? values[i] == sum : std::abs(values[i] - sum) < 1e-12,
                        "{} ranks, value {}: {}, not {}", k, i, values[i], sum);
        }
        ECHELON_CHECK_LE(engine.counters().messages_sent, 10u, "{} ranks", k);
      };
      CHECK_NOTHROW(test::run_ranks(k, body));
    }
}

TEST_CASE("the text of rank 0 reaches all, whatever theirs are", "[comm][group]") {
  const std::string text(3000, 'x');
  for (const std::string& first : {std::string(), std::string("a path"), text})
    CHECK_NOTHROW(test::run_ranks(5, [&](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport));
      Group group(engine, 0);
      ECHELON_CHECK_EQ(group.of_first(group.rank() == 0 ? first : "another"), first);
    }));
}

TEST_CASE("the split of a part of the ranks meets few peers", "[comm][group]") {
  CHECK_NOTHROW(test::run_ranks(17, [](std::unique_ptr<Transport> transport) {
    const std::shared_ptr<Transport> whole = std::move(transport);
    std::vector<int> all;
    for (int rank = 0; rank < whole->size(); ++rank) all.push_back(rank);
    const auto part = make_part_transport(whole, all, 0);
    const auto half = part->split(part->rank() % 2, -part->rank());
    ECHELON_CHECK_EQ(half->size(), part->rank() % 2 == 0 ? 9 : 8);
    ECHELON_CHECK_EQ(half->rank(), (part->rank() % 2 == 0 ? 8 : 7) - part->rank() / 2);
    ECHELON_CHECK_LE(whole->counters().messages_sent, 6u, "rank {}", whole->rank());
  }));
}

}  // namespace echelon

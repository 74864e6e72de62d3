// SPDX-License-Identifier: Apache-2.0
// Sums alone tell whether the checksums of all ranks are equal.
#include <array>
#include <catch2/catch.hpp>

#include "base/hash_rng.hpp"
#include "tests/support/random.hpp"
#include "train/hooks/agreement.hpp"

namespace echelon {
namespace {

bool all_alike(const std::vector<std::uint64_t>& checksums) {
  std::array<double, kMoments> sums{};
  for (const std::uint64_t checksum : checksums) add_moments(checksum, sums);
  return alike(sums, static_cast<int>(checksums.size()));
}

}  // namespace

TEST_CASE("sums tell equal checksums from any others", "[train][agreement][large_k]") {
  const HashRng random(test::test_seed(), "checksums");
  for (const std::size_t k : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{4096}}) {
    for (const std::uint64_t checksum : {std::uint64_t{0}, ~std::uint64_t{0}, random.bits(k)})
      CHECK(all_alike(std::vector<std::uint64_t>(k, checksum)));
    if (k == 1) continue;
    for (int bit = 0; bit < 64; ++bit) {
      std::vector<std::uint64_t> checksums(k, random.bits(k));
      checksums[k / 2] ^= std::uint64_t{1} << bit;
      CHECK_FALSE(all_alike(checksums));
    }
  }
  CHECK_FALSE(all_alike({1, 3, 2}));     // the mean is one of them
  CHECK_FALSE(all_alike({0, 2, 2, 0}));  // the mean is none of them
}

}  // namespace echelon

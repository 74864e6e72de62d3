// SPDX-License-Identifier: Apache-2.0
// Hashed random numbers and checksums.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"

using namespace echelon;

TEST_CASE("hashes have fixed values on every machine", "[hash_rng]") {
  // The first output of SplitMix64 with seed 0, and values worked out separately in integer arithmetic.
  CHECK(mix64(0) == 0xe220a8397b1dcdafULL);
  CHECK(hash_name("conv1.weight") == 0x8b8a08a85128a1b0ULL);
  const HashRng rng(42, "conv1.weight");
  CHECK(rng.key() == 0x632a9661848d7d1ULL);
  CHECK(rng.bits(0) == 0x3f990fff763523bULL);
  CHECK(rng.bits(std::uint64_t{1} << 40) == 0xe92ade8c19abf4aaULL);
  CHECK(rng.uniform(1) == 0.006601116992400735);
  CHECK(rng.below(2, 1000) == 505);
  CHECK(rng.at(7).at(3).key() == 0x9f4e6d824d84881cULL);
}

TEST_CASE("draws are the same in every thread and order", "[hash_rng]") {
  const HashRng rng(5, "shuffle");
  std::vector<std::uint64_t> here, there(1000);
  for (std::uint64_t i = 0; i < 1000; ++i) here.push_back(rng.bits(i));
  std::thread other([&] {
    const HashRng own(5, "shuffle");
    for (std::uint64_t i = 1000; i-- > 0;) there[i] = own.bits(i);
  });
  other.join();
  CHECK(here == there);
}

TEST_CASE("streams differ by seed, name and every word", "[hash_rng]") {
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const char* name : {"a", "b", "ab", ""})
      for (std::uint64_t word = 0; word < 10; ++word) {
        keys.insert(HashRng(seed, name).at(word).key());
        keys.insert(HashRng(seed, name).at(word).at(0).key());
      }
  CHECK(keys.size() == 800);
}

TEST_CASE("uniform draws fill [0, 1) evenly and neighbours are unrelated", "[hash_rng]") {
  const HashRng rng(test::test_seed(), "uniform");
  constexpr int kDraws = 100000, kBins = 100;
  std::vector<int> bins(kBins);
  double product = 0, sum = 0;
  bool inside = true;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double u = rng.uniform(i);
    inside = inside && u >= 0 && u < 1;
    ++bins[static_cast<std::size_t>(u * kBins)];
    sum += u;
    product += (u - 0.5) * (rng.uniform(i + 1) - 0.5);
  }
  CHECK(inside);
  double chi = 0;
  for (int bin : bins) chi += (bin - 1000.0) * (bin - 1000.0) / 1000.0;
  CHECK(chi < 99 + 7 * std::sqrt(2 * 99.0));  // 99 degrees of freedom; 7 standard deviations
  CHECK(chi > 99 - 6 * std::sqrt(2 * 99.0));
  CHECK(sum / kDraws == Approx(0.5).margin(7 * std::sqrt(1.0 / 12 / kDraws)));
  CHECK(product / kDraws == Approx(0).margin(7.0 / 12 / std::sqrt(kDraws)));
}

TEST_CASE("bounded draws reach every value and no other", "[hash_rng]") {
  const HashRng rng(test::test_seed(), "below");
  std::vector<int> seen(7);
  for (std::uint64_t i = 0; i < 7000; ++i) ++seen.at(rng.below(i, 7));
  for (int count : seen) CHECK(std::abs(count - 1000) < 7 * 30);
  CHECK(rng.below(3, 1) == 0);
}

TEST_CASE("normal draws are normal", "[hash_rng]") {
  const HashRng rng(test::test_seed(), "normal");
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kDraws = 100000;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double x = hash_normal(rng, i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  CHECK(sum / kDraws == Approx(0).margin(0.025));
  CHECK(squares / kDraws == Approx(1).margin(0.035));
  CHECK(fourth / kDraws == Approx(3).margin(0.25));
}

TEST_CASE("a checksum sees every byte, its place and the length", "[checksum]") {
  std::vector<unsigned char> bytes(100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37);
  std::set<std::uint64_t> sums;
  for (std::size_t n = 0; n <= bytes.size(); ++n) sums.insert(checksum64(bytes.data(), n));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<unsigned char>(bytes[i] ^ 1U << bit);
      sums.insert(checksum64(bytes.data(), bytes.size()));
      bytes[i] = static_cast<unsigned char>(bytes[i] ^ 1U << bit);
    }
  std::swap(bytes[3], bytes[60]);
  sums.insert(checksum64(bytes.data(), bytes.size()));
  sums.insert(checksum64(bytes.data(), bytes.size(), 1));
  CHECK(sums.size() == 101 + 800 + 2);
}

std::uint64_t checksum_in_blocks(std::string_view content, std::uint64_t seed = 0) {
  for (;; content.remove_prefix(kSumBlock)) {
    const std::string_view block = content.substr(0, kSumBlock);
    seed = checksum64(block.data(), block.size(), seed);
    if (block.size() < kSumBlock) return seed;
  }
}

TEST_CASE("checksums in blocks are those of a file that is read in parts", "[checksum]") {
  const test::TempFolder folder;
  const std::string path = folder / "values";
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{5}, kSumBlock - 1, kSumBlock, kSumBlock + 1, 2 * kSumBlock, 2 * kSumBlock + 9}) {
    const std::vector<double> values = test::random_values(static_cast<std::int64_t>(bytes / 8 + 1), "blocks");
    const std::string_view content(reinterpret_cast<const char*>(values.data()), bytes);
    write_file_whole(path, content);
    SummedFile file(path);
    INFO(bytes);
    CHECK(file.bytes() == bytes);
    CHECK(file.checksum(0, bytes) == checksum_in_blocks(content));
    if (bytes < kSumBlock) CHECK(file.checksum(0, bytes) == checksum64(content));
    const std::size_t from = bytes / 3;
    CHECK(file.checksum(from, bytes - from, 7) == checksum_in_blocks(content.substr(from), 7));
    CHECK_THROWS_AS(file.checksum(from, bytes - from + 1), EnvironmentError);
  }
}

TEST_CASE("a checksum does not depend on the address", "[checksum]") {
  const auto values = test::random_integers(200, 0, 255, "bytes");
  std::vector<unsigned char> at(300);
  std::set<std::uint64_t> sums;
  for (std::size_t offset = 0; offset < 9; ++offset) {
    for (std::size_t i = 0; i < values.size(); ++i) at[offset + i] = static_cast<unsigned char>(values[i]);
    sums.insert(checksum64(at.data() + offset, values.size()));
  }
  CHECK(sums.size() == 1);
  CHECK(hex64(0xabcULL) == "0000000000000abc");
  CHECK(hex64(checksum64("")).size() == 16);
}

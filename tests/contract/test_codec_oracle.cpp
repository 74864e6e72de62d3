// SPDX-License-Identifier: Apache-2.0
// Compares every codec with its plain loops, and checks that coded indices decode to themselves.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "comm/codec/indices.hpp"
#include "tests/support/codec_oracle.hpp"
#include "tests/support/random.hpp"

using namespace echelon;

namespace {

// Makes gradients of many sizes, among them zeros and equal values.
std::vector<float> gradients(std::size_t n, const std::string& name) {
  const std::vector<double> values = test::random_values(n, name), powers = test::random_values(n, name + " powers");
  std::vector<float> all;
  for (std::size_t i = 0; i < n; ++i)
    all.push_back(i % 11 == 0 ? 0 : i % 7 == 0 ? 0.5f : static_cast<float>(values[i] * std::exp2(6 * powers[i])));
  return all;
}

// Compares what the codec encodes, decodes and keeps as residual with the plain loops.
void check_against_oracle(const std::string& name, std::vector<float> values, std::vector<float> residual,
                          std::int64_t first, const CodecOptions& options) {
  const std::size_t n = values.size();
  const test::OracleEncoding right = test::oracle_of(name, values, residual, 0x123456789abcdefULL, first, options);
  const auto codec = make_codec(name, options);
  std::vector<std::byte> wire(codec->most_bytes(static_cast<std::int64_t>(n)));
  const std::size_t bytes = codec->encode({.values = values.data(),
                                           .elems = static_cast<std::int64_t>(n),
                                           .residual = codec->info().lossy ? residual.data() : nullptr,
                                           .key = 0x123456789abcdefULL,
                                           .first = first},
                                          wire.data());
  REQUIRE(bytes <= wire.size());
  if (codec->exact_size()) CHECK(bytes == wire.size());
  std::vector<float> decoded(n, 7);
  codec->decode(wire.data(), bytes, decoded.data(), static_cast<std::int64_t>(n));
  CHECK(std::memcmp(decoded.data(), values.data(), n * sizeof(float)) == 0);
  std::vector<float> added(n, 0);
  codec->decode_add(wire.data(), bytes, added.data(), static_cast<std::int64_t>(n));
  std::size_t wrong = 0;
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  const bool marks = name == "threshold";  // sends its first inf or NaN in a way of its own
  for (std::size_t i = 0; i < n; ++i)
    wrong += (!same(values[i], right.encoded[i]) && !(marks && !std::isfinite(values[i]))) ||
             !same(residual[i], right.residual[i]) || !same(added[i], values[i]);
  CHECK(wrong == 0);
}

void check_codec(const std::string& name, std::size_t n, std::int64_t first, double scale) {
  CAPTURE(name, n, first, scale);
  std::vector<float> values = gradients(n, "values"), residual = gradients(n, "owed");
  for (float& value : values) value = static_cast<float>(value * scale);
  for (float& value : residual) value = static_cast<float>(value * scale);
  if (scale == 3) values[n / 2] = std::nanf(""), values[n / 3] = INFINITY;
  check_against_oracle(name, std::move(values), std::move(residual), first,
                       {.ranks = 3, .density = 0.07, .tau = 0.3 * scale});
}

}  // namespace

TEST_CASE("every codec has the encoded values and residuals of its plain loops", "[contract][codec]") {
  for (const std::string& name : codec_names())
    for (const std::size_t n : {1, 2, 7, 8, 9, 63, 511, 513, 2047, 2050, 6007, 20011})
      for (const double scale : {1.0, 1e-3, 1e-39, 3.0}) check_codec(name, n, static_cast<std::int64_t>(5 * n), scale);
}

TEST_CASE("onebit has a scale for each row, and values without rows as they are", "[contract][codec]") {
  const std::vector<CodedRun> rows = {{3, 0}, {9 * 25, 25}, {40, 0}, {2 * 5000, 5000}, {17, 17}, {300 * 16, 16}};
  std::int64_t n = 0;
  for (const CodedRun& run : rows) n += run.elems;
  for (const double scale : {1.0, 1e-39, 3.0}) {
    CAPTURE(scale);
    std::vector<float> values = gradients(static_cast<std::size_t>(n), "rows");
    for (float& value : values) value = static_cast<float>(value * scale);
    if (scale == 3) values[1] = values[50] = values[4000] = std::nanf("");
    check_against_oracle("onebit", values, gradients(static_cast<std::size_t>(n), "owed rows"), 0, {.rows = rows});
  }
  // Rows differ much in size: one scale for all would leave nothing of the small one.
  std::vector<float> two(2 * 4096, 1e-4f);
  std::fill_n(two.begin(), 4096, 1.0f);
  const auto codec = make_codec("onebit", {.rows = {{2 * 4096, 4096}}});
  std::vector<std::byte> wire(codec->most_bytes(2 * 4096));
  codec->encode({.values = two.data(), .elems = 2 * 4096}, wire.data());
  CHECK((two[0] == 1.0f && two[4095] == 1.0f && two[4096] == Approx(1e-4f)));
}

TEST_CASE("topk: a misleading sample of the values costs time, not correctness", "[contract][codec]") {
  constexpr std::size_t n = 20000;
  const std::vector<float> drawn = gradients(n, "mislead");
  for (const bool large : {true, false}) {  // topk looks at 16 of every 78 values: large or small ones
    CAPTURE(large);
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = drawn[i] * ((i % 78 < 16) == large ? 1.0f : 1e-3f);
    values[n - 1] = -INFINITY;
    check_against_oracle("topk", values, std::vector<float>(n), 0, {.density = 0.07});
  }
}

TEST_CASE("threshold: where most values are inf, tau is unset and the finite values stay in the residual",
          "[contract][codec]") {
  constexpr std::size_t n = 100;
  const auto codec = make_codec("threshold", {.density = 0.5});
  std::vector<float> values(n), residual(n, 0.25f), decoded(n, 7);
  for (std::size_t i = 0; i < n; ++i) values[i] = i % 5 < 2 ? static_cast<float>(i) : -INFINITY;
  std::vector<std::byte> wire(codec->most_bytes(n));
  const std::size_t bytes =
      codec->encode({.values = values.data(), .elems = n, .residual = residual.data()}, wire.data());
  CHECK(codec->tau() == 0);
  codec->decode(wire.data(), bytes, decoded.data(), n);
  for (std::size_t i = 0; i < n; ++i) {
    CAPTURE(i);
    CHECK(residual[i] == (i % 5 < 2 ? static_cast<float>(i) + 0.25f : 0));
    CHECK(values[i] == (i == 2 ? -INFINITY : 0));  // only the first infinite value is sent
    CHECK(decoded[i] == values[i]);
  }
}

TEST_CASE("indices are decoded from every coding, in the predicted bytes", "[contract][codec]") {
  for (const IndexCoding coding : {IndexCoding::raw, IndexCoding::golomb, IndexCoding::gamma})
    for (const bool extra : {false, true})
      for (const std::int64_t spread : {1, 2, 10, 300, 5000000}) {
        CAPTURE(static_cast<int>(coding), extra, spread);
        std::vector<std::uint32_t> entries;
        std::int64_t place = -1;
        for (const std::int64_t gap : test::random_integers(300, 1, spread, "gaps")) {
          place += gap;
          entries.push_back(static_cast<std::uint32_t>(place) << 1 | (extra && gap % 3 == 0 ? 1u : 0u));
        }
        const IndexFormat format = format_for(coding, extra, entries.size(), place + 1);
        std::vector<std::byte> wire(bytes_of_indices(format, entries));
        CHECK(write_indices(format, entries, wire.data()) == wire.size());
        IndexReader reader(format, wire.data(), wire.size());
        for (const std::uint32_t entry : entries) REQUIRE(reader.next() == entry);
        CHECK_THROWS(IndexReader(format, wire.data(), 0).next());
      }
}

TEST_CASE("golomb takes about log2 of the mean gap and two bits a place", "[contract][codec]") {
  std::vector<std::uint32_t> entries;
  constexpr std::int64_t n = 1000000;
  const std::vector<std::int64_t> draws = test::random_integers(n, 0, 356, "chosen");  // a density of 0.28 %
  for (std::size_t i = 0; i < draws.size(); ++i)
    if (draws[i] == 0) entries.push_back(static_cast<std::uint32_t>(i) << 1);
  const IndexFormat format = format_for(IndexCoding::golomb, true, entries.size(), n);
  const double bits =
      8.0 * static_cast<double>(bytes_of_indices(format, entries)) / static_cast<double>(entries.size());
  CHECK(bits < 1 + std::log2(357) + 1.6);
  const double expected = static_cast<double>(n) / 357;  // number of entries, which differs from draw to draw
  CHECK(32.0 * static_cast<double>(n) / (bits * expected) > 1000);
}

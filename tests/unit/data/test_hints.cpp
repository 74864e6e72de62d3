// SPDX-License-Identifier: Apache-2.0
// Data that look like a mistake, and how files are dealt to replicas.
#include <catch2/catch.hpp>
#include <numeric>

#include "base/error.hpp"
#include "data/describe.hpp"
#include "data/file_shares.hpp"
#include "data/read_memory.hpp"
#include "h5/file.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

void write(const std::string& path, Shape sample, std::int64_t classes, int deflate = 0) {
  const std::int64_t samples = 70;
  const std::vector<std::uint8_t> values(static_cast<std::size_t>(samples * sample.elems()), 1), labels(70, 0);
  h5::Writer writer(path);
  writer.attribute("classes", classes);
  writer.create("samples", DType::u8, sample.prepended(samples), {.chunk_rows = 64, .deflate = deflate});
  writer.write_rows("samples", 0, samples, values.data(), DType::u8);
  writer.write_all("labels", DType::u8, {samples}, labels.data());
  writer.publish();
}

std::int64_t most_of(const std::vector<std::int64_t>& files, std::size_t replicas) {
  std::vector<std::int64_t> load(replicas, 0);
  const std::vector<int> owner = deal_files(files, std::vector<std::int64_t>(replicas, 1));
  for (std::size_t file = 0; file < files.size(); ++file) load[static_cast<std::size_t>(owner[file])] += files[file];
  REQUIRE(*std::min_element(load.begin(), load.end()) > 0);
  return *std::max_element(load.begin(), load.end());
}

}  // namespace

TEST_CASE("axes in the order (H, W, C) and chunks above the buffer are told", "[data]") {
  const test::Folder folder;
  const std::string path = folder / "a.h5";
  write(path, {12, 10, 3}, 2);
  CHECK_THAT(layout_hints(open_dataset(path), 64).at(0), Contains("a.h5: samples are (C, H, W), here (12, 10, 3)"));
  write(path, {3, 12, 10}, 2, 1);
  CHECK(layout_hints(open_dataset(path), 64).empty());
  CHECK_THAT(layout_hints(open_dataset(path), 0.05).at(0), Contains("a chunk has 22.50 KiB") && Contains("56.25 KiB"));
  write(path, {1, 1, 4}, 2);  // four numbers
  CHECK(layout_hints(open_dataset(path), 64).empty());
}

TEST_CASE("the memory of reading has chunks, what decodes them, and batches", "[data]") {
  const test::Folder folder;
  const std::string path = folder / "a.h5";
  constexpr double kRecord = 360, kChunk = 64 * kRecord;
  const auto foretold = [&](int deflate, std::int64_t buffer) {
    write(path, {3, 12, 10}, 2, deflate);
    return read_memory(open_dataset(path), 10, {.buffer_bytes = buffer});
  };
  const ReadMemory plain = foretold(0, 1 << 20), gzip = foretold(1, 1 << 20);
  CHECK(plain.decoding == 0);
  CHECK(plain.records == Approx(70 * kRecord).epsilon(0.02));
  CHECK(plain.batches == 3 * 10 * kRecord * 4);
  CHECK(plain.total() == plain.records + plain.batches);
  CHECK(gzip.decoding == Approx(kChunk).epsilon(0.02));  // the last chunk is read in part; few bytes are stored
  CHECK(foretold(1, 1).records == Approx(kChunk).epsilon(0.02));
  ReadMemory at_once = gzip;
  at_once.at_once = true;
  CHECK(at_once.total() == at_once.records + std::max(gzip.decoding, gzip.batches));
}

TEST_CASE("more classes than any labels tell apart are refused", "[data]") {
  const test::Folder folder;
  write(folder / "a.h5", {1, 1, 4}, std::int64_t{1} << 62);
  CHECK_THROWS_AS(open_dataset(folder / "a.h5"), DataError);
  CHECK_THROWS_WITH(open_dataset(folder / "a.h5"),
                    Contains("attribute 'classes' is 4611686018427387904, must be 1 to"));
}

TEST_CASE("files are dealt so that no move or swap makes the largest share smaller", "[data]") {
  CHECK(most_of({125, 225, 175, 250, 150, 200, 200, 175}, 3) <= 525);  // 575 for the largest first alone
  CHECK(most_of({7, 6, 5, 4, 3, 2}, 3) == 9);
  CHECK(most_of({5, 5, 4, 4, 3, 3}, 2) == 12);
  CHECK(most_of({100, 1, 1, 1}, 4) == 100);
  // With many files, the largest share is near the mean.
  const std::vector<std::int64_t> many = test::random_integers(60, 100, 1000, "files");
  const std::int64_t mean = std::accumulate(many.begin(), many.end(), std::int64_t{0}) / 7;
  CHECK(most_of(many, 7) <= mean + mean / 50);
}

}  // namespace echelon

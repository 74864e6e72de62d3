// SPDX-License-Identifier: Apache-2.0
// Imports put training data into a random order, in two passes and bounded memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "data/dataset.hpp"
#include "data/import/mixer.hpp"
#include "data/import/sequence_source.hpp"
#include "data/import/sequence_writer.hpp"
#include "data/import/shard_writer.hpp"
#include "h5/file.hpp"
#include "tests/support/images.hpp"
#include "tests/unit/data/image_sets.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Ids = std::vector<std::int64_t>;

// Yields sorted samples of class i * 4 / n; a sample is its number, twice.
class Sorted final : public SampleSource {
 public:
  explicit Sorted(std::int64_t samples) : samples_(samples) { info_.sample = {1, 1, 2}, info_.stored = DType::f32; }
  const SourceInfo& info() const override { return info_; }
  void rewind() override { next_ = 0; }
  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* labels) override {
    const std::int64_t count = std::min(most, samples_ - next_);
    for (std::int64_t i = 0; i < count; ++i, ++next_) {
      for (int k = 0; k < 2; ++k) reinterpret_cast<float*>(samples)[2 * i + k] = static_cast<float>(next_);
      static_cast<std::int32_t*>(labels)[i] = static_cast<std::int32_t>(next_ * 4 / samples_);
    }
    return count;
  }

 private:
  SourceInfo info_;
  std::int64_t samples_, next_ = 0;
};

struct Read {
  std::vector<float> samples;
  std::vector<std::int32_t> labels;
};
Read read_all(const std::string& folder) {
  Read read;
  for (const Shard& shard : open_dataset(folder).shards) {
    std::vector<float> samples(static_cast<std::size_t>(2 * shard.samples));
    std::vector<std::int32_t> labels(static_cast<std::size_t>(shard.samples));
    h5::Reader(shard.path).read_all("samples", samples.data(), DType::f32);
    h5::Reader(shard.path).read_all("labels", labels.data(), DType::i32);
    read.samples.insert(read.samples.end(), samples.begin(), samples.end());
    read.labels.insert(read.labels.end(), labels.begin(), labels.end());
  }
  return read;
}

}  // namespace

TEST_CASE("a mixer returns each record once, in the order that it tells before", "[data][import]") {
  const test::Folder folder;
  const std::int64_t pile_bytes = GENERATE(1 << 20, 2000, 50);  // one pile; several; piles of about one record
  const std::int64_t records = 700;
  Ids order;
  {
    Mixer mixer(folder / "out", records * 20, pile_bytes);
    CHECK(mixer.piles() == (records * 20 + pile_bytes - 1) / pile_bytes);
    for (std::int64_t i = 0; i < records; ++i)
      mixer.add(std::string(static_cast<std::size_t>(i % 7), 'x') + std::to_string(i));
    CHECK(folder.files().size() == (mixer.piles() > 1 ? 1 : 0));
    mixer.each([&](std::int64_t number, std::string_view record) {
      REQUIRE(record == std::string(static_cast<std::size_t>(number % 7), 'x') + std::to_string(number));
      order.push_back(number);
    });
    CHECK(order == mixer.order(records));
  }
  CHECK(folder.files().empty());
  Ids sorted = order;
  std::sort(sorted.begin(), sorted.end());
  Ids all(static_cast<std::size_t>(records));
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  // Place and number must not be correlated: in random order the coefficient has a deviation of 1 / sqrt(699) = 0.038.
  double product = 0;
  for (std::int64_t i = 0; i < records; ++i)
    product += (static_cast<double>(i) - 349.5) * (static_cast<double>(order[static_cast<std::size_t>(i)]) - 349.5);
  CHECK(std::abs(product / (700.0 * (700.0 * 700.0 - 1) / 12)) < 4 * 0.038);
}

TEST_CASE("samples sorted by class are mixed when they are imported, those held out stay in order", "[data][import]") {
  const test::Folder folder;
  Sorted source(4000);
  write_shards(source, {.out = folder / "out", .shards = 4, .hold_out = 400});
  const Read train = read_all(folder / "out/train"), test = read_all(folder / "out/test");
  REQUIRE(train.labels.size() == 3600);
  CHECK(std::is_sorted(test.samples.begin(), test.samples.end()));
  for (std::size_t i = 0; i < train.labels.size(); ++i) {
    REQUIRE(train.samples[2 * i] == train.samples[2 * i + 1]);
    REQUIRE(train.labels[i] == static_cast<std::int32_t>(train.samples[2 * i]) * 4 / 4000);
  }
  // Each file has its share of each class: 225 expected, with a deviation of sqrt(900 / 4 * 3 / 4 * 3 / 4) = 11.3.
  for (std::size_t file = 0; file < 4; ++file)
    for (std::int32_t c = 0; c < 4; ++c) {
      const auto begin = train.labels.begin() + static_cast<std::ptrdiff_t>(900 * file);
      CHECK(std::abs(static_cast<double>(std::count(begin, begin + 900, c)) - 225) < 4.5 * 11.3);
    }
  std::vector<float> values = train.samples;
  values.insert(values.end(), test.samples.begin(), test.samples.end());
  std::sort(values.begin(), values.end());
  CHECK(std::unique(values.begin(), values.end()) - values.begin() == 4000);
  write_shards(source, {.out = folder / "again", .shards = 4, .hold_out = 400});
  CHECK(read_all(folder / "again/train").samples == train.samples);
  write_shards(source, {.out = folder / "kept", .shards = 4, .keep_order = true});
  const Read kept = read_all(folder / "kept");
  CHECK(std::is_sorted(kept.samples.begin(), kept.samples.end()));
}

TEST_CASE("sequences keep their values and labels when they are mixed", "[data][import][sequences]") {
  const test::Folder folder;
  std::string text = "@problemName s\n@timeStamps false\n@classLabel true a b\n@data\n";
  for (int i = 0; i < 90; ++i) {  // series i has 1 + i % 3 steps, all of them i; the class a, then the class b
    for (int t = 0; t <= i % 3; ++t) text += (t > 0 ? "," : "") + std::to_string(i);
    text += i < 45 ? ":a\n" : ":b\n";
  }
  test::put_file(folder / "s.ts", text);
  const auto source = open_sequences({.format = "sequences", .inputs = {folder / "s.ts"}});
  write_sequences(*source, {.out = folder / "out", .shards = 3});
  const Dataset data = open_dataset(folder / "out");
  std::map<int, int> seen;
  int turns = 0, before = -1;
  for (const Shard& shard : data.shards) {
    const h5::Reader reader(shard.path);
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(shard.samples)), labels(lengths.size());
    reader.read_all("lengths", lengths.data(), DType::i32);
    reader.read_all("labels", labels.data(), DType::i32);
    std::vector<float> values(static_cast<std::size_t>(reader.info("values").shape[0]));
    reader.read_all("values", values.data(), DType::f32);
    std::size_t at = 0;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      const int i = static_cast<int>(values[at]);
      ++seen[i];
      REQUIRE(lengths[s] == 1 + i % 3);
      REQUIRE(labels[s] == (i < 45 ? 0 : 1));
      for (std::int32_t t = 0; t < lengths[s]; ++t) REQUIRE(values[at++] == static_cast<float>(i));
      turns += labels[s] != before ? 1 : 0;
      before = labels[s];
    }
  }
  CHECK(seen.size() == 90);
  CHECK(turns > 20);  // 2 where they are sorted, about 45 where they are mixed
}

}  // namespace echelon

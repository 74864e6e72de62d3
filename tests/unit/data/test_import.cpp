// SPDX-License-Identifier: Apache-2.0
// Importers: correct input becomes correct shards; wrong input gives a DataError with its place, and nothing on disk.
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/source.hpp"
#include "h5/file.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;

void put(const std::string& path, const std::string& bytes) {
  if (path.ends_with(".gz")) {
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  } else {
    std::ofstream(path, std::ios::binary) << bytes;
  }
}

std::string be32(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string random_bytes(std::size_t n, std::int64_t most, const char* name) {
  std::string bytes;
  for (const std::int64_t value : test::random_integers(n, 0, most, name)) bytes += static_cast<char>(value);
  return bytes;
}

std::string idx_images(std::uint32_t n, const std::string& pixels) {
  return be32(0x803) + be32(n) + be32(3) + be32(5) + pixels;
}
std::string idx_labels(std::uint32_t n, const std::string& labels) { return be32(0x801) + be32(n) + labels; }

// Imports in the order of the input.
ShardsWritten convert(const ImportRequest& request, ShardOptions options) {
  options.keep_order = true;
  return write_shards(*open_source(request), options);
}

// The content of a folder of shards, in file order.
struct Content {
  std::string samples, labels;
};
Content content_of(const std::string& folder) {
  const Dataset dataset = open_dataset(folder);
  Content content;
  for (const Shard& shard : dataset.shards) {
    const h5::Reader reader(shard.path);
    const auto bytes = static_cast<std::size_t>(shard.samples * dataset.sample_shape.elems()) * size_of(dataset.stored);
    std::string samples(bytes, 0), labels(static_cast<std::size_t>(shard.samples), 0);
    reader.read_all("samples", samples.data(), dataset.stored);
    reader.read_all("labels", labels.data(), DType::u8);
    content.samples += samples;
    content.labels += labels;
  }
  return content;
}

template <class Thrown>
std::string refusal(const ImportRequest& request, const ShardOptions& options) {
  const std::string text = test::refusal<Thrown>([&] { convert(request, options); });
  REQUIRE_FALSE(std::filesystem::exists(options.out));
  return text;
}

}  // namespace

TEST_CASE("IDX becomes shards, plain and gzipped, compressed or not", "[data][import]") {
  const Folder folder;
  const std::string gz = GENERATE("", ".gz");
  const int compress = GENERATE(0, 6);
  const std::string pixels = random_bytes(300 * 15, 255, "idx pixels"), labels = random_bytes(300, 6, "idx labels");
  put(folder / ("images" + gz), idx_images(300, pixels));
  put(folder / ("labels" + gz), idx_labels(300, labels));
  const ShardsWritten written =
      convert({.format = "idx", .inputs = {folder / ("images" + gz), folder / ("labels" + gz)}},
              {.out = folder / "out", .unequal = {3, 1, 2}, .chunk = 64, .compress = compress});
  REQUIRE(written.samples == 300);
  REQUIRE(folder.files().size() == 3);  // no temporary folder stays
  const Dataset dataset = open_dataset(folder / "out");
  REQUIRE(dataset.sample_shape == Shape{1, 3, 5});
  REQUIRE(dataset.classes == 1 + *std::max_element(labels.begin(), labels.end()));
  REQUIRE(dataset.shards.size() == 3);
  REQUIRE((dataset.shards[0].samples == 150 && dataset.shards[1].samples == 50 && dataset.shards[2].samples == 100));
  REQUIRE(dataset.shards[0].deflate == (compress > 0));
  const Content content = content_of(folder / "out");
  REQUIRE(content.samples == pixels);
  REQUIRE(content.labels == labels);

  double sum = 0, squares = 0;
  for (const char c : pixels) {
    const double x = static_cast<double>(static_cast<unsigned char>(c)) / 255;
    sum += x;
    squares += x * x;
  }
  const double mean = sum / static_cast<double>(pixels.size());
  REQUIRE(dataset.mean[0] == Approx(mean));
  REQUIRE(dataset.std[0] == Approx(std::sqrt(squares / static_cast<double>(pixels.size()) - mean * mean)));
}

TEST_CASE("bad IDX files are named with the place", "[data][import]") {
  const Folder folder;
  const std::string pixels(60, 'p'), labels(4, '\1');
  const std::string images_at = folder / "images", labels_at = folder / "labels";
  const auto with = [&](const std::string& images_file, const std::string& labels_file) {
    put(images_at, images_file);
    put(labels_at, labels_file);
    return refusal<DataError>({.format = "idx", .inputs = {images_at, labels_at}}, {.out = folder / "out"});
  };
  const std::string good = idx_images(4, pixels), named = idx_labels(4, labels);
  CHECK_THAT(with("PK\3\4 something", named), Contains("images: begins with 0x504b0304, expected 0x00000803"));
  CHECK_THAT(with(be32(0xd03) + good, named), Contains("begins with 0x00000d03"));
  CHECK_THAT(with(named, good), Contains("images: holds labels, expected images; give the images first"));
  CHECK_THAT(with(good, good), Contains("labels: holds images, expected labels"));
  CHECK_THAT(with(good, idx_labels(3, "\1\1\1")), Contains("holds 4 images, but") && Contains("holds 3 labels"));
  CHECK_THAT(with(good.substr(0, 50), named), Contains("images: ends at byte 50") && Contains("34 of 60 bytes"));
  CHECK_THAT(with(good, named.substr(0, 10)), Contains("labels: ends at byte 10"));
  CHECK_THAT(with(good.substr(0, 9), named), Contains("images: ends at byte 9, in its header"));
  CHECK_THAT(with("", named), Contains("images: ends at byte 0, in its magic number"));
  CHECK_THAT(with(good + "x", named), Contains("images: has more bytes after byte 76"));
  CHECK_THAT(with(idx_images(0, ""), idx_labels(0, "")), Contains("claims extents of 0 x 3 x 5"));
  CHECK_THAT(with(be32(0x803) + be32(4) + be32(~0U) + be32(~0U), named), Contains("claims extents of 4 x 4294967295"));
  std::filesystem::remove(images_at);
  CHECK_THAT(refusal<DataError>({.format = "idx", .inputs = {images_at, labels_at}}, {.out = folder / "out"}),
             Contains("images: cannot be read: No such file"));

  put(folder / "cut.gz", idx_images(400, random_bytes(6000, 255, "cut")));
  std::filesystem::resize_file(folder / "cut.gz", std::filesystem::file_size(folder / "cut.gz") / 2);
  put(labels_at, idx_labels(400, std::string(400, '\1')));
  CHECK_THAT(refusal<DataError>({.format = "idx", .inputs = {folder / "cut.gz", labels_at}}, {.out = folder / "out"}),
             Contains("cut.gz: cannot be inflated beyond byte") && Contains("truncated"));
}

TEST_CASE("CIFAR-10 and CIFAR-100 batches become shards", "[data][import]") {
  const Folder folder;
  const bool fine = GENERATE(false, true);
  const ImportRequest request{.format = fine ? "cifar100" : "cifar10", .inputs = {folder / "a.bin", folder / "b.bin"}};
  const std::string labels = random_bytes(30, fine ? 99 : 9, "cifar labels");
  const std::string pixels = random_bytes(30 * 3072, 255, "cifar pixels");
  std::string records[2];
  for (std::size_t i = 0; i < 30; ++i)
    records[i >= 20] += (fine ? "\x7" : "") + labels.substr(i, 1) + pixels.substr(i * 3072, 3072);
  put(request.inputs[0], records[0]);
  put(request.inputs[1], records[1]);
  const ShardsWritten written = convert(request, {.out = folder / "out", .shards = 4});
  REQUIRE(written.classes == (fine ? 100 : 10));
  REQUIRE(written.sample_shape == Shape{3, 32, 32});
  REQUIRE(written.files.size() == 4);
  const Content content = content_of(folder / "out");
  REQUIRE(content.samples == pixels);
  REQUIRE(content.labels == labels);
  REQUIRE(open_dataset(folder / "out").mean.size() == 3);

  const ShardOptions other{.out = folder / "other"};
  put(request.inputs[1], records[1].substr(0, records[1].size() - 100));
  const std::size_t last = 9 * (fine ? 3074 : 3073);
  CHECK_THAT(refusal<DataError>(request, other),
             Contains("b.bin: ends at byte") && Contains("record that begins at byte " + std::to_string(last)));
  put(request.inputs[1], std::string(4000, '\xc8'));
  CHECK_THAT(refusal<DataError>(request, other), Contains("b.bin: the record at byte 0 has label 200"));
  put(request.inputs[1], "");
  CHECK_THAT(refusal<DataError>(request, other), Contains("b.bin: is empty"));
}

TEST_CASE("CSV with regression targets: the last columns, as f32", "[data][import]") {
  const Folder folder;
  put(folder / "t.csv", "a,b,u,v\n1,2,0.5,-3\n3,4,1e3,0.25\n5,6,7,8\n");
  const ImportRequest request{
      .format = "csv", .inputs = {folder / "t.csv"}, .shape = {2, 1, 1}, .targets = 2, .stored = DType::f32};
  const ShardsWritten written = convert(request, {.out = folder / "out"});
  CHECK(written.samples == 3);
  const Dataset dataset = open_dataset(folder / "out");
  CHECK(dataset.has_numbers());
  CHECK(dataset.label_shape == Shape{2});
  const h5::Reader reader(dataset.shards[0].path);
  std::vector<float> labels(6);
  reader.read_all("labels", labels.data(), DType::f32);
  CHECK(labels == std::vector<float>{0.5f, -3, 1e3f, 0.25f, 7, 8});
  put(folder / "t.csv", "1,2,0.5\n");
  CHECK_THAT(refusal<DataError>(request, {.out = folder / "other"}),
             Contains("has 3 cells between commas, expected 4: 2 regression targets"));
}

TEST_CASE("CSV becomes shards; a header is left out; part is held out evenly", "[data][import]") {
  const Folder folder;
  const std::string gz = GENERATE("", ".gz");
  std::string text = "label,a,b\r\n";
  for (int i = 0; i < 100; ++i) text += std::to_string(i / 50) + ", " + std::to_string(i) + " ,16\r\n";
  put(folder / ("t.csv" + gz), text + "\n");
  const ShardsWritten written = convert(
      {.format = "csv", .inputs = {folder / ("t.csv" + gz)}, .shape = {1, 1, 2}, .label_column = 0, .value_max = 16},
      {.out = folder / "out", .prefix = "t", .shards = 3, .hold_out = 20});
  REQUIRE(written.samples == 80);
  const Dataset train = open_dataset(folder / "out/train"), test = open_dataset(folder / "out/test");
  REQUIRE(train.samples() == 80);
  REQUIRE(test.shards.size() == 1);
  REQUIRE(train.scale == 1.0 / 16);
  REQUIRE(train.mean == test.mean);
  const Content of_train = content_of(folder / "out/train"), of_test = content_of(folder / "out/test");
  REQUIRE(std::count(of_test.labels.begin(), of_test.labels.end(), '\0') == 10);  // sorted input, both classes
  std::set<int> values;
  for (const std::string& samples : {of_train.samples, of_test.samples})
    for (std::size_t i = 0; i < samples.size(); i += 2) values.insert(samples[i]);
  REQUIRE(values.size() == 100);
  double mean = 0;
  for (const char c : of_train.samples) mean += static_cast<double>(c) / 16 / 160;
  REQUIRE(train.mean[0] == Approx(mean));  // computed from the training part alone
}

TEST_CASE("CSV of reals keeps them as floats", "[data][import]") {
  const Folder folder;
  put(folder / "t.csv", "0.5,-1e3,1\n2.25,+7,0\n");
  convert({.format = "csv", .inputs = {folder / "t.csv"}, .shape = {2, 1, 1}, .stored = DType::f32},
          {.out = folder / "out"});
  const Dataset dataset = open_dataset(folder / "out");
  REQUIRE(dataset.stored == DType::f32);
  REQUIRE(dataset.scale == 1);
  REQUIRE(dataset.mean[0] == Approx(1.375));
  REQUIRE(dataset.std[1] == Approx(503.5));
  std::vector<float> values(4);
  h5::Reader(dataset.shards[0].path).read_all("samples", values.data(), DType::f32);
  REQUIRE(values == std::vector<float>{0.5F, -1000, 2.25F, 7});
}

TEST_CASE("bad CSV is named with line and column", "[data][import]") {
  const Folder folder;
  const auto with = [&](const std::string& text, DType stored = DType::u8) {
    put(folder / "t.csv", text);
    return refusal<DataError>({.format = "csv", .inputs = {folder / "t.csv"}, .shape = {1, 1, 2}, .stored = stored},
                              {.out = folder / "out"});
  };
  CHECK_THAT(with("1,2,0\n1,x7,0\n"), Contains("t.csv: line 2, column 2: 'x7' is not a finite number"));
  CHECK_THAT(with("1,2,0\n1,,0\n"), Contains("line 2, column 2: '' is not"));
  CHECK_THAT(with("1,2,0\n1,nan,0\n", DType::f32), Contains("line 2, column 2: 'nan' is not a finite number"));
  CHECK_THAT(with("1,2,0\n1,1e39,0\n", DType::f32), Contains("too large for a 32-bit float"));
  CHECK_THAT(with("1,2,0\n\n1,2\n"), Contains("line 3 has 2 cells between commas, expected 3"));
  CHECK_THAT(with("1,2,0,5\n"), Contains("line 1 has 4 cells between commas, expected 3"));
  CHECK_THAT(with("1,256,0\n"), Contains("line 1, column 2: '256' is not a whole number from 0 to 255"));
  CHECK_THAT(with("1,2.5,0\n"), Contains("store such values as f32"));
  CHECK_THAT(with("1,2,-1\n"), Contains("line 1, column 3: '-1' is not a label"));
  CHECK_THAT(with("1,2,0.5\n"), Contains("'0.5' is not a label"));
  CHECK_THAT(with("a,b,label\n"), Contains("holds no sample"));
  CHECK_THAT(with(""), Contains("holds no sample"));
}

TEST_CASE("made-up data have the asked size, are the same each time and tell their classes apart", "[data][import]") {
  const Folder folder;
  const auto stored = GENERATE(DType::u8, DType::f32);
  const SynthRequest request{.samples = 210, .shape = {2, 6, 7}, .classes = 7, .stored = stored, .noise = 0.1};
  const auto make = [&](const std::string& name, SynthRequest with) {
    write_shards(*make_synth(with), {.out = folder / name, .shards = 3, .keep_order = true});
    return content_of(folder / name);
  };
  const Content first = make("a", request);
  REQUIRE(first.samples == make("b", request).samples);
  SynthRequest other = request;
  other.seed = 2;
  REQUIRE(first.samples != make("c", other).samples);
  const Dataset dataset = open_dataset(folder / "a");
  REQUIRE(dataset.samples() == 210);
  REQUIRE(dataset.sample_shape == Shape{2, 6, 7});
  for (int c = 0; c < 7; ++c) REQUIRE(std::count(first.labels.begin(), first.labels.end(), c) == 30);

  // The nearest class mean of the first half finds the label of nearly every sample of the second half.
  const std::size_t pixels = 84;
  const auto value = [&](std::size_t i, std::size_t p) {
    if (stored == DType::u8)
      return static_cast<double>(static_cast<unsigned char>(first.samples[i * pixels + p])) / 255;
    float real = 0;
    std::memcpy(&real, first.samples.data() + 4 * (i * pixels + p), 4);
    return static_cast<double>(real);
  };
  std::vector<std::vector<double>> mean(7, std::vector<double>(pixels, 0));
  for (std::size_t i = 0; i < 105; ++i)
    for (std::size_t p = 0; p < pixels; ++p) mean[i % 7][p] += value(i, p) / 15;
  int right = 0;
  for (std::size_t i = 105; i < 210; ++i) {
    std::vector<double> distance(7, 0);
    for (std::size_t c = 0; c < 7; ++c)
      for (std::size_t p = 0; p < pixels; ++p) distance[c] += std::pow(value(i, p) - mean[c][p], 2);
    right += std::min_element(distance.begin(), distance.end()) - distance.begin() == first.labels[i];
  }
  REQUIRE(right > 95);
}

TEST_CASE("sizes of shards", "[data][import]") {
  const auto sizes = [](std::int64_t samples, ShardOptions options) { return shard_sizes(samples, options); };
  using Sizes = std::vector<std::int64_t>;
  REQUIRE(sizes(25000, {}) == Sizes{10000, 10000, 5000});
  REQUIRE(sizes(25, {.samples_per_shard = 10}) == Sizes{10, 10, 5});
  REQUIRE(sizes(10, {.shards = 3}) == Sizes{3, 3, 4});
  REQUIRE(sizes(60, {.unequal = {3, 1, 2}}) == Sizes{30, 10, 20});
  REQUIRE_THROWS_WITH(sizes(2, {.shards = 3}), Contains("2 samples do not fill 3 shards"));
  REQUIRE_THROWS_WITH(sizes(10, {.shards = 3, .samples_per_shard = 3}), Contains("does not go with"));
  REQUIRE_THROWS_WITH(sizes(10, {.shards = 3, .unequal = {1, 2}}), Contains("2 parts for 3 shards"));
  REQUIRE_THROWS_WITH(sizes(10, {.unequal = {1, 0}}), Contains("parts of 1 or more"));
  REQUIRE_THROWS_WITH(sizes(10, {.unequal = {1, 100}}), Contains("leave a part of 1 of 101 empty"));
}

TEST_CASE("unsuitable options are refused and nothing is overwritten", "[data][import]") {
  const Folder folder;
  put(folder / "t.csv", "1,2,0\n3,4,1\n");
  const ImportRequest csv{.format = "csv", .inputs = {folder / "t.csv"}, .shape = {1, 1, 2}};
  const auto with = [&](ShardOptions options) {
    options.out = folder / "out";
    return refusal<ConfigError>(csv, options);
  };
  CHECK_THAT(with({.chunk = 32}), Contains("--chunk is 32, must be 64 to 256"));
  CHECK_THAT(with({.compress = 10}), Contains("--compress is 10"));
  CHECK_THAT(with({.prefix = "a/b"}), Contains("--prefix 'a/b'"));
  CHECK_THAT(with({.shards = 3}), Contains("2 samples do not fill 3 shards"));
  CHECK_THAT(with({.hold_out = 2}), Contains("2 samples cannot be held out of 2"));
  const auto request = [&](const ImportRequest& wrong) { return refusal<ConfigError>(wrong, {.out = folder / "out"}); };
  CHECK_THAT(request({.format = "csvv"}), Contains("csvv") && Contains("did you mean 'csv'"));
  CHECK_THAT(request({.format = "csv", .inputs = {folder / "t.csv"}}), Contains("--shape C,H,W"));
  CHECK_THAT(request({.format = "idx", .inputs = {"a"}}), Contains("images and labels; 1 given"));

  convert(csv, {.out = folder / "out"});
  REQUIRE_THROWS_WITH(convert(csv, {.out = folder / "out"}), Contains("exists already"));
  std::filesystem::create_directory(folder / "empty");
  convert(csv, {.out = folder / "empty/"});  // an empty folder may be filled
  REQUIRE(open_dataset(folder / "empty").samples() == 2);
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Data that must be refused when opened or decoded; the error names file, place and reason.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "data/chunk_cache.hpp"
#include "data/import/sequence_source.hpp"
#include "data/import/shard_writer.hpp"
#include "data/loader.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/data/shards.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::refusal;
namespace fs = std::filesystem;

constexpr std::int64_t kRows = std::int64_t{1} << 31;

std::string refused(const std::string& location) {
  return refusal<DataError>([&] { (void)open_dataset(location); });
}

void write_header(h5::Writer& writer) { writer.attribute(sample_format::kClasses, std::int64_t{10}); }

// Writes a set of numeric sequences of lengths 3, 1, 4 in which the value number `bad` is `value`.
void write_sequences_with(const std::string& path, std::size_t bad, float value) {
  h5::Writer writer(path);
  write_header(writer);
  writer.attribute(sample_format::kKind, std::string("sequences"));
  std::vector<float> values(16, 1.0F);
  values[bad] = value;
  const std::vector<std::int32_t> lengths{3, 1, 4}, labels{0, 1, 2};
  writer.write_all(sample_format::kValues, DType::f32, {8, 2}, values.data());
  writer.write_all(sample_format::kLengths, DType::i32, {3}, lengths.data());
  writer.write_all(sample_format::kLabels, DType::i32, {3}, labels.data());
  writer.publish();
}

}  // namespace

TEST_CASE("rows that were declared but never written are refused at once", "[data]") {
  const test::Folder folder;
  const std::string path = folder / "a.h5";
  const std::int64_t chunk_rows = GENERATE(0, 1024);  // contiguous, chunked
  const h5::DatasetOptions options{.chunk_rows = chunk_rows, .deflate = 0};
  const double start = now_s();
  {
    h5::Writer writer(path);
    write_header(writer);
    writer.create(sample_format::kSamples, DType::u8, {kRows, 1, 1, 1}, options);
    writer.create(sample_format::kLabels, DType::u8, {kRows}, options);
    const std::vector<std::uint8_t> first(1024, 0);
    if (chunk_rows > 0) writer.write_rows(sample_format::kLabels, 0, 1024, first.data(), DType::u8);
    writer.publish();
  }
  CHECK_THAT(refused(path), Contains("a.h5: dataset 'labels' declares (2147483648), but") &&
                                Contains(chunk_rows > 0 ? "1 of its 2097152 chunks" : "0 of its 1 chunks"));
  {
    h5::Writer writer(path);
    write_header(writer);
    writer.attribute(sample_format::kKind, std::string("sequences"));
    writer.create(sample_format::kValues, DType::f32, {8, 2}, {});
    writer.create(sample_format::kLengths, DType::i32, {kRows}, options);
    const std::vector<float> values(16);
    writer.write_rows(sample_format::kValues, 0, 8, values.data(), DType::f32);
    writer.publish();
  }
  CHECK_THAT(refused(path), Contains("a.h5: dataset 'lengths' declares (2147483648)"));
  CHECK(now_s() - start < 5);
}

TEST_CASE("features that are not finite are named by file and record", "[data]") {
  const test::Folder folder;
  const float value = GENERATE(std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity());
  test::ShardSpec spec;
  spec.stored = DType::f32;
  test::write_shards(folder.path(), {20, 30}, spec);
  {
    h5::Writer writer(folder / "a1.h5");
    write_header(writer);
    std::vector<float> samples(30 * 16, 1.0F);
    samples[17 * 16 + 5] = value;
    const std::vector<std::int32_t> labels(30, 1);
    writer.write_all(sample_format::kSamples, DType::f32, {30, 1, 4, 4}, samples.data());
    writer.write_all(sample_format::kLabels, DType::i32, {30}, labels.data());
    writer.publish();
  }
  const std::string wanted = "a1.h5: record 17 of 'samples' holds " + std::string(std::isnan(value) ? "nan" : "-inf");
  const Dataset dataset = open_dataset(folder.path());
  CHECK_THAT(refusal<DataError>([&] { (void)ChunkCache(dataset, 1 << 20).record(25); }), Contains(wanted));
  DataConfig config;
  config.shuffle = false;
  CHECK_THAT(refusal<DataError>([&] {
               Loader loader(dataset, SamplePlan(plan_request(dataset, config, {10}, 1)), {.end_epoch = 1});
               for (int step = 0; step < 5; ++step) (void)loader.next();
             }),
             Contains(wanted));

  write_sequences_with(folder / "s.h5", 9, value);
  write_sequences_with(folder / "t.h5", 6, value);
  const auto first_of = [&](const char* name) {
    return refusal<DataError>([&] { (void)ChunkCache(open_dataset(folder / name), 1 << 20).record(0); });
  };
  CHECK_THAT(first_of("s.h5"), Contains("s.h5: record 2, step"));
  CHECK_THAT(first_of("t.h5"), Contains("t.h5: record 1, step"));
}

TEST_CASE("paths that cannot be followed are refused with the system's reason", "[data][import]") {
  const test::Folder folder;
  const std::string loop = folder / "loop", name_too_long = folder / std::string(300, 'x');
  const std::string path_too_long = folder / std::string(5000, '/') + "x";
  fs::create_symlink("loop", loop);
  for (const std::string& bad : {loop, name_too_long, path_too_long}) {
    const char* reason = bad == loop ? "Too many levels of symbolic links" : "File name too long";
    CHECK_THAT(refused(bad), Contains(reason));
    CHECK_THAT(refused(bad + "/*.h5"), Contains(reason));
    CHECK_THAT(refusal<DataError>([&] {
                 (void)open_source({.format = "csv", .inputs = {bad}, .shape = {1, 1, 1}});
               }),
               Contains(reason));
    CHECK_THAT(refusal<DataError>([&] { (void)open_sequences({.format = "pairs", .inputs = {bad}}); }),
               Contains(reason));
    CHECK_THAT(refusal<DataError>([&] { (void)open_sequences({.format = "sequences", .inputs = {bad + ".ts"}}); }),
               Contains(bad == loop ? "No such file" : reason));
    CHECK_THAT(refusal<ConfigError>([&] { (void)free_folders({.out = bad}); }), Contains(reason));
  }
  fs::create_directory(folder / "set");
  fs::create_symlink("a.h5", folder / "set/a.h5");
  CHECK_THAT(refused(folder / "set"), Contains("a.h5: cannot be read: Too many levels of symbolic links"));
}

}  // namespace echelon

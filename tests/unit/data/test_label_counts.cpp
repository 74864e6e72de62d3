// SPDX-License-Identifier: Apache-2.0
// Labels that are numbered from 1, that leave classes empty, or that are no classes at all.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "data/class_mix.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/source.hpp"
#include "h5/file.hpp"
#include "tests/support/images.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;

LabelCounts counts_of(const std::vector<std::int32_t>& labels) {
  LabelCounts counts;
  for (const std::int32_t label : labels) counts.add(label);
  return counts;
}

// Returns labels i * step + first for samples i = 0 .. 39.
std::vector<std::int32_t> labels_of(std::int32_t first, std::int32_t step, std::int32_t kinds) {
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < 40; ++i) labels.push_back(first + i % kinds * step);
  return labels;
}

ShardsWritten import_csv(const Folder& folder, const std::vector<std::int32_t>& labels, bool as_they_are = false) {
  std::string table;
  for (const std::int32_t label : labels) table += fmt::format("1,2,{}\n", label);
  test::put_file(folder / "t.csv", table);
  std::filesystem::remove_all(folder / "out");
  const auto source = open_source({.format = "csv", .inputs = {folder / "t.csv"}, .shape = {1, 1, 2}});
  return write_shards(*source, {.out = folder / "out", .input = folder / "t.csv", .labels_as_they_are = as_they_are});
}

void write_shard(const std::string& path, const std::vector<std::int32_t>& labels, std::int64_t classes) {
  const auto n = std::ssize(labels);
  const std::vector<std::uint8_t> values(static_cast<std::size_t>(4 * n), 1);
  h5::Writer writer(path);
  writer.attribute("classes", classes);
  writer.write_all("samples", DType::u8, {n, 1, 2, 2}, values.data());
  writer.write_all("labels", DType::i32, {n}, labels.data());
  writer.publish();
}

std::vector<std::string> warnings_of(const std::string& path) {
  Dataset set = open_dataset(path);
  set.label_sample = std::make_shared<const LabelSample>(set);
  return label_warnings(set, path);
}

}  // namespace

TEST_CASE("classes without a sample are named, labels from 1 with their cure", "[data]") {
  CHECK(empty_classes_text(counts_of({0, 1, 2}), 3, {}).empty());
  CHECK_THAT(empty_classes_text(counts_of({1, 2}), 3, {}),
             Contains("no sample has class 0, but all 2 others have samples") && Contains("subtract 1"));
  CHECK(empty_classes_text(counts_of({1, 2}), 3, {"a", "b", "c"}) == "1 of 3 classes has no sample: 0 (a)");
  CHECK(empty_classes_text(counts_of({0, 9}), 12, {}) ==
        "10 of 12 classes have no sample: 1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
}

TEST_CASE("numbers of samples are not taken for classes unless that is asked for, by any importer", "[data][import]") {
  const Folder folder;
  CHECK_THAT(test::refusal<DataError>([&] { import_csv(folder, labels_of(0, 1, 40)); }),
             Contains("t.csv: 40 samples have 40 different labels, up to 39") && Contains("--label-column"));
  CHECK_THAT(test::refusal<DataError>([&] { import_csv(folder, labels_of(5, 100'000, 20)); }),  // quantities
             Contains("40 samples have 20 different labels, up to 1,900,005"));
  CHECK(import_csv(folder, labels_of(0, 1000, 40), true).classes == 39001);
  CHECK_THAT(test::refusal<DataError>([&] {
               import_csv(folder, {0, 2'000'000'000}, true);
             }),
             Contains("the largest label is 2000000000, but at most 16777216 classes"));
  CHECK_THAT(import_csv(folder, labels_of(1, 1, 10)).empty_classes, Contains("no sample has class 0"));
  CHECK(import_csv(folder, labels_of(0, 1, 20)).empty_classes.empty());
  CHECK(import_csv(folder, {0, 1, 2}).classes == 3);  // a few samples may each be of another class
}

TEST_CASE("labels of shards are looked at before a run begins: odd ones are told, bad ones refused", "[data]") {
  const Folder folder;
  const std::string path = folder / "a.h5";
  const auto first_warning = [&](const std::vector<std::int32_t>& labels, std::int64_t classes) {
    write_shard(path, labels, classes);
    const std::vector<std::string> all = warnings_of(path);
    return all.empty() ? std::string() : all.front();
  };
  CHECK(first_warning(labels_of(0, 1, 10), 10).empty());
  CHECK_THAT(first_warning(labels_of(1, 1, 10), 11), Contains("a.h5: no sample has class 0"));
  CHECK_THAT(first_warning(labels_of(0, 1, 40), 1'000'001), Contains("40 samples have 40 different labels"));
  write_shard(path, labels_of(1, 1, 10), 10);
  CHECK_THROWS_WITH(warnings_of(path), Contains("a.h5: record 9 has label 10, must be 0 to 9"));
}

}  // namespace echelon

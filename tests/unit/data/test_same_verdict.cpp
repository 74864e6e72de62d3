// SPDX-License-Identifier: Apache-2.0
// `inspect` and `--verify` refuse what a run would refuse, and report what is left out of a folder.
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <limits>

#include "base/error.hpp"
#include "data/class_mix.hpp"
#include "data/dataset.hpp"
#include "data/location.hpp"
#include "data/verify.hpp"
#include "h5/file.hpp"
#include "tests/support/images.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;

void write(const std::string& path, float value, std::int32_t label, double std = 1) {
  const std::array<float, 4> values{0, 1, value, 3};
  const std::array<std::int32_t, 4> labels{0, 1, label, 1};
  h5::Writer writer(path);
  writer.attribute("classes", std::int64_t{2});
  writer.attribute("std", std::vector<double>{std});
  writer.write_all("samples", DType::f32, {4, 1, 1, 1}, values.data());
  writer.write_all("labels", DType::i32, {4}, labels.data());
  writer.publish();
}

}  // namespace

TEST_CASE("verifying finds values and labels that training would refuse", "[data]") {
  const Folder folder;
  const std::string path = folder / "a.h5";
  write(path, 2, 1);
  CHECK(verify_shard(path).ok());
  write(path, std::numeric_limits<float>::quiet_NaN(), 1);
  CHECK_THAT(damage_text(verify_shard(path)), Contains("'samples' rows 2 to 2: holds nan"));
  write(path, 2, 7);
  CHECK_THAT(damage_text(verify_shard(path)), Contains("record 2 has label 7, must be 0 to 1"));
  write(path, 2, 1, 1e-320);
  CHECK_THROWS_WITH(open_dataset(path), Contains("of channel 0 give values that do not fit into a 32-bit float"));
}

TEST_CASE("HDF5 files of other names, and shards one folder below, are told", "[data]") {
  const Folder folder;
  write(folder / "a.h5", 2, 1);
  write(folder / "b.HDF5", 2, 1);
  test::put_file(folder / "readme.txt", "not HDF5");
  CHECK(open_dataset(folder.path()).shards.size() == 2);
  CHECK(location_warnings(folder.path()).empty());
  write(folder / "c.he5", 2, 1);
  std::filesystem::create_directory(folder / "more");
  write(folder / "more/d.h5", 2, 1);
  CHECK_THAT(location_warnings(folder.path()).at(0),
             Contains("1 .he5 file, " + folder / "c.he5") && Contains("1 folder with shards, " + folder / "more"));
  CHECK(location_warnings(folder / "a.h5").empty());
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Damaged shards: a flipped bit anywhere in a file is refused or changes nothing that is read. Also tests the words
// with which `data inspect --verify` describes the damage.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "data/import/sequence_writer.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/text_writer.hpp"
#include "data/verify.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/data/flipped_bits.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::Reading;

// Writes shards of every kind by the importers; returns the path of one of each.
std::vector<std::string> import_all(const Folder& folder) {
  std::ofstream(folder / "text.txt") << [] {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "word" + std::to_string(i % 37) + (i % 9 == 0 ? "\n" : " ");
    return text;
  }();
  std::filesystem::create_directory(folder / "lines");
  for (const char* name : {"alpha", "beta", "gamma"}) {
    std::ofstream lines(folder / "lines" + std::string("/") + name + ".txt");
    for (int i = 0; i < 30; ++i) lines << name << i * 31 << "\n";
  }
  std::ofstream steps(folder / "steps.csv");
  for (int i = 0; i < 90; ++i) steps << i / 7 << "," << i / 7 % 3 << "," << i * 0.5 << "," << -i << "\n";
  steps.close();
  std::ofstream pairs(folder / "pairs.tsv");
  for (int i = 0; i < 60; ++i) pairs << "one two " << i % 11 << "\tun deux " << i % 11 << " fin\n";
  pairs.close();

  std::vector<std::string> files;
  for (const int compress : {0, 5}) {
    const std::string kind = compress > 0 ? "-gzip" : "";
    const auto options = [&](const std::string& name) {
      return ShardOptions{.out = folder / (name + kind), .shards = 1, .chunk = 64, .compress = compress};
    };
    const auto stored = compress > 0 ? DType::f32 : DType::u8;
    files.push_back(write_shards(*make_synth({.samples = 150, .shape = {2, 5, 3}, .classes = 7, .stored = stored}),
                                 options("samples"))
                        .files[0]);
    files.push_back(write_token_shards({.format = "words", .inputs = {folder / "text.txt"}}, options("text")).files[0]);
    for (const auto& [format, input] : std::vector<std::pair<std::string, std::string>>{
             {"sequences", "lines"}, {"sequences", "steps.csv"}, {"pairs", "pairs.tsv"}})
      files.push_back(
          write_sequences(*open_sequences({.format = format, .inputs = {folder / input}}), options(input + "-set"))
              .files[0]);
  }
  return files;
}

void flip_everywhere(int times) {
  const Folder folder;
  for (const std::string& path : import_all(folder)) {
    std::string notes;
    const test::Readings readings = test::read_with_flips(path, times, test::test_seed(), notes);
    INFO(path << notes);
    int refused = 0;
    for (const auto& [reading, count] : readings) {
      CHECK((reading == Reading::refused || reading == Reading::unchanged));
      if (reading == Reading::refused) refused += count;
    }
    CHECK(refused > times / 4);
    if (times >= 2000)
      fmt::print("{}: {} bytes, {} flips: {} refused\n", path.substr(folder.path().size() + 1),
                 std::filesystem::file_size(path), times, refused);
  }
}

void flip_byte(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 4));
}

}  // namespace

TEST_CASE("a dataset of many rows without elements is verified at once", "[data]") {
  const Folder folder;
  h5::Writer writer(folder / "empty.h5");
  writer.create("samples", DType::u8, {std::int64_t{1} << 50, 0, 3});
  writer.publish();
  CHECK(verify_shard(folder / "empty.h5").bytes == 0);
}

TEST_CASE("a flipped bit anywhere in a shard is refused or changes nothing", "[data][damage]") { flip_everywhere(120); }

TEST_CASE("2,000 flipped bits in a shard of each kind", "[data][flips][.soak]") { flip_everywhere(2000); }

TEST_CASE("verifying names the damaged rows of each file", "[data][damage]") {
  const Folder folder;
  const auto source = make_synth({.samples = 500, .shape = {1, 16, 16}, .classes = 4});
  const std::vector<std::string> files = write_shards(*source, {.out = folder / "set", .shards = 2, .chunk = 64}).files;
  CHECK(verify_shard(files[0]).ok());
  CHECK(verify_shard(files[0], true).unchecked.empty());
  CHECK(verify_shard(files[0]).bytes > 250 * 257);
  CHECK(require_intact(files) > 500 * 257);

  // The file is mostly the 4 chunks of 64 samples of 256 bytes; two neighbours are damaged, and their rows are found.
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(files[1]));
  flip_byte(files[1], size - 20000);
  const ShardVerdict one = verify_shard(files[1]);
  REQUIRE(one.damaged.size() == 1);
  CHECK(one.damaged[0].dataset == "samples");
  CHECK(one.damaged[0].first % 64 == 0);
  CHECK(one.damaged[0].count <= 64);
  CHECK_THAT(damage_text(one), Contains("'samples' rows ") && Contains("it does not match its checksum"));
  flip_byte(files[1], size - 20000 - 16384);
  const ShardVerdict two = verify_shard(files[1]);
  REQUIRE(two.damaged.size() == 1);
  CHECK(two.damaged[0].count > 64);

  const auto plain = make_synth({.samples = 80, .shape = {1, 4, 4}, .classes = 4});
  const std::string without = write_shards(*plain, {.out = folder / "plain", .shards = 1, .checksums = false}).files[0];
  CHECK(verify_shard(without).ok());
  CHECK(verify_shard(without).unchecked == std::vector<std::string>{"labels", "samples"});
  std::ofstream(folder / "none.h5") << "no shard";
  CHECK_THAT(damage_text(verify_shard(folder / "none.h5")), Contains("none.h5: is not an HDF5 file"));
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// The memory that a table with one very long line takes: a multiple of the line's length that does not grow.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>

#include "data/import/csv_table.hpp"
#include "data/import/shard_writer.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using test::Folder;

constexpr double kOther = 16 << 20;  // code and buffers that the body touches first
constexpr std::int64_t kValues = 3'000'000;

// A heading would be kept; this line is a row. Returns its length.
double put_row(const std::string& path, const std::string& cell) {
  std::string line;
  for (std::int64_t i = 0; i < kValues; ++i) line += cell + ",";
  line += cell + "\n";
  std::ofstream(path, std::ios::binary) << line;
  return static_cast<double>(line.size());
}

double peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

// How far the body raises the peak of resident memory, in a process of its own, whose peak begins at what it has: what
// tests before have freed is given back first, else the body would take its place.
double raised_bytes(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::malloc_trim(0);
  const pid_t child = ::fork();
  if (child == 0) {
    const double before = peak_bytes();
    double raised = -1;
    try {
      body();
      raised = peak_bytes() - before;
    } catch (...) {
    }
    const bool told = ::write(ends[1], &raised, sizeof raised) == sizeof raised;
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  double raised = -1;
  CHECK(::read(ends[0], &raised, sizeof raised) == sizeof raised);
  ::close(ends[0]);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  return raised;
}

TEST_CASE("a long line of a table takes up to 10 times its length in memory", "[data][resident]") {
  for (const std::string cell : {"7", "\"7\"", "1.25"}) {
    const Folder folder;
    const double length = put_row(folder / "t.csv", cell);
    const double raised = raised_bytes([&] {
      CsvTable table(folder / "t.csv", Heading::automatic, 0);
      std::vector<std::string_view> cells;
      for (int pass = 0; pass < 2; ++pass) {
        if (!table.next(cells) || cells.size() != kValues + 1) throw std::runtime_error("not the row");
        table.rewind();
      }
    });
    INFO(cell << ": " << raised / length << " times the length");
    CHECK(raised > length);
    CHECK(raised < 10 * length + kOther);
  }
}

TEST_CASE("an import of a long line takes a small multiple of its length in memory", "[data][resident]") {
  const Folder folder;
  const double length = put_row(folder / "t.csv", "1.25");
  const double raised = raised_bytes([&] {
    const auto source = open_source(
        {.format = "csv", .inputs = {folder / "t.csv"}, .shape = {1, 1, kValues}, .targets = 1, .stored = DType::f32});
    write_shards(*source, {.out = folder / "set", .shards = 1});
  });
  INFO(raised / length << " times the length");
  CHECK(raised > length);
  CHECK(raised < 12 * length + kOther);
}

}  // namespace
}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Checksums of chunks: they equal the library's, and a flipped bit is named with its rows.
#include <fcntl.h>
#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "base/crash_note.hpp"
#include "base/error.hpp"
#include "base/processor.hpp"
#include "h5/file.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::refusal;

std::vector<std::uint8_t> random_bytes(std::size_t n, std::int64_t low, std::int64_t high, const char* name) {
  std::vector<std::uint8_t> bytes;
  for (const std::int64_t value : test::random_integers(n, low, high, name))
    bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

// Inverts a bit of the file, `bytes` bytes after the first occurrence of `mark`.
void flip_after(const std::string& path, const std::string& mark, std::size_t bytes, int bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  const std::size_t at = content.find(mark);
  REQUIRE(at != std::string::npos);
  file.seekp(static_cast<std::streamoff>(at + bytes));
  file.put(static_cast<char>(content[at + bytes] ^ (1 << bit)));
}

// Writes a file of the oldest format, which has no checksums: 'rows', all 1, and numbers in the attribute 'mean'.
void write_old(const std::string& path, const std::vector<hsize_t>& extent, hsize_t chunk_rows = 0,
               const std::vector<double>& mean = {}) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  std::vector<hsize_t> chunk = extent;
  chunk[0] = chunk_rows;
  if (chunk_rows > 0) H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  const std::vector<std::uint8_t> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)), 1);
  const hid_t rows = H5Dcreate2(file, "rows", H5T_NATIVE_UINT8, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Dwrite(rows, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  if (const hsize_t count = mean.size(); count > 0) {
    const hid_t few = H5Screate_simple(1, &count, nullptr);
    const hid_t numbers = H5Acreate2(file, "mean", H5T_NATIVE_DOUBLE, few, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(numbers, H5T_NATIVE_DOUBLE, mean.data());
    H5Aclose(numbers);
    H5Sclose(few);
  }
  H5Dclose(rows);
  H5Pclose(creation);
  H5Sclose(space);
  H5Fclose(file);
}

}  // namespace

TEST_CASE("checksums are those of the library, for chunks of every length and for extreme bytes", "[h5][checksums]") {
  const Folder folder;
  const auto odd = static_cast<std::size_t>(test::random_integers(1, 4000, 30000, "length")[0]);
  for (const std::size_t length : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{719}, std::size_t{720},
                                   std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, std::size_t{8192}, odd})
    for (const auto& [low, high] : std::vector<std::pair<int, int>>{{0, 0}, {255, 255}, {0, 255}, {254, 255}}) {
      const std::string path = folder / "sums.h5";
      const auto bytes = static_cast<std::int64_t>(length);
      const std::vector<std::uint8_t> values = random_bytes(2 * length, low, high, "bytes");
      h5::Writer writer(path);  // the library computes the checksums when it writes
      writer.write_all("rows", DType::u8, {2, bytes}, values.data(), {.chunk_rows = 1, .checksum = true});
      writer.publish();
      const h5::Reader reader(path);
      REQUIRE(reader.info("rows").checksum);
      std::vector<std::uint8_t> back(values.size());
      INFO(length << " bytes from " << low << " to " << high);
      REQUIRE_NOTHROW(reader.read_all("rows", back.data(), DType::u8));
      REQUIRE(back == values);
    }
}

TEST_CASE("a flipped bit is a DataError with file, dataset and rows, in every storage", "[h5][checksums]") {
  const Folder folder;
  const std::string path = folder / "flipped.h5";
  const int deflate = GENERATE(0, 4);
  const auto dtype = GENERATE(DType::u8, DType::i32);
  // Rows 8 to 15 begin with a mark that no compression hides: they are random.
  std::vector<std::uint8_t> rows = random_bytes(21 * 40 * size_of(dtype), 0, 255, "rows");
  const auto write = [&](bool checksum) {
    h5::Writer writer(path);
    writer.write_all("rows", dtype, {21, 40}, rows.data(), {.chunk_rows = 8, .deflate = deflate, .checksum = checksum});
    writer.publish();
  };
  write(true);
  std::string mark;
  if (deflate == 0)
    mark.assign(rows.begin() + static_cast<std::ptrdiff_t>(8 * 40 * size_of(dtype)),
                rows.begin() + static_cast<std::ptrdiff_t>(9 * 40 * size_of(dtype)));
  else  // zlib's stored blocks begin after its two bytes of head; the second of three chunks is meant
    mark = "\x78\x5e";
  const auto bit = static_cast<int>(test::random_integers(1, 0, 7, "bit")[0]);
  if (deflate == 0) {
    flip_after(path, mark, 17, bit);
    const std::string rows_text =
        "dataset 'rows' is damaged in the chunk of rows 8 to 15: it does not match its checksum";
    std::vector<std::uint8_t> back(rows.size());
    std::vector<double> converted(21 * 40);
    const h5::Reader reader(path);
    CHECK_THAT(refusal<DataError>([&] { reader.read_all("rows", back.data(), dtype); }),
               Contains("flipped.h5: " + rows_text));
    CHECK_THAT(refusal<DataError>([&] { reader.read_rows("rows", 9, 2, back.data(), dtype); }), Contains(rows_text));
    CHECK_THAT(refusal<DataError>([&] { reader.read_rows("rows", 9, 2, converted.data(), DType::f64); }),
               Contains(rows_text));
    CHECK_NOTHROW(reader.read_rows("rows", 0, 8, back.data(), dtype));
    CHECK_NOTHROW(reader.read_rows("rows", 16, 5, back.data(), dtype));
    write(false);
    flip_after(path, mark, 17, bit);
    const h5::Reader without(path);
    CHECK_FALSE(without.info("rows").checksum);
    CHECK_NOTHROW(without.read_all("rows", back.data(), dtype));
    CHECK(back != rows);
  } else {
    flip_after(path, mark, 9, bit);
    std::vector<std::uint8_t> back(rows.size());
    CHECK_THAT(refusal<DataError>([&] { h5::Reader(path).read_all("rows", back.data(), dtype); }),
               Contains("'rows' is damaged in the chunk of rows ") && Contains(": it does not match its checksum"));
  }
}

TEST_CASE("what is written has checksums of headers and indexes too, and the same bytes each time", "[h5][checksums]") {
  const Folder folder;
  const auto content = [&](const std::string& name) {
    h5::Writer writer(folder / name);
    const std::vector<std::int32_t> values(100, 3);
    writer.attribute("names", std::vector<std::string>{"one", "", "eleven"});
    for (int i = 0; i < 20; ++i) writer.attribute("number_" + std::to_string(i), std::int64_t{i});
    for (const char* dataset : {"group/deeper/rows", "group/rows", "rows"})
      writer.write_all(dataset, DType::i32, {50, 2}, values.data(), {.chunk_rows = 8, .checksum = true});
    writer.publish();
    std::ifstream file(folder / name, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  const std::string first = content("first.h5");
  CHECK(first[8] == 3);  // version of the superblock: it and all later blocks have checksums
  CHECK(first == content("second.h5"));
}

TEST_CASE("a damaged chunk size in an old file, whose headers have no checksums, is refused", "[h5][checksums]") {
  const Folder folder;
  const std::string path = folder / "old.h5";
  const std::array<hsize_t, 3> extent{20, 3, 9}, chunk{7, 3, 9};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(3, extent.data(), nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 3, chunk.data());
  const std::vector<std::uint8_t> values(20 * 3 * 9, 1);
  const hid_t rows = H5Dcreate2(file, "rows", H5T_NATIVE_UINT8, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Dwrite(rows, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(rows);
  H5Pclose(creation);
  H5Sclose(space);
  H5Fclose(file);
  const std::string sizes("\7\0\0\0\3\0\0\0\11\0\0\0\1\0\0\0", 16);  // in the layout message, with the element's
  CHECK(h5::Reader(path).info("rows").shape == Shape{20, 3, 9});
  flip_after(path, sizes, 10, 4);
  CHECK_THAT(refusal<DataError>([&] { (void)h5::Reader(path).info("rows"); }),
             Contains("'rows' is damaged: its chunks are (7, 3, 1048585), its shape is (20, 3, 9)"));
}

TEST_CASE("a damaged shape in an old file, whose headers have no checksums, is refused", "[h5][checksums]") {
  const Folder folder;
  const std::string path = folder / "old.h5", extents("\24\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16);
  for (const auto& [byte, bit] : {std::pair{0, 3}, std::pair{2, 5}, std::pair{9, 0}, std::pair{7, 4}}) {
    write_old(path, {20, 3});
    CHECK(h5::Reader(path).info("rows").shape == Shape{20, 3});
    flip_after(path, extents, static_cast<std::size_t>(byte), bit);
    CAPTURE(byte, bit);
    CHECK_THAT(refusal<DataError>([&] { (void)h5::Reader(path).info("rows"); }),
               Contains("'rows' is damaged: its shape is"));
  }
}

TEST_CASE("an old dataset whose place is said to be in its header, without values there, is refused",
          "[h5][checksums]") {
  const Folder folder;
  const std::string path = folder / "old.h5";
  write_old(path, {77});
  // The layout message has version 3, class 1 (contiguous), address, size. Class 0 has a 2-byte size and the values.
  std::fstream content(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(content)), {});
  const std::string bytes("\115\0\0\0\0\0\0\0", 8);  // 77
  std::size_t at = std::string::npos;
  for (std::size_t i = 10; i + 8 <= all.size(); ++i)
    if (all.compare(i, 8, bytes) == 0 && all[i - 10] == 3 && all[i - 9] == 1) at = i - 10;
  REQUIRE(at != std::string::npos);
  content.seekp(static_cast<std::streamoff>(at + 1));
  content.write("\0\0\0", 3);
  content.close();
  CHECK_THAT(refusal<DataError>([&] { (void)h5::Reader(path).info("rows"); }), Contains("'rows' is damaged"));
}

TEST_CASE("a damaged old file of which no shape can be is refused: one value in chunks, endless attributes",
          "[h5][checksums]") {
  const Folder folder;
  const std::string path = folder / "old.h5";
  const auto write = [&] { write_old(path, {20}, 7, {1, 2, 3}); };
  write();
  CHECK(h5::Reader(path).attribute_doubles("mean").size() == 3);
  // A dataspace message has version, axes, flags (with a largest extent), extents.
  std::string shape("\1\1\1\0\0\0\0\0\3\0\0\0\0\0\0\0", 16);
  flip_after(path, shape, 15, 5);  // enough rows that their bytes are 24 again, modulo 2^64
  CHECK_THAT(refusal<DataError>([&] { (void)h5::Reader(path).attribute_doubles("mean"); }),
             Contains("attribute 'mean' is damaged: its 2305843009213693955 values"));
  write();
  shape[8] = 20;
  flip_after(path, shape, 1, 0);  // no axes
  CHECK_THAT(refusal<DataError>([&] { (void)h5::Reader(path).info("rows"); }),
             Contains("'rows' is damaged: it is one value, and stored in chunks"));
}

TEST_CASE("a group that a damaged link leads back to is listed once", "[h5]") {
  const Folder folder;
  const std::string path = folder / "loop.h5";
  h5::Writer writer(path);
  const std::vector<std::uint8_t> values(6, 1);
  for (const char* name : {"b/inner/rows", "b/rows", "a"}) writer.write_all(name, DType::u8, {6}, values.data());
  writer.publish();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_hard(file, "/b", file, "/b/inner/back", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file, "/", file, "/b/root", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file, "/a", file, "/z", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  std::vector<std::string> names;
  for (const h5::DatasetInfo& dataset : h5::Reader(path).datasets()) names.push_back(dataset.name);
  CHECK(names == std::vector<std::string>{"a", "b/inner/rows", "b/rows"});
}

TEST_CASE("a file that crashes the library ends the process with its name and the code of damaged data", "[h5]") {
  if (test::skip_without(kX86, test::Lacks::processor, "no division by 0 ends a process here")) return;
  const Folder folder;
  const std::string path = folder / "old.h5", said = folder / "said";
  write_old(path, {20}, 7);
  // The layout message has version 3, class 2 (chunked), 2 extents. Version 2 has other offsets: a chunk of 0 rows.
  flip_after(path, "\3\2\2", 0, 0);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(said.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    if (!explain_crashes()) ::_exit(100);
    try {
      (void)h5::Reader(path).info("rows");
    } catch (const DataError&) {
      ::_exit(100);  // the library refuses it
    }
    ::_exit(101);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (test::skip_without(WIFEXITED(status) && WEXITSTATUS(status) != 100, test::Lacks::build,
                         "this library, or build, does not crash"))
    return;
  CHECK(WEXITSTATUS(status) == kExitData);
  std::ifstream text(said);
  CHECK_THAT(std::string((std::istreambuf_iterator<char>(text)), {}),
             Contains(path + ": the program crashed (SIGFPE) while the HDF5 library read it"));
}

}  // namespace echelon

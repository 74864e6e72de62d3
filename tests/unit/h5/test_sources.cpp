// SPDX-License-Identifier: Apache-2.0
// Rows that HDF5 would read as zeros: rows never written, or rows in other files that are missing or too short.
#include <hdf5.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::refusal;

std::vector<std::int32_t> counting(int n) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

struct Mapping {
  std::string file, dataset;
  hsize_t to = 0, rows = 0, of = 0;  // rows [to, to + rows) are rows [0, rows) of a source that has `of` rows
  bool whole = false;                // selects all rows of the source, as h5py does, whatever their number
};

// Writes a virtual dataset "all" of `rows` rows of 2.
void write_virtual(const std::string& path, hsize_t rows, const std::vector<Mapping>& mappings) {
  const std::array<hsize_t, 2> extent{rows, 2};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, extent.data(), nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
  for (const Mapping& mapping : mappings) {
    const std::array<hsize_t, 2> of{mapping.of, 2}, count{mapping.rows, 2}, to{mapping.to, 0}, from{0, 0};
    const hid_t source = H5Screate_simple(2, of.data(), nullptr);
    if (!mapping.whole) H5Sselect_hyperslab(source, H5S_SELECT_SET, from.data(), nullptr, count.data(), nullptr);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, to.data(), nullptr, count.data(), nullptr);
    H5Pset_virtual(creation, space, mapping.file.c_str(), mapping.dataset.c_str(), source);
    H5Sclose(source);
  }
  H5Sselect_all(space);
  H5Dclose(H5Dcreate2(file, "all", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Pclose(creation);
  H5Sclose(space);
  H5Fclose(file);
}

// Writes a virtual dataset "all" whose mapping has no end: one source file for each block of 2 rows.
void write_endless(const std::string& path) {
  const hsize_t extent = 6, most = H5S_UNLIMITED, start = 0, stride = 2, count = H5S_UNLIMITED, block = 2;
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &extent, &most), source = H5Screate_simple(1, &block, nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &count, &block);
  H5Pset_virtual(creation, space, "one-%b.h5", "part", source);
  H5Dclose(H5Dcreate2(file, "all", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Pclose(creation);
  H5Sclose(source);
  H5Sclose(space);
  H5Fclose(file);
}

void write_source(const std::string& path, std::int64_t rows, bool checksum, std::int64_t written) {
  h5::Writer writer(path);
  const std::vector<std::int32_t> values = counting(static_cast<int>(2 * rows));
  writer.create("part", DType::i32, {rows, 2}, {.chunk_rows = 2, .checksum = checksum});
  writer.write_rows("part", 0, written, values.data(), DType::i32);
  writer.publish();
}

}  // namespace

TEST_CASE("rows that were never written are named, in old and in new files", "[h5][sources]") {
  const Folder folder;
  const bool chunked = GENERATE(true, false), newest = GENERATE(false, true);
  const std::string path = folder / "holes.h5";
  const hsize_t extent = 40, chunk = 8;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_DATASET_CREATE);
  if (newest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  if (chunked) H5Pset_chunk(creation, 1, &chunk);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  const hid_t dataset = H5Dcreate2(file, "rows", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const std::vector<std::int32_t> values = counting(8);
  if (chunked)
    for (const hsize_t first : {0, 8, 24, 32}) {  // 16 is missing
      const hid_t memory = H5Screate_simple(1, &chunk, nullptr), to = H5Scopy(space);
      H5Sselect_hyperslab(to, H5S_SELECT_SET, &first, nullptr, &chunk, nullptr);
      H5Dwrite(dataset, H5T_NATIVE_INT32, memory, to, H5P_DEFAULT, values.data());
      H5Sclose(memory);
      H5Sclose(to);
    }
  H5Dclose(dataset);
  H5Sclose(space);
  H5Fclose(file);
  H5Pclose(creation);
  H5Pclose(access);
  const h5::Reader reader(path);
  CHECK_THAT(refusal<DataError>([&] { reader.require_written("rows"); }),
             Contains("holes.h5: dataset 'rows' declares (40)") &&
                 Contains(chunked ? "4 of its 5 chunks were written" : "0 of its 1 chunks were written"));
}

TEST_CASE("a virtual dataset is read if every row has a source that is there and written", "[h5][sources]") {
  const Folder folder;
  const std::string path = folder / "virtual.h5";
  write_source(folder / "one.h5", 6, true, 6);
  write_source(folder / "two.h5", 4, true, 4);
  const auto refused = [&] { return refusal<DataError>([&] { (void)h5::Reader(path).info("all"); }); };

  for (const bool whole : {false, true}) {
    write_virtual(path, 9, {{"one.h5", "part", 0, 6, 6, whole}, {"two.h5", "part", 6, 3, 4}});
    const h5::Reader reader(path);
    CHECK(reader.info("all").checksum);
    std::vector<std::int32_t> all(18);
    reader.read_all("all", all.data(), DType::i32);
    std::vector<std::int32_t> wanted = counting(12);
    const std::vector<std::int32_t> more = counting(6);
    wanted.insert(wanted.end(), more.begin(), more.end());
    CHECK(all == wanted);
  }
  write_source(folder / "two.h5", 4, false, 4);
  CHECK_FALSE(h5::Reader(path).info("all").checksum);
  write_source(folder / "two.h5", 4, true, 2);
  CHECK_THAT(refused(), Contains("virtual.h5: dataset 'all' is virtual and its source is invalid") &&
                            Contains("two.h5: dataset 'part' declares (4, 2), but 1 of its 2 chunks"));
  std::filesystem::remove(folder / "two.h5");
  CHECK_THAT(refused(), Contains("virtual.h5: dataset 'all' is virtual and its source file two.h5 is missing"));
  write_source(folder / "two.h5", 2, true, 2);
  CHECK_THAT(refused(), Contains("its mapping does not fit 'part'") && Contains("whose shape is (2, 2)"));
  write_virtual(path, 9, {{"one.h5", "part", 0, 6, 6}, {"one.h5", "part", 2, 6, 6}});
  CHECK_THAT(refused(), Contains("2 of its 18 elements have no source"));
  write_virtual(path, 6, {{"one.h5", "whole", 0, 6, 6}});
  CHECK_THAT(refused(), Contains("'whole' is missing"));
  for (const hsize_t rows : {5, 7}) {  // the whole source has 6 rows
    write_virtual(path, rows, {{"one.h5", "part", 0, rows, rows, true}});
    CHECK_THAT(refused(), Contains("its mapping does not fit 'part'") && Contains("whose shape is (6, 2)"));
  }
  write_endless(path);
  CHECK_THAT(refused(), Contains("are complete: list them one by one"));
  write_virtual(path, 6, {{"virtual.h5", "all", 0, 6, 6}});  // its source is itself
  CHECK_THAT(refused(), Contains("is virtual, with more than 8 levels"));
}

TEST_CASE("raw files of a dataset must be there in their whole length", "[h5][sources]") {
  const Folder folder;
  const std::string path = folder / "outside.h5", raw = folder / "rows.raw";
  const hsize_t extent = 10;
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &extent, nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(creation, raw.c_str(), 8, 40);
  H5Dclose(H5Dcreate2(file, "rows", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Pclose(creation);
  H5Sclose(space);
  H5Fclose(file);
  const auto refused = [&] { return refusal<DataError>([&] { (void)h5::Reader(path).info("rows"); }); };
  CHECK_THAT(refused(), Contains("'rows' lies in the file " + raw) && Contains("No such file"));
  std::ofstream(raw, std::ios::binary) << std::string(47, '\1');
  CHECK_THAT(refused(), Contains("has 47 bytes instead of 48"));
  std::ofstream(raw, std::ios::binary) << std::string(48, '\1');
  std::vector<std::int32_t> back(10);
  h5::Reader(path).read_all("rows", back.data(), DType::i32);
  CHECK(back == std::vector<std::int32_t>(10, 0x01010101));
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Files of other programs that cannot be read here: the message names cause and cure.
#include <fcntl.h>
#include <hdf5.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::refusal;

std::size_t pass(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) { return bytes; }

// Writes a chunked dataset "rows" with the filter of this number.
bool write_filtered(const std::string& path, H5Z_filter_t filter) {
  const H5Z_class2_t kind = {H5Z_CLASS_T_VERS, filter, 1, 1, "of another program", nullptr, nullptr, pass};
  if (H5Zregister(&kind) < 0) return false;
  const std::array<hsize_t, 2> extent{8, 2}, chunk{4, 2};
  const std::array<std::int32_t, 16> values{};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, extent.data(), nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 2, chunk.data());
  H5Pset_filter(creation, filter, 0, 0, nullptr);
  const hid_t rows = H5Dcreate2(file, "rows", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const bool written = H5Dwrite(rows, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
  H5Dclose(rows);
  H5Pclose(creation);
  H5Sclose(space);
  return H5Fclose(file) >= 0 && written;
}

// Writes in a process of its own, because the filter must not be registered in this one.
void write_by_another(const std::string& path, H5Z_filter_t filter) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(write_filtered(path, filter) ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

void write_plain(const std::string& path) {
  h5::Writer writer(path);
  const std::array<std::int32_t, 6> values{1, 2, 3, 4, 5, 6};
  writer.write_all("rows", DType::i32, Shape{6}, values.data());
  writer.publish();
}

}  // namespace

TEST_CASE("a compression filter that is missing is named with its package", "[h5][unreadable]") {
  const Folder folder;
  const std::string path = folder / "filtered.h5";
  const auto refused = [&] { return refusal<DataError>([&] { (void)h5::Reader(path).info("rows"); }); };
  write_by_another(path, 32015);
  CHECK_THAT(refused(), Contains("filtered.h5: dataset 'rows' is compressed by the filter Zstandard (32015)") &&
                            Contains("apt-get install python3-hdf5plugin"));
  write_by_another(path, 32100);
  CHECK_THAT(refused(), Contains("the filter of another program (32100)") && Contains("HDF5_PLUGIN_PATH"));
}

TEST_CASE("a dataset behind an external link is as large as its own file allows", "[h5][unreadable]") {
  const Folder folder;
  write_plain(folder / "values.h5");
  const std::string path = folder / "link.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("values.h5", "rows", file, "rows", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  // The dataset has more values than the file with the link has bytes.
  {
    h5::Writer writer(folder / "values.h5");
    const std::vector<std::int32_t> values(4000, 7);
    writer.write_all("rows", DType::i32, Shape{4000}, values.data());
    writer.publish();
  }
  std::vector<std::int32_t> read(4000);
  h5::Reader(path).read_all("rows", read.data(), DType::i32);
  CHECK(read == std::vector<std::int32_t>(4000, 7));
}

TEST_CASE("a file that another program writes is named as such", "[h5][unreadable]") {
  const Folder folder;
  const std::string path = folder / "held.h5";
  write_plain(path);
  const int held = ::open(path.c_str(), O_RDWR);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  CHECK_THAT(refusal<DataError>([&] { (void)h5::Reader(path); }),
             Contains("held.h5: another program has it open for writing"));
  ::close(held);
  CHECK(h5::Reader(path).info("rows").shape == Shape{6});
}

TEST_CASE("a format of a newer library is named with the cure", "[h5][unreadable]") {
  const Folder folder;
  const std::string path = folder / "newer.h5";
  write_plain(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(8).put(9);  // version of the superblock
  CHECK_THAT(refusal<DataError>([&] { (void)h5::Reader(path); }),
             Contains("a newer HDF5 library wrote it") && Contains("h5repack --high=2"));
}

}  // namespace echelon

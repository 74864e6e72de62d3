// SPDX-License-Identifier: Apache-2.0
// LZF as h5py writes it: bytes by the format, and chunks after byte shuffle and with a checksum.
#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/error.hpp"
#include "h5/file.hpp"
#include "h5/lzf.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using Bytes = std::vector<std::uint8_t>;

Bytes inflated(const Bytes& in, std::size_t most) {
  Bytes out(most);
  out.resize(h5::lzf_inflate(in.data(), in.size(), out.data(), most));
  return out;
}

// Stores runs of bytes unchanged, which is valid LZF.
std::size_t store(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t* room, void** buffer) {
  const auto* in = static_cast<const std::uint8_t*>(*buffer);
  auto* out = static_cast<std::uint8_t*>(H5allocate_memory(2 * bytes, false));
  std::size_t to = 0;
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t run = std::min<std::size_t>(32, bytes - at);
    out[to++] = static_cast<std::uint8_t>(run - 1);
    for (std::size_t i = 0; i < run; ++i) out[to++] = in[at++];
  }
  H5free_memory(*buffer);
  *buffer = out;
  *room = 2 * bytes;
  return to;
}

constexpr std::int64_t kRows = 23, kWidth = 7;

// Writes "rows" (23, 7) of i32 0, 1, .. in a process of its own, in which the filter can write.
void write(const std::string& path, bool shuffle, bool checksum) {
  const pid_t child = ::fork();
  if (child == 0) {
    const H5Z_class2_t kind = {H5Z_CLASS_T_VERS, h5::kLzf, 1, 0, "lzf", nullptr, nullptr, store};
    std::array<std::int32_t, kRows * kWidth> values{};
    std::iota(values.begin(), values.end(), 0);
    const std::array<hsize_t, 2> extent{kRows, kWidth}, chunk{5, kWidth};
    H5Zregister(&kind);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, extent.data(), nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk.data());
    const std::array<unsigned, 3> said{4, 0x105, 5 * kWidth * 4};
    if (shuffle) H5Pset_shuffle(creation);
    H5Pset_filter(creation, h5::kLzf, H5Z_FLAG_OPTIONAL, said.size(), said.data());
    if (checksum) H5Pset_fletcher32(creation);
    const hid_t rows = H5Dcreate2(file, "rows", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    const bool ok = H5Dwrite(rows, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
    H5Dclose(rows);
    H5Pclose(creation);
    H5Sclose(space);
    ::_exit(H5Fclose(file) >= 0 && ok ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

}  // namespace

TEST_CASE("LZF is inflated as its format has it, and never past the end of what is there", "[h5][lzf]") {
  CHECK(inflated({2, 'a', 'b', 'c'}, 3) == Bytes{'a', 'b', 'c'});
  CHECK(inflated({0, 'a', 1 << 5 | 0, 0}, 4) == Bytes{'a', 'a', 'a', 'a'});             // 3 bytes, one back
  CHECK(inflated({1, 'a', 'b', 2 << 5, 1}, 6) == Bytes{'a', 'b', 'a', 'b', 'a', 'b'});  // 4 bytes, two back
  CHECK(inflated({0, 'a', 7 << 5, 3, 0}, 13) == Bytes(13, 'a'));                        // 7 + 3 + 2 bytes
  CHECK(inflated({2, 'a', 'b'}, 9).empty());
  CHECK(inflated({2, 'a', 'b', 'c'}, 2).empty());
  CHECK(inflated({0, 'a', 1 << 5, 1}, 9).empty());  // refers back before the beginning
  CHECK(inflated({0, 'a', 1 << 5}, 9).empty());
  CHECK(inflated({0, 'a', 7 << 5}, 99).empty());
  CHECK(inflated({0, 'a', 1 << 5, 0}, 3).empty());
}

TEST_CASE("chunks of LZF are read raw and by the library, also behind byte shuffle and with a checksum", "[h5][lzf]") {
  const test::Folder folder;
  const std::string path = folder / "lzf.h5";
  const bool shuffle = GENERATE(false, true), checksum = GENERATE(false, true);
  write(path, shuffle, checksum);
  std::vector<std::int32_t> wanted(kRows * kWidth), found(kRows * kWidth);
  std::iota(wanted.begin(), wanted.end(), 0);
  const h5::Reader reader(path);
  CHECK(reader.info("rows").deflate);
  CHECK(reader.info("rows").checksum == checksum);
  reader.read_all("rows", found.data(), DType::i32);
  CHECK(found == wanted);
  std::vector<double> reals(3 * kWidth);  // the library converts them
  reader.read_rows("rows", 4, 3, reals.data(), DType::f64);
  CHECK(reals[0] == 4 * kWidth);
  CHECK(reals.back() == 7 * kWidth - 1);
}

}  // namespace echelon

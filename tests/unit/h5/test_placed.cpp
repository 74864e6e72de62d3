// SPDX-License-Identifier: Apache-2.0
// Contiguous values are read without the library, and are those that the library reads.
#include "h5/placed.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>

#include "base/error.hpp"
#include "base/file_faults.hpp"
#include "h5/file.hpp"
#include "h5/handle.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::refusal;

struct Storage {
  hsize_t user_block = 0, chunk = 0;  // chunk: rows, 0: contiguous
  bool newest = false, raw = false;   // raw: in a file beside it
};

// Writes "rows" of small integers with the library.
void write_rows(const std::string& path, hid_t type, const Shape& shape, const Storage& storage) {
  const std::vector<std::int64_t> drawn =
      test::random_integers(static_cast<std::size_t>(shape.elems()), 0, 100, "placed");
  const std::vector<double> values(drawn.begin(), drawn.end());
  const h5::Handle of_file(H5Pcreate(H5P_FILE_CREATE), H5Pclose), access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const h5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), space = h5::space_of(shape);
  H5Pset_userblock(of_file.id(), storage.user_block);
  if (storage.newest) H5Pset_libver_bounds(access.id(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  if (storage.chunk > 0) {
    h5::Extents chunk = h5::extents_of(shape);
    chunk[0] = storage.chunk;
    H5Pset_chunk(creation.id(), shape.rank(), chunk.data());
  }
  if (storage.raw) H5Pset_external(creation.id(), (path + ".raw").c_str(), 0, H5F_UNLIMITED);
  const h5::Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, of_file.id(), access.id()), H5Fclose);
  const h5::Handle rows(H5Dcreate2(file.id(), "rows", type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                        H5Dclose);
  REQUIRE(H5Dwrite(rows.id(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
}

// A box, or all, as the library reads it.
std::vector<float> by_library(const std::string& path, const Shape& offset, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elems()));
  const h5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const h5::Handle rows(H5Dopen2(file.id(), "rows", H5P_DEFAULT), H5Dclose);
  const h5::Handle space(H5Dget_space(rows.id()), H5Sclose), memory = h5::space_of(shape);
  H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, h5::extents_of(offset).data(), nullptr, h5::extents_of(shape).data(),
                      nullptr);
  REQUIRE(H5Dread(rows.id(), H5T_NATIVE_FLOAT, memory.id(), space.id(), H5P_DEFAULT, values.data()) >= 0);
  return values;
}

class Counted final : public FileFaults {
 public:
  int write_begins(std::size_t&) override { return 0; }
  int sync(int) override { return 0; }
  int write_error(std::size_t) override { return 0; }
  void have_read(std::string_view path, void* data, std::size_t bytes) override {
    read += bytes;
    name = path;
    if (flips) static_cast<std::uint8_t*>(data)[bytes - 1] ^= 1;
  }
  std::size_t read = 0;
  std::string name;
  bool flips = false;
};

}  // namespace

TEST_CASE("contiguous values are read without the library, in any type and place", "[h5][placed]") {
  h5::initialise();
  h5::quiet_thread();
  const Folder folder;
  const std::string path = folder / "a.h5";
  const Shape shape{5, 3, 41, 67};  // boxes have runs of many and of few bytes
  h5::Handle half(H5Tcopy(H5T_IEEE_F32BE), H5Tclose);
  H5Tset_fields(half.id(), 15, 10, 5, 0, 10);
  H5Tset_size(half.id(), 2);
  H5Tset_ebias(half.id(), 15);
  const std::vector<hid_t> types = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64BE, H5T_STD_I16LE,
                                    H5T_STD_U16BE,  H5T_STD_U8LE,   H5T_STD_I64LE,  half.id()};
  for (const Storage& storage : {Storage{}, Storage{.user_block = 512}, Storage{.user_block = 2048, .newest = true},
                                 Storage{.newest = true}, Storage{.chunk = 2}, Storage{.raw = true}})
    for (const hid_t type : types) {
      CAPTURE(h5::type_text(type), storage.user_block, storage.chunk, storage.raw);
      write_rows(path, type, shape, storage);
      const h5::Reader reader(path);
      const bool contiguous = storage.chunk == 0 && !storage.raw;
      CHECK(reader.info("rows").contiguous == contiguous);
      std::vector<float> found(static_cast<std::size_t>(shape.elems()), -1);
      reader.read_all("rows", found.data(), DType::f32);
      CHECK(found == by_library(path, {0, 0, 0, 0}, shape));
      for (const auto& [offset, part] : std::vector<std::pair<Shape, Shape>>{
               {{1, 0, 0, 0}, {3, 3, 41, 67}}, {{4, 1, 0, 0}, {1, 2, 41, 67}}, {{0, 0, 7, 0}, {5, 3, 30, 67}}}) {
        found.assign(static_cast<std::size_t>(part.elems()), -1);
        reader.read_region("rows", offset, part, found.data(), DType::f32);
        CHECK(found == by_library(path, offset, part));
      }
      CHECK((reader.library_reads() == 0) == contiguous);
      CHECK(reader.bytes_read() == H5Tget_size(type) * static_cast<std::size_t>(41 * 67 * (15 + 9 + 2) + 30 * 67 * 15));
      const Shape few{5, 3, 41, 2}, behind{0, 0, 0, 60};  // the library reads few bytes at many places together
      found.assign(static_cast<std::size_t>(few.elems()), -1);
      reader.read_region("rows", behind, few, found.data(), DType::f32);
      CHECK(found == by_library(path, behind, few));
    }
}

TEST_CASE("large chunks with a checksum are read without the library, and a flipped bit is found", "[h5][placed]") {
  const Folder folder;
  const std::string path = folder / "a.h5";
  const Shape shape{5, 2, 150, 151};
  const std::vector<double> drawn = test::random_values(static_cast<std::size_t>(shape.elems()), "chunks");
  const std::vector<float> values(drawn.begin(), drawn.end());
  const std::int64_t rows = GENERATE(2, 3);
  h5::Writer writer(path);
  writer.write_all("rows", DType::f32, shape, values.data(), {.chunk_rows = rows, .checksum = true});
  writer.publish();
  std::vector<float> found(values.size());
  {
    const h5::Reader reader(path);
    reader.read_all("rows", found.data(), DType::f32);
    CHECK(found == values);
    CHECK(reader.library_reads() == 0);
    const std::size_t row = values.size() / 5;
    reader.read_rows("rows", 1, 3, found.data(), DType::f32);
    CHECK(std::equal(values.begin() + static_cast<std::ptrdiff_t>(row),
                     values.begin() + static_cast<std::ptrdiff_t>(4 * row), found.begin()));
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  const std::string wanted(reinterpret_cast<const char*>(values.data() + values.size() - 20), 40);
  const std::size_t at = content.find(wanted);
  REQUIRE(at != std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(content[at] ^ 4)).flush();
  const h5::Reader reader(path);
  CHECK_THAT(refusal<DataError>([&] { reader.read_all("rows", found.data(), DType::f32); }),
             Contains(rows == 2 ? "in the chunk of rows 4 to 4" : "in the chunk of rows 3 to 4") &&
                 Contains("does not match its checksum"));
  REQUIRE(::truncate(path.c_str(), static_cast<off_t>(at)) == 0);
  CHECK_THAT(refusal<DataError>([&] { reader.read_rows("rows", 4, 1, found.data(), DType::f32); }),
             Contains("is damaged in the chunk of rows") && Contains("the file ends before byte"));
}

TEST_CASE("rows that were never written, and those of a file that becomes shorter", "[h5][placed]") {
  const Folder folder;
  const std::string path = folder / "a.h5";
  h5::Writer writer(path);
  writer.create("never", DType::f32, {4, 3});
  const std::vector<float> values(4000, 2);
  writer.write_all("rows", DType::f32, {4, 1000}, values.data());
  writer.publish();
  const h5::Reader reader(path);
  CHECK_FALSE(reader.info("never").contiguous);
  std::vector<float> read(4000, -1);
  reader.read_rows("never", 1, 2, read.data(), DType::f32);
  CHECK(read[5] == 0);
  REQUIRE(reader.info("rows").contiguous);
  REQUIRE(::truncate(path.c_str(), 9000) == 0);
  const std::string why = "a.h5: dataset 'rows' cannot be read at rows 1 to 3: the file ends before byte 9000";
  CHECK_THAT(refusal<DataError>([&] { reader.read_rows("rows", 1, 3, read.data(), DType::f32); }), Contains(why));
  CHECK_THAT(refusal<DataError>([&] { reader.read_rows("rows", 1, 3, read.data(), DType::f64); }),
             Contains("rows 1 to"));
  CHECK_THAT(refusal<DataError>([&] {
               reader.read_region("rows", {1, 0}, {3, 1000}, read.data(), DType::f32);
             }),
             Contains("the file ends before byte 9000"));
  reader.read_rows("rows", 0, 1, read.data(), DType::f32);
  CHECK(read[999] == 2);
}

TEST_CASE("faults of files meet values that are read without the library, behind an external link too",
          "[h5][placed]") {
  const Folder folder;
  const std::vector<float> values(600, 2);
  h5::Writer writer(folder / "values.h5");
  writer.write_all("rows", DType::f32, {6, 100}, values.data());
  writer.publish();
  {
    const h5::Handle file(H5Fcreate((folder / "link.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    H5Lcreate_external("values.h5", "rows", file.id(), "rows", H5P_DEFAULT, H5P_DEFAULT);
  }
  for (const char* name : {"values.h5", "link.h5"}) {
    Counted faults;
    file_faults = &faults;
    const h5::Reader reader(folder / name);
    REQUIRE(reader.info("rows").contiguous);
    std::vector<float> read(200);
    faults.read = 0;
    faults.flips = true;
    reader.read_rows("rows", 2, 2, read.data(), DType::f32);
    file_faults = nullptr;
    CHECK(faults.read == 800);
    CHECK(faults.name == folder / "values.h5");
    CHECK(read[198] == 2);
    CHECK(read[199] != 2);
    CHECK(reader.library_reads() == 0);
  }
}

}  // namespace echelon

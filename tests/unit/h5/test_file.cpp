// SPDX-License-Identifier: Apache-2.0
// Writing and reading back in every type, chunked and compressed, and the messages for broken files.
#include <hdf5.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "h5/file.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::refusal;

std::vector<std::int32_t> numbers(std::int64_t n) {
  const auto wide = test::random_integers(static_cast<std::size_t>(n), -1000000, 1000000, "h5 numbers");
  std::vector<std::int32_t> values;
  for (const std::int64_t v : wide) values.push_back(static_cast<std::int32_t>(v));
  return values;
}

}  // namespace

TEST_CASE("rows come back as they were written, whatever the storage", "[h5]") {
  const Folder folder;
  const Shape shape{37, 3, 5};
  const std::vector<std::int32_t> values = numbers(shape.elems());
  const auto options = GENERATE(h5::DatasetOptions{0, 0}, h5::DatasetOptions{8, 0}, h5::DatasetOptions{8, 4},
                                h5::DatasetOptions{64, 9}, h5::DatasetOptions{1, 1});
  const std::string path = folder / "rows.h5";
  {
    h5::Writer writer(path);
    writer.create("group/rows", DType::i32, shape, options);
    for (std::int64_t first = 0; first < 37; first += 5) {
      const std::int64_t count = std::min<std::int64_t>(5, 37 - first);
      writer.write_rows("group/rows", first, count, values.data() + first * 15, DType::i32);
    }
    REQUIRE_FALSE(std::filesystem::exists(path));
    writer.publish();
  }
  REQUIRE(folder.files() == std::vector<std::string>{"rows.h5"});

  const h5::Reader reader(path);
  const h5::DatasetInfo info = reader.info("group/rows");
  REQUIRE(info.shape == shape);
  REQUIRE(info.dtype == DType::i32);
  REQUIRE(info.deflate == (options.deflate > 0));
  REQUIRE(info.chunk.rank() == (options.chunk_rows > 0 ? 3 : 0));
  REQUIRE(reader.datasets().size() == 1);
  REQUIRE(reader.has("group/rows"));
  REQUIRE_FALSE(reader.has("group/columns"));
  REQUIRE_FALSE(reader.has("nowhere/rows"));

  for (const auto& [first, count] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 37}, {0, 8}, {8, 8}, {3, 2}, {7, 10}, {36, 1}, {5, 0}}) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(count * 15), -1);
    reader.read_rows("group/rows", first, count, rows.data(), DType::i32);
    REQUIRE(std::equal(rows.begin(), rows.end(), values.begin() + first * 15));
    std::vector<double> converted(rows.size());
    reader.read_rows("group/rows", first, count, converted.data(), DType::f64);
    REQUIRE(std::equal(converted.begin(), converted.end(), rows.begin()));
  }
  REQUIRE(reader.bytes_read() > 0);
}

TEST_CASE("every dtype survives, also with pieces in boxes and rows never written", "[h5]") {
  const Folder folder;
  const std::vector<double> values{0, 1, 2.5, 250, 7, 9};
  const auto dtype = GENERATE(DType::f32, DType::f64, DType::i32, DType::u8);
  const int deflate = GENERATE(0, 3);
  h5::Writer writer(folder / "types.h5");
  writer.create("box", dtype, {4, 3}, {.chunk_rows = 2, .deflate = deflate});
  writer.write_region("box", {0, 1}, {2, 2}, values.data(), DType::f64);
  writer.create("scalar", dtype, {});
  writer.write_region("scalar", {}, {}, values.data() + 3, DType::f64);
  writer.write_all("empty", dtype, {0, 4}, nullptr);
  writer.publish();
  const h5::Reader reader(folder / "types.h5");
  std::vector<double> back(12, -1), scalar(1), none;
  reader.read_all("box", back.data(), DType::f64);
  const double half = dtype == DType::u8 || dtype == DType::i32 ? 2 : 2.5;
  REQUIRE(back == std::vector<double>{0, 0, 1, 0, half, 250, 0, 0, 0, 0, 0, 0});
  std::vector<float> raw(12);
  if (dtype == DType::f32) {
    reader.read_all("box", raw.data(), DType::f32);
    REQUIRE(std::equal(raw.begin(), raw.end(), back.begin()));
  }
  reader.read_all("scalar", scalar.data(), DType::f64);
  REQUIRE(scalar[0] == 250);
  reader.read_all("empty", none.data(), DType::f64);
  REQUIRE(reader.info("empty").shape == Shape{0, 4});
}

TEST_CASE("values that are written to reserved places without the library read back", "[h5]") {
  const test::Folder folder;
  const std::string path = folder / "reserved.h5";
  const std::vector<double> big = test::random_values(70001, "big"), small = test::random_values(3, "small");
  h5::Writer writer(path);
  writer.reserve("a/big", DType::f64, {70001});
  writer.write_all("mine", DType::f64, {3}, small.data());
  writer.reserve("a/none", DType::f32, {0, 4});
  writer.reserve("small", DType::f64, {1, 3});
  writer.attribute("step", std::int64_t{7});
  const std::vector<h5::DatasetPlace> places = writer.lay_out();
  REQUIRE(places.size() == 2);
  CHECK((places[0].name == "a/big" && places[0].bytes == 8 * 70001));
  CHECK((places[1].name == "small" && places[1].bytes == 24));
  {
    std::fstream file(writer.temporary(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(places[1].offset)).write(reinterpret_cast<const char*>(small.data()), 24);
    file.seekp(static_cast<std::streamoff>(places[0].offset))
        .write(reinterpret_cast<const char*>(big.data()), 8 * 70001);
  }
  const auto bytes = std::filesystem::file_size(writer.temporary());
  writer.publish();
  CHECK(std::filesystem::file_size(path) == bytes);
  const h5::Reader reader(path);
  std::vector<double> back(70001);
  reader.read_all("a/big", back.data(), DType::f64);
  CHECK(back == big);
  for (const char* name : {"mine", "small"}) {
    std::vector<double> three(3);
    reader.read_all(name, three.data(), DType::f64);
    CHECK(three == small);
  }
  CHECK(reader.info("a/none").shape == Shape{0, 4});
  CHECK(reader.attribute_int("step") == 7);
}

TEST_CASE("attributes come back; missing and wrong ones are named", "[h5]") {
  const Folder folder;
  {
    h5::Writer writer(folder / "a.h5");
    writer.attribute("count", std::int64_t{1} << 40);
    writer.attribute("scale", 0.25);
    writer.attribute("format", std::string("first"));
    writer.attribute("format", std::string("sämples"));
    writer.attribute("mean", std::vector<double>{1, 2, 3});
    writer.attribute("names", std::vector<std::string>{"cat", "", "a longer name"});
    writer.attribute("none", std::vector<std::string>{});
    writer.publish();
  }
  const h5::Reader reader(folder / "a.h5");
  REQUIRE(reader.attribute_int("count") == std::int64_t{1} << 40);
  REQUIRE(reader.attribute_double("scale") == 0.25);
  REQUIRE(reader.attribute_double("count") == 1099511627776.0);
  REQUIRE(reader.attribute_text("format") == "sämples");
  REQUIRE(reader.attribute_doubles("mean") == std::vector<double>{1, 2, 3});
  REQUIRE(reader.attribute_texts("names") == std::vector<std::string>{"cat", "", "a longer name"});
  REQUIRE(reader.attribute_texts("none").empty());
  REQUIRE_FALSE(reader.has_attribute("std"));
  REQUIRE_THAT(refusal<DataError>([&] { reader.attribute_double("std"); }),
               Contains("a.h5") && Contains("'std' is missing"));
  REQUIRE_THAT(refusal<DataError>([&] { reader.attribute_int("scale"); }),
               Contains("must be an integer, is a 64-bit float"));
  REQUIRE_THAT(refusal<DataError>([&] { reader.attribute_double("mean"); }), Contains("one number, but has 3"));
  REQUIRE_THAT(refusal<DataError>([&] { reader.attribute_text("mean"); }), Contains("must be text"));
  REQUIRE_THAT(refusal<DataError>([&] { reader.attribute_doubles("names"); }), Contains("must be numbers, is text"));
}

TEST_CASE("a file that is missing, empty, foreign, truncated or a folder is a DataError with the reason", "[h5]") {
  const Folder folder;
  const std::vector<std::int32_t> values(100000, 7);
  h5::Writer writer(folder / "whole.h5");
  writer.write_all("rows", DType::i32, {1000, 100}, values.data());
  writer.publish();
  const auto size = std::filesystem::file_size(folder / "whole.h5");
  const auto message = [&](const std::string& name) { return refusal<DataError>([&] { h5::Reader(folder / name); }); };

  REQUIRE_THAT(message("missing.h5"), Contains("missing.h5") && Contains("No such file or directory"));
  REQUIRE_THAT(refusal<DataError>([&] { h5::Reader(folder.path()); }), Contains("is a folder"));
  std::ofstream(folder / "empty.h5").close();
  REQUIRE_THAT(message("empty.h5"), Contains("empty.h5: is empty (0 bytes)"));
  std::ofstream(folder / "text.h5") << "label,pixel\n1,2\n" << std::string(5000, 'x');
  REQUIRE_THAT(message("text.h5"), Contains("text.h5: is not an HDF5 file"));
  for (const auto part : {size - 1, size / 2, decltype(size){200}}) {
    std::filesystem::copy_file(folder / "whole.h5", folder / "cut.h5",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder / "cut.h5", part);
    REQUIRE_THAT(message("cut.h5"), Contains("cut.h5: is truncated"));
  }
  const h5::Reader reader(folder / "whole.h5");
  REQUIRE_THAT(refusal<DataError>([&] { reader.info("columns"); }),
               Contains("whole.h5") && Contains("'columns' is missing"));
}

TEST_CASE("unsupported types are refused with the type found", "[h5]") {
  const Folder folder;
  const std::string path = folder / "wide.h5";
  const hsize_t extent = 4;
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  H5Dclose(H5Dcreate2(file, "wide", H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Dclose(H5Dcreate2(file, "big_endian", H5T_IEEE_F32BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(file);
  const h5::Reader reader(path);
  REQUIRE_THAT(refusal<DataError>([&] { reader.info("wide"); }),
               Contains("'wide' holds references to other objects; numbers are"));
  REQUIRE(reader.info("big_endian").dtype == DType::f32);
}

TEST_CASE("a damaged compressed chunk is named, not returned", "[h5]") {
  const Folder folder;
  const std::string path = folder / "damaged.h5";
  std::vector<std::uint8_t> values(64 * 100);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(mix64(i) % 50);
  h5::Writer writer(path);
  writer.write_all("rows", DType::u8, {64, 100}, values.data(), {.chunk_rows = 16, .deflate = 6});
  writer.publish();
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
    file.seekp(size / 2);
    file << std::string(64, '\x5a');
  }
  std::vector<std::uint8_t> back(values.size());
  REQUIRE_THAT(refusal<DataError>([&] { h5::Reader(path).read_all("rows", back.data(), DType::u8); }),
               Contains("damaged.h5") && Contains("'rows'") && Contains("damaged"));
}

TEST_CASE("filters other than gzip go through the library", "[h5]") {
  const Folder folder;
  const std::string path = folder / "fletcher.h5";
  const hsize_t extent[2] = {10, 6}, chunk[2] = {4, 6}, narrow[2] = {4, 2};
  std::vector<std::int32_t> values(60), back(60);
  std::iota(values.begin(), values.end(), 5);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, extent, nullptr);
  for (const auto& [name, boxes] : {std::pair{"checked", chunk}, std::pair{"narrow", narrow}}) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, boxes);
    H5Pset_deflate(creation, 4);
    if (boxes == chunk) H5Pset_fletcher32(creation);
    const hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(dataset);
    H5Pclose(creation);
  }
  H5Sclose(space);
  H5Fclose(file);
  const h5::Reader reader(path);
  for (const char* name : {"checked", "narrow"}) {
    reader.read_rows(name, 3, 6, back.data(), DType::i32);
    REQUIRE(std::equal(back.begin(), back.begin() + 36, values.begin() + 18));
  }
}

TEST_CASE("threads read one file side by side", "[h5]") {
  const Folder folder;
  std::vector<std::uint8_t> values(512 * 200);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i / 200);
  h5::Writer writer(folder / "many.h5");
  writer.write_all("rows", DType::u8, {512, 200}, values.data(), {.chunk_rows = 32, .deflate = 1});
  writer.publish();
  const h5::Reader reader(folder / "many.h5");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::uint8_t> rows(7 * 200);
      for (std::int64_t first = t; first + 7 <= 512; first += 11) {
        reader.read_rows("rows", first, 7, rows.data(), DType::u8);
        for (std::int64_t i = 0; i < 7; ++i)
          if (rows[static_cast<std::size_t>(i) * 200 + 13] != static_cast<std::uint8_t>(first + i)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  REQUIRE(wrong == 0);
}

}  // namespace echelon

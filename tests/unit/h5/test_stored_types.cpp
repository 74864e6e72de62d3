// SPDX-License-Identifier: Apache-2.0
// Integers and floats of other sizes than those used to compute are converted when they are read.
#include <hdf5.h>

#include <array>
#include <catch2/catch.hpp>
#include <tuple>

#include "base/error.hpp"
#include "data/class_mix.hpp"
#include "data/describe.hpp"
#include "data/loader.hpp"
#include "h5/file.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

constexpr int kSamples = 70;

// Writes chunked and deflated with checksums, as h5py does on request.
void write(hid_t file, const char* name, hid_t stored, const std::vector<hsize_t>& shape,
           const std::vector<double>& values) {
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  std::vector<hsize_t> chunk = shape;
  chunk[0] = 32;
  H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  H5Pset_deflate(creation, 1);
  const hid_t dataset = H5Dcreate2(file, name, stored, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  H5Dclose(dataset);
  H5Pclose(creation);
  H5Sclose(space);
}

hid_t half() {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

Dataset set_of(const std::string& path, hid_t samples, hid_t labels, double last_label = 1) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<double> values, numbers;
  for (int i = 0; i < kSamples; ++i) {
    values.insert(values.end(), {i * 0.5, -i * 0.25});
    numbers.push_back(i % 3);
  }
  numbers.back() = last_label;
  write(file, "samples", samples, {kSamples, 1, 1, 2}, values);
  write(file, "labels", labels, {kSamples}, numbers);
  const hid_t one = H5Screate(H5S_SCALAR);
  const hid_t classes = H5Acreate2(file, "classes", H5T_STD_I32LE, one, H5P_DEFAULT, H5P_DEFAULT);
  const int three = 3;
  H5Awrite(classes, H5T_NATIVE_INT, &three);
  H5Aclose(classes);
  H5Sclose(one);
  H5Fclose(file);
  return open_dataset(path);
}

SamplePlan in_order(const Dataset& data) {
  DataConfig config;
  config.shuffle = false;
  return SamplePlan(plan_request(data, config, {kSamples}, 1));
}

}  // namespace

TEST_CASE("labels and samples of other sizes are converted when they are read", "[data]") {
  const test::Folder folder;
  h5::initialise();
  const hid_t f16 = half();
  for (const auto& [samples, labels, told] : std::vector<std::tuple<hid_t, hid_t, std::string>>{
           {f16, H5T_STD_I64LE, "(stored as a 16-bit float)"},
           {H5T_IEEE_F64LE, H5T_STD_U16LE, "(stored as a 64-bit float)"},
           {H5T_IEEE_F32LE, H5T_STD_I16LE, "f32"},
           {H5T_IEEE_F64BE, H5T_STD_U64BE, "(stored as a 64-bit float)"}}) {
    CAPTURE(told);
    const Dataset data = set_of(folder / "a.h5", samples, labels);
    CHECK(data.stored == DType::f32);
    CHECK_THAT(content_text(data), Catch::EndsWith(told));
    Loader loader(data, in_order(data), {});
    const Batch& batch = loader.next();
    for (int i = 0; i < kSamples; ++i) {
      CHECK(static_cast<const float*>(batch.samples)[2 * i] == static_cast<float>(i * 0.5));
      CHECK(static_cast<const float*>(batch.samples)[2 * i + 1] == static_cast<float>(-i * 0.25));
      CHECK(static_cast<const std::int32_t*>(batch.labels)[i] == (i + 1 < kSamples ? i % 3 : 1));
    }
  }
  H5Tclose(f16);
  const Dataset wrong = set_of(folder / "b.h5", H5T_IEEE_F32LE, H5T_STD_I64LE, 0x1p40);
  CHECK_THROWS_WITH(Loader(wrong, in_order(wrong), {}).next(), Contains("record 69 has label"));
}

TEST_CASE("labels that h5py stores as bool are 0 and 1", "[data]") {
  const test::Folder folder;
  const std::string path = folder / "a.h5";
  const std::array<float, 4> values{0, 1, 2, 3};
  h5::Writer writer(path);
  writer.attribute("classes", std::int64_t{2});
  writer.write_all("samples", DType::f32, {4, 1, 1, 1}, values.data());
  writer.publish();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), type = H5Tenum_create(H5T_STD_I8LE);
  const signed char no = 0, yes = 1;
  H5Tenum_insert(type, "FALSE", &no);
  H5Tenum_insert(type, "TRUE", &yes);
  const hsize_t count = 4;
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t labels = H5Dcreate2(file, "labels", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const std::array<signed char, 4> truth{1, 0, 1, 1};
  CHECK(H5Dwrite(labels, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, truth.data()) >= 0);
  H5Dclose(labels);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
  const Dataset set = open_dataset(path);
  std::array<std::int32_t, 4> read{};
  h5::Reader(path).read_all("labels", read.data(), DType::i32);
  CHECK(read == std::array<std::int32_t, 4>{1, 0, 1, 1});
  CHECK(LabelSample(set).counts().kinds() == 2);
}

}  // namespace echelon

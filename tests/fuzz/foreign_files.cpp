// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/foreign_files.hpp"

#include <hdf5.h>

#include <array>
#include <cstdint>
#include <vector>

namespace echelon::fuzz {
namespace {

constexpr hsize_t kSamples = 40;

void attribute(hid_t file, const char* name, hid_t type, hsize_t count, const void* data) {
  const hid_t space = count == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr);
  const hid_t made = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(made, type, data);
  H5Aclose(made);
  H5Sclose(space);
}

void dataset(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape, int chunk, const void* data) {
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  if (chunk > 0) {
    std::vector<hsize_t> extents = shape;
    extents[0] = static_cast<hsize_t>(chunk);
    H5Pset_chunk(creation, static_cast<int>(extents.size()), extents.data());
    H5Pset_shuffle(creation);
    H5Pset_deflate(creation, 4);
  }
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t made = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
  H5Dclose(made);
  H5Sclose(space);
  H5Pclose(creation);
}

}  // namespace

void write_foreign_shard(const std::string& path, int chunk, bool texts) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  std::vector<std::uint8_t> samples(kSamples * 12);
  std::vector<std::int32_t> labels(kSamples);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::uint8_t>(7 * i);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 3);
  dataset(file, "samples", H5T_NATIVE_UINT8, {kSamples, 1, 3, 4}, chunk, samples.data());
  dataset(file, "labels", H5T_NATIVE_INT32, {kSamples}, chunk, labels.data());
  const std::int64_t classes = 3;
  const std::array<double, 1> mean{0.5};
  attribute(file, "classes", H5T_NATIVE_INT64, 0, &classes);
  attribute(file, "mean", H5T_NATIVE_DOUBLE, mean.size(), mean.data());
  const std::array<const char*, 3> names{"cat", "dog", "a longer name"};
  if (texts) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    attribute(file, "class_names", type, names.size(), names.data());
    H5Tclose(type);
  }
  H5Fclose(file);
  H5Pclose(access);
}

void write_any_hdf5(const std::string& path, int chunk) {
  constexpr hsize_t kRows = 37;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  std::vector<std::uint16_t> images(kRows * 60);
  std::vector<double> table(kRows * 3);
  std::vector<float> weights(kRows, 0.5F);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint16_t>(977 * i);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<double>(i % 4);
  dataset(file, "images", H5T_STD_U16BE, {kRows, 5, 6, 2}, chunk, images.data());
  dataset(file, "table", H5T_IEEE_F64LE, {kRows, 3}, 0, table.data());
  dataset(file, "weights", H5T_IEEE_F32LE, {kRows}, chunk, weights.data());
  const hid_t packed = H5Dopen2(file, "images", H5P_DEFAULT);
  const double factor = 0.25;
  const std::uint16_t fill = 977;
  attribute(packed, "scale_factor", H5T_NATIVE_DOUBLE, 1, &factor);
  attribute(packed, "_FillValue", H5T_NATIVE_UINT16, 1, &fill);
  H5Dclose(packed);
  struct Part {
    std::array<char, 5> split;
    std::array<char, 8> source;
    std::int64_t start, stop;
  };
  const hid_t part = H5Tcreate(H5T_COMPOUND, sizeof(Part)), name = H5Tcopy(H5T_C_S1), source = H5Tcopy(H5T_C_S1);
  H5Tset_size(name, 5);
  H5Tset_size(source, 8);
  H5Tinsert(part, "split", HOFFSET(Part, split), name);
  H5Tinsert(part, "source", HOFFSET(Part, source), source);
  H5Tinsert(part, "start", HOFFSET(Part, start), H5T_NATIVE_INT64);
  H5Tinsert(part, "stop", HOFFSET(Part, stop), H5T_NATIVE_INT64);
  const std::array<Part, 2> parts{{{{'t', 'r', 'a', 'i', 'n'}, {'i', 'm', 'a', 'g', 'e', 's'}, 0, 30},
                                   {{'t', 'e', 's', 't'}, {'i', 'm', 'a', 'g', 'e', 's'}, 30, 37}}};
  attribute(file, "split", part, parts.size(), parts.data());
  for (const hid_t type : {part, name, source}) H5Tclose(type);
  H5Fclose(file);
  H5Pclose(access);
}

}  // namespace echelon::fuzz

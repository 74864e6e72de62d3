// SPDX-License-Identifier: Apache-2.0
// The samples of one HDF5 file that is not a shard, as [data.hdf5] describes them: images (C, H, W),
// volumes (C, D, H, W), series (C, W) or sequences (T, F), by record.
// Record 0 is the first row that the keys choose. foreign_labels.hpp reads what belongs to them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "config/hdf5.hpp"
#include "data/slab.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

// How netCDF packs values: value = stored * factor + offset; `fills` are stored values that are missing.
struct NetcdfPacking {
  double factor = 1, offset = 0;
  std::vector<float> fills;
};
// Reads scale_factor, add_offset, _FillValue and missing_value. Throws DataError for a factor of 0 or a list of them.
NetcdfPacking packing_of(const h5::Reader& reader, const std::string& dataset);

// A range of rows of the outermost axis.
struct RowRange {
  std::int64_t first = 0, count = 0;
};

inline bool is_one_sample_a_file(const Hdf5Config& keys) { return keys.axes.find('N') == std::string::npos; }

class ForeignFile {
 public:
  // `path`: the name in messages; `read_from`: the file itself, or a copy of it. Throws DataError with file, dataset,
  // shape and the nearest valid keys if the file is not as the keys say; `keys` must outlive the object.
  ForeignFile(const std::string& read_from, const std::string& path, const Hdf5Config& keys);

  const std::string& path() const { return path_; }
  const h5::Reader& file() const { return file_; }
  RowRange rows() const { return rows_; }  // the records, by row of the file; (0, 1) if the file is one sample
  bool is_one_sample() const { return one_; }
  bool is_sequence() const { return sequence_; }
  Shape sample_shape() const;               // (C, W), (C, H, W), (C, D, H, W), or (T, F)
  DType stored() const { return stored_; }  // u8, or f32
  std::string stored_as() const;            // see Dataset::stored_as
  std::vector<h5::DatasetInfo> datasets() const;

  // Normalisation by channel or feature: x = (value * scale - mean) / std.
  double scale() const { return scale_; }
  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& std() const { return std_; }

  // From now on only this part of each sample is read, along its first spatial axis.
  void narrow(const SlabRange& part);
  bool is_encoded() const { return keys_.holds_files(); }
  // Encoded images: reads the bytes of records [first, first + count), and where each ends.
  void read_encoded(std::int64_t first, std::int64_t count, std::vector<std::uint8_t>& bytes,
                    std::vector<std::size_t>& ends) const;
  // Reads records [first, first + count) into `dst`, of type stored(). Returns whether all values are finite; false:
  // they may be.
  bool read(std::int64_t first, std::int64_t count, void* dst) const;

 private:
  // A dataset of samples: where each axis of a sample is in it, and how its values are unpacked (netCDF).
  struct Source : NetcdfPacking {
    h5::DatasetInfo info;
    std::array<std::int64_t, 4> extents{1, 1, 1, 1}, strides{0, 0, 0, 0};  // of C, D, H, W, or of T, F; in elements
    std::int64_t elems = 0;                                                // of one record
    SlabRange part = {};                                                   // what is read, by axis of the dataset
    std::vector<std::int64_t> places;  // for each channel or feature its index in the sample; -1: left out
    int slow_axis = -1;                // the outermost axis of a record that has several indices
    std::size_t slow = 0;              // its place in `extents`
    bool in_order = false;             // a record lies in the file as in a sample

    bool holds_bytes() const { return info.dtype == DType::u8 && factor == 1 && offset == 0; }
  };
  Source open_source(const std::string& name) const;
  void open_encoded();
  void set_strides(Source& source, const Shape& read) const;
  void join_sources();
  bool lies_in_order(const Source& source) const;
  void choose_rows();
  void leave_room_for_lead();
  void set_normalisation();
  std::vector<double> per_channel(const std::vector<double>& values, const std::string& what, double fallback) const;
  std::vector<double> statistic(std::size_t which) const;
  bool read_piece(const Source& source, RowRange records, RowRange part, std::uint8_t* dst) const;
  template <class T>
  void place(const Source& source, const T* from, std::int64_t count, RowRange part, T* to) const;
  void unpack(const Source& source, float* values, std::int64_t n) const;
  void fill_missing(float* samples, std::int64_t count) const;
  std::int64_t channels() const { return shape_[sequence_ ? 1 : 0]; }
  std::int64_t elems() const { return shape_[0] * shape_[1] * shape_[2] * shape_[3]; }  // of a record
  bool holds_bytes() const;  // unsigned bytes as they are: scale is 1/255 by default

  const Hdf5Config& keys_;
  std::string path_;
  h5::Reader file_;
  std::vector<Source> sources_;
  bool sequence_, one_;
  DType stored_ = DType::u8;
  RowRange rows_{0, 1};
  std::array<std::int64_t, 4> shape_{1, 1, 1, 1};  // of C, D, H, W, or of T, F, 1 and 1
  double scale_ = 1;
  std::vector<double> mean_, std_;
};

// Reads rows [first, first + count); for a file of one sample the whole dataset. `part`: only these indices of one of
// the dataset's axes.
void read_records(const h5::Reader& reader, const std::string& dataset, bool one_sample, RowRange rows, void* dst,
                  DType dtype, const SlabRange& part = {});
[[noreturn]] void fail_foreign(const std::string& path, const std::string& dataset, const std::string& what);

}  // namespace echelon::inline data

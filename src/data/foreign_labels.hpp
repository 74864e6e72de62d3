// SPDX-License-Identifier: Apache-2.0
// The labels and weights of one HDF5 file that is not a shard, as [data.hdf5] describes them, by record.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/shape.hpp"
#include "data/dataset.hpp"
#include "data/foreign_file.hpp"
#include "data/shard_header.hpp"

namespace echelon::inline data {

// Returns the file that has the labels of a file of samples (data.hdf5.labels_file); "" if it is the same file. Throws
// DataError if the name of the file of samples has another ending than the key says.
std::string labels_file_of(const std::string& path, const Hdf5Config& keys);

class ForeignLabels {
 public:
  // `samples` is the file that the labels belong to. With Labels::optional the labels may be absent. Throws DataError
  // with file, dataset, shape and the nearest valid keys; `keys` and `samples` must outlive the object.
  ForeignLabels(const ForeignFile& samples, const Hdf5Config& keys, Labels expected);

  bool exist() const { return !labels_.name.empty(); }  // false: data.hdf5.labels is empty, or not in the file
  bool weighted() const { return !weights_.name.empty(); }
  std::int64_t classes() const { return classes_; }  // 0: labels are numbers
  const Shape& shape() const {
    return shape_;
  }  // of numbers (), (K) or (K, ..); of dense classes (H, W); of steps
     // that of one of them
  std::uint64_t stored_bytes() const { return labels_.stored_bytes + weights_.stored_bytes; }
  bool has_records_apart() const { return echelon::has_records_apart(labels_) && echelon::has_records_apart(weights_); }
  bool checksums() const { return (!exist() || labels_.checksum) && (!weighted() || weights_.checksum); }

  // From now on only this part of each label is read, by axis of shape().
  void narrow(const SlabRange& part);
  // Read records [first, first + count). A class may be outside [0, classes()), a number not finite: callers check.
  void read_classes(std::int64_t first, std::int64_t count, std::int32_t* dst) const;
  void read_numbers(std::int64_t first, std::int64_t count, float* dst) const;
  void read_weights(std::int64_t first, std::int64_t count, float* dst) const;  // DataError if below 0 or not finite

  std::uint64_t bytes_read() const { return own_file_ ? own_file_->bytes_read() : 0; }

 private:
  const h5::Reader& file() const { return own_file_ ? *own_file_ : samples_.file(); }
  bool open_own_file(Labels expected);  // returns false if it is absent
  void open_labels();
  Shape shape_of_label() const;
  void open_weights();
  RowRange rows_of(std::int64_t first, std::int64_t count) const {
    return {samples_.rows().first + first + keys_.lead, count};
  }
  std::vector<double> table(std::int64_t first, std::int64_t count) const;  // (count, columns_)

  const ForeignFile& samples_;
  const Hdf5Config& keys_;
  std::unique_ptr<h5::Reader> own_file_;
  h5::DatasetInfo labels_, weights_;
  LabelForm form_ = LabelForm::values;
  std::int64_t columns_ = 1, classes_ = 0;
  double factor_ = 1, offset_ = 0;  // of numbers: scale_factor and add_offset (netCDF), then label_mean, label_std
  std::vector<float> fills_;        // stored values that stand for no label
  Shape shape_;
  SlabRange part_ = {};  // what is read of each label, by axis of the dataset
};

}  // namespace echelon::inline data

// SPDX-License-Identifier: Apache-2.0
// One open file of a data set: a shard, or a file that [data.hdf5] describes. Reads samples and labels by record, in
// the types of Dataset.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/dataset.hpp"
#include "data/foreign_file.hpp"
#include "data/foreign_labels.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

class SampleFile {
 public:
  // Opens the shard's copy if there is one.
  SampleFile(const Dataset& dataset, const Shard& shard);

  const h5::Reader& reader() const { return foreign_ ? foreign_->samples.file() : *shard_; }
  // The shape of all samples; differs from that of open_dataset if the file was changed since.
  std::int64_t samples() const;

  // Read records [first, first + count) of the file. read_samples returns whether it has found all values finite.
  bool read_samples(std::int64_t first, std::int64_t count, void* dst, DType stored) const;
  // Encoded images: their bytes, and where each ends.
  void read_encoded(std::int64_t first, std::int64_t count, std::vector<std::uint8_t>& bytes,
                    std::vector<std::size_t>& ends) const;
  void read_classes(std::int64_t first, std::int64_t count, std::int32_t* dst) const;
  void read_numbers(std::int64_t first, std::int64_t count, float* dst) const;
  void read_weights(std::int64_t first, std::int64_t count, float* dst) const;

  std::uint64_t bytes_read() const;

 private:
  struct Foreign {
    Foreign(const std::string& read_from, const std::string& path, const Hdf5Config& keys, Labels expected,
            const Slab& slab)
        : samples(read_from, path, keys), labels(samples, keys, expected) {
      samples.narrow(slab.samples);
      labels.narrow(slab.labels);
    }
    ForeignFile samples;
    ForeignLabels labels;
  };
  // Reads records of a shard, of which each has `part` of its axes.
  void read_shard(const char* name, std::int64_t first, std::int64_t count, const SlabRange& part, void* dst,
                  DType dtype) const;

  std::shared_ptr<const Hdf5Config> keys_;
  Slab slab_;
  std::unique_ptr<h5::Reader> shard_;
  std::unique_ptr<Foreign> foreign_;
  std::vector<std::int64_t> starts_;  // of encoded images in a shard
};

}  // namespace echelon::inline data

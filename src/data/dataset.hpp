// A folder (or list) of HDF5 shards seen as one set of samples. The layout of a shard is written down in
// data/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/sample_form.hpp"
#include "base/shape.hpp"

namespace echelon {

struct Shard {
  std::string path;
  std::int64_t samples = 0;
  std::int64_t first = 0;       // global id of its first sample
  std::int64_t chunk_rows = 0;  // records that are read together
  std::uint64_t bytes = 0;      // stored, of samples and labels
  Shape chunk;                  // as stored; rank 0: contiguous
  bool deflate = false;
};

struct Dataset {
  std::vector<Shard> shards;  // in name order
  Shape sample_shape;         // (C, H, W)
  DType stored = DType::u8;
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  // may be empty
  std::vector<double> mean;              // by channel, in units of value * scale
  std::vector<double> std;
  double scale = 1.0;  // u8 pixels: 1/255; x = (value * scale - mean[c]) / std[c]
  // Of one sample and its label, decoded as stored.
  std::size_t record_bytes() const {
    return static_cast<std::size_t>(sample_shape.elems()) * size_of(stored) + sizeof(std::int32_t);
  }
  // What a model is built for.
  SampleForm form() const { return labelled(sample_shape, classes); }
  std::int64_t samples() const { return shards.empty() ? 0 : shards.back().first + shards.back().samples; }
};

// `location`: a folder (its *.h5 and *.hdf5), one file, or a pattern with * and ?. Opens every file, checks that
// shapes, types and attributes agree and that no file is empty or damaged. Throws DataError naming the file.
Dataset open_dataset(const std::string& location);

// A model sees test data as it saw its training data: takes over mean and std (both are in units of value * scale, so
// the stored types may differ). Throws DataError where shapes or classes differ.
void normalise_like(Dataset& test, const Dataset& train);

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Sources of samples for an import, one file per format. A source is read twice, first to count, check and measure,
// then to write; so bad input writes nothing, and memory is bounded by a block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "data/import/csv_table.hpp"

namespace echelon::inline data {

struct SourceInfo {
  Shape sample;  // (C, H, W)
  DType stored = DType::u8;
  double scale = 1.0 / 255;              // factor from stored values to model values, before mean and std
  std::int64_t classes = 0;              // 0: the greatest label + 1
  std::vector<std::string> class_names;  // [class]; may be empty
  std::int64_t targets = 0;              // > 0: a label is this many real numbers instead of a class
  Shape label;                    // shape of a label that is not one class or a row of targets: (H, W), (K, H, W)
  bool any_label = false;         // classes may be outside 0 to 255 (model.ignore_label)
  std::vector<double> mean, std;  // taken from the --like set; empty: measured
  std::string heading;            // csv: the line taken for column names; may be empty
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual const SourceInfo& info() const = 0;
  virtual void rewind() = 0;  // to the first sample
  // Reads up to `most` samples (most, C, H, W) as stored, and labels, (most) i32 or (most, targets) f32. Returns the
  // number of samples, 0 at the end. Throws DataError with the file and the offset or line.
  virtual std::int64_t read(std::int64_t most, std::uint8_t* samples, void* labels) = 0;
};

struct ImportRequest {
  std::string format{};  // idx | cifar10 | cifar100 | csv | npy
  // idx: images, labels; cifar: batch files; csv: one file; npy: samples, labels. Gzip is
  // recognised by its content.
  std::vector<std::string> inputs{};
  Shape shape{};                         // csv: (C, H, W)
  int label_column = -1;                 // csv: column of the class, counted from 0; -1: the last
  std::int64_t targets = 0;              // csv: this many last columns are regression targets; 0: a class
  DType stored = DType::u8;              // csv: u8 or f32
  double value_max = 255;                // the u8 value that stands for 1.0
  Heading heading = Heading::automatic;  // csv
  std::string axes{};                    // npy: a letter of N, C, H, W for each axis; "": by their number
};

// Returns the names of all formats, including those of other headers (images, hdf5, texts, sequences).
std::vector<std::string> known_formats();
// Throws ConfigError for inputs that do not fit or, with the nearest, an unknown format; DataError for a bad header.
std::unique_ptr<SampleSource> open_source(const ImportRequest& request);

// One function per format; the table is in source.cpp.
std::unique_ptr<SampleSource> open_idx(const ImportRequest& request);
std::unique_ptr<SampleSource> open_cifar10(const ImportRequest& request);
std::unique_ptr<SampleSource> open_cifar100(const ImportRequest& request);
std::unique_ptr<SampleSource> open_csv(const ImportRequest& request);
std::unique_ptr<SampleSource> open_npy(const ImportRequest& request);

struct SynthRequest {
  std::int64_t samples = 1024;
  Shape shape{1, 28, 28};
  std::int64_t classes = 10;
  DType stored = DType::u8;
  double noise = 0.3;  // standard deviation around the class's pattern, whose values are in [0, 1]
  std::uint64_t seed = 1;
};
// Returns synthetic samples: one smooth pattern per class plus normal noise. Sample i has label i mod classes. A sample
// is a function of (seed, i).
std::unique_ptr<SampleSource> make_synth(const SynthRequest& request);
// Returns Gaussian random fields (C, spatial axes) in f32 whose power spectrum is |k|^-index and whose standard
// deviation is the amplitude; index = 2.5 + 1.5 a and amplitude = 1.25 + 0.75 b, where the targets a and b are uniform
// draws from [-1, 1]. The channels of a sample are independent.
std::unique_ptr<SampleSource> make_fields(const SynthRequest& request);

}  // namespace echelon::inline data

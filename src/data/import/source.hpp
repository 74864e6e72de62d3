// Sources of an importer's samples, one file for each format. A source is read twice, first to count, check and
// measure, then to write: bad input writes nothing, and memory is bounded by a block.
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
  double scale = 1.0 / 255;              // factor from stored values to values of the model before mean and std
  std::int64_t classes = 0;              // 0: the greatest label + 1
  std::vector<std::string> class_names;  // by class; may be empty
  std::int64_t targets = 0;              // > 0: a label is this many real numbers, not a class
  std::vector<double> mean, std;         // of the set given by --like; empty: measured
  std::string heading;                   // csv: the line that was taken for names of columns; may be empty
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual const SourceInfo& info() const = 0;
  virtual void rewind() = 0;  // to the first sample
  // Reads up to `most` samples (most, C, H, W) as stored, and labels, (most) i32 or (most, targets) f32. Returns how
  // many, 0 at the end. DataError with the file and the offset or line.
  virtual std::int64_t read(std::int64_t most, std::uint8_t* samples, void* labels) = 0;
};

struct ImportRequest {
  std::string format{};  // idx | cifar10 | cifar100 | csv
  // idx: images, labels; cifar: batch files; csv: one file. Gzip is seen by its content.
  std::vector<std::string> inputs{};
  Shape shape{};                         // csv: (C, H, W)
  int label_column = -1;                 // csv: column of the class, counted from 0; -1: the last
  std::int64_t targets = 0;              // csv: the last so many columns are regression targets; 0: a class
  DType stored = DType::u8;              // csv: u8 or f32
  double value_max = 255;                // the u8 value that stands for 1.0
  Heading heading = Heading::automatic;  // csv
};

// The names of all formats, those of image_input.hpp and sequence_source.hpp included.
std::vector<std::string> known_formats();
// ConfigError for an unknown format, with the nearest, or inputs that do not fit it; DataError for a bad header.
std::unique_ptr<SampleSource> open_source(const ImportRequest& request);

// One function for each format; the table is in source.cpp.
std::unique_ptr<SampleSource> open_idx(const ImportRequest& request);
std::unique_ptr<SampleSource> open_cifar10(const ImportRequest& request);
std::unique_ptr<SampleSource> open_cifar100(const ImportRequest& request);
std::unique_ptr<SampleSource> open_csv(const ImportRequest& request);

struct SynthRequest {
  std::int64_t samples = 1024;
  Shape shape{1, 28, 28};
  std::int64_t classes = 10;
  DType stored = DType::u8;
  double noise = 0.3;  // standard deviation about the class's pattern, whose values are in [0, 1]
  std::uint64_t seed = 1;
};
// Synthetic samples: one smooth pattern for each class plus normal noise; sample i has label i mod classes. A sample is
// a function of (seed, i).
std::unique_ptr<SampleSource> make_synth(const SynthRequest& request);

}  // namespace echelon::inline data

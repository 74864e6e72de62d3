// A folder (or list) of HDF5 shards seen as one set of samples. The layout of a shard is written down in
// data/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/sample_form.hpp"
#include "base/shape.hpp"
#include "config/schema.hpp"
#include "data/vocabulary.hpp"

namespace echelon::inline data {

enum class DataKind : std::uint8_t {
  samples,    // of one shape, a class each
  text,       // one long row of tokens; sample i of a file is its window [i*T, i*T + T), labels the next tokens
  sequences,  // tokens or rows of F numbers, of unlike length, a class each
  pairs,      // a sequence of tokens and another that a decoder is to say
};
std::string_view name_of(DataKind kind);

// Whether samples and sequences without the dataset 'labels' are refused.
enum class Labels : std::uint8_t { needed, optional };

struct Shard {
  std::string path;
  std::int64_t samples = 0;
  std::int64_t first = 0;       // global id of its first sample
  std::int64_t chunk_rows = 0;  // records that are read together
  std::uint64_t bytes = 0;      // stored, of all datasets
  Shape chunk;                  // of samples, tokens or values as stored; rank 0: contiguous
  bool deflate = false;
  std::int64_t tokens = 0;  // of a text
};

// Lengths of the sequences of a set, stored ones, as sums: sequence i is rows [starts[i], starts[i + 1]) of all files
// in a row.
using Starts = std::shared_ptr<const std::vector<std::int64_t>>;

struct Dataset {
  DataKind kind = DataKind::samples;
  std::vector<Shard> shards;  // in name order
  Shape sample_shape;         // (C, H, W); of text, sequences and pairs (T), or (T, F)
  DType stored = DType::u8;
  std::int64_t classes = 0;              // of labels; of text and pairs the tokens to tell apart; 0: labels are numbers
  Shape label_shape;                     // of numbers: () or (K)
  bool labelled = true;                  // false: labels read as 0, of weight 0; see_as_trained sets their form
  std::vector<std::string> class_names;  // may be empty
  std::vector<double> mean;              // by channel or feature, in units of value * scale; of tokens none
  std::vector<double> std;
  double scale = 1.0;  // u8 pixels: 1/255; x = (value * scale - mean[c]) / std[c]

  Vocabulary vocabulary;         // of tokens
  Starts starts, target_starts;  // of sequences and pairs; of pairs
  Vocabulary target_vocabulary;
  bool stream = false;             // of a text: each row of a batch reads on from step to step (data.order)
  std::int64_t target_length = 0;  // U: what a decoder is fed at most, the start token included

  // Of one sample and its label, decoded as stored; of sequences the mean.
  std::size_t record_bytes() const;
  // What a model is built for; of the steps whose sequences are padded to `bucket`.
  SampleForm form(std::int64_t bucket = 0) const;
  // Labels are real regression targets, not classes.
  bool has_numbers() const { return classes == 0; }
  bool has_sequences() const { return kind != DataKind::samples; }
  // T: steps of a window, or what sequences are padded and cut to; 0: none.
  std::int64_t length() const { return has_sequences() ? sample_shape[0] : 0; }
  std::int64_t samples() const { return shards.empty() ? 0 : shards.back().first + shards.back().samples; }
  // Steps of a sequence that a model sees; of a decoder's text with the start token.
  std::int64_t length_of(std::int64_t id) const;
  std::int64_t target_length_of(std::int64_t id) const;
  // How many sequences are longer than T (or U).
  std::int64_t cut() const;
};

// `location`: a folder (its *.h5 and *.hdf5), one file, or a pattern with * and ?. Opens every file, checks that
// shapes, types and attributes agree and that no file is empty or damaged. Throws DataError naming the file.
// `sequence_length`: T of a text (0: 64), the longest that sequences may be (0: as long as the longest).
Dataset open_dataset(const std::string& location, std::int64_t sequence_length = 0, Labels labels = Labels::needed);
// As the config has it: data.sequence_length, data.order.
Dataset open_dataset(const std::string& location, const DataConfig& config, Labels labels = Labels::needed);

// A model sees test data as it saw its training data: takes over mean and std (both are in units of value * scale, so
// the stored types may differ), and both take the length of the longer one. Throws DataError where shapes, classes or
// vocabularies differ.
void see_alike(Dataset& test, Dataset& train);

}  // namespace echelon::inline data

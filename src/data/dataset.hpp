// SPDX-License-Identifier: Apache-2.0
// A data set: HDF5 files (shards) as one list of samples with ids from 0. data/README.md specifies the layout of a
// shard. Plain values; copies share the lengths of sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/sample_form.hpp"
#include "base/shape.hpp"
#include "config/schema.hpp"
#include "data/image_view.hpp"
#include "data/label_weights.hpp"
#include "data/slab.hpp"
#include "data/vocabulary.hpp"

namespace echelon::inline data {

enum class DataKind : std::uint8_t {
  samples,    // images (C, H, W) of one shape, each with a class or real numbers as label
  text,       // one sequence of tokens; sample i of a file is its window [i*T, i*T + T); labels are the next tokens
  sequences,  // tokens (T) or features (T, F) of different lengths, each with a label or one for each step
  pairs,      // a source sequence of tokens and the target sequence that a decoder generates
};
std::string_view name_of(DataKind kind);

// needed: samples and sequences without the dataset 'labels' throw DataError.
enum class Labels : std::uint8_t { needed, optional };

struct Shard {
  std::string path;
  std::string copy = {};  // copy on this host that is read instead (stage_folder.hpp); "": none
  std::int64_t samples = 0;
  std::int64_t first = 0;       // id of its first sample
  std::int64_t chunk_rows = 0;  // records of a chunk, which are near each other in the order of an epoch
  bool alone = false;           // each record is read alone, as large ones are where nothing is then decoded twice
  std::uint64_t bytes = 0;      // stored bytes of all HDF5 datasets
  Shape chunk = {};             // HDF5 chunk of samples, tokens or values; rank 0: contiguous
  bool deflate = false;         // compressed by gzip or lzf
  bool checksums = false;       // reading detects flipped bits
  std::int64_t tokens = 0;      // number of tokens of a text

  std::int64_t rows_together() const { return alone ? 1 : chunk_rows; }
};

class LabelSample;

// Prefix sums of the stored lengths, with samples + 1 entries: sequence i is rows [starts[i], starts[i + 1]) of the
// concatenation of all files.
using Starts = std::shared_ptr<const std::vector<std::int64_t>>;

struct Dataset {
  DataKind kind = DataKind::samples;
  std::vector<Shard> shards;   // in name order
  Shape sample_shape;          // as stored: (C, H, W); for text, sequences and pairs (T) or (T, F)
  DType stored = DType::u8;    // type as read
  std::string stored_as = {};  // "a 64-bit float" if samples are converted to `stored` on reading
  std::int64_t classes = 0;    // classes; for text and pairs size of the (target) vocabulary; 0: labels are numbers
  Shape label_shape;           // of a sample: numbers () to (K, ..); classes (), or (H, W) for dense labels
  bool step_labels = false;    // sequences: label_shape, () or (K), is that of each step
  bool labelled = true;        // false: the files have no labels; they read as 0 with weight 0
  LabelWeights label_weights = {};                                // set by demand_labels
  double least_label = -std::numeric_limits<double>::infinity();  // range of numeric labels (demand_labels)
  double most_label = std::numeric_limits<double>::infinity();
  std::vector<std::string> class_names;  // [class]; may be empty
  std::vector<double> mean;              // [channel or feature], in units of value * scale; empty for tokens
  std::vector<double> std;               // the same, > 0
  double scale = 1.0;                    // u8 pixels: 1/255; x = (value * scale - mean[c]) / std[c]

  ImageView view = {};   // what the model sees of images (data.image_size)
  bool encoded = false;  // samples are the bytes of JPEG or PNG files, of any size if the view says which is seen;
                         // sample_shape is that of the first one
  bool mixes = false;    // training samples are mixed with others, and have two labels (data/mix.hpp)
  Slab slab = {};        // what is read of samples and labels, whose shapes above are then those of the slab
  SlabRange kept = {};   // what a batch holds of samples that are read whole
  double share = 1;      // of the bytes of a record that a batch holds

  // How files that are not shards are read, with the normalisation that was found; null: the files are shards.
  std::shared_ptr<const Hdf5Config> hdf5;
  bool weighted = false;  // samples have weights

  Vocabulary vocabulary;          // empty: none is stored
  Starts starts, target_starts;   // sequences and pairs; pairs only; otherwise null
  std::int64_t stored_steps = 0;  // sequences in files that are not shards: steps of a record, padding included
  Vocabulary target_vocabulary;   // only pairs
  bool stream = false;            // each row of a batch continues in the next step (data.order = "stream")
  Starts series = {};  // streams of series, cut into windows: series i is samples [series[i], series[i + 1]); else null
  std::shared_ptr<const LabelSample> label_sample;  // see class_mix.hpp; null: labels were not inspected
  std::int64_t target_length = 0;                   // U: longest decoder input, start token included; 0: not pairs

  // The shape of a sample in a batch.
  Shape seen_shape() const { return kept.shape_of(view.shape_of(sample_shape)); }
  // Decoded bytes of one sample and its label as stored; for sequences the mean.
  std::size_t record_bytes() const;
  // Returns the shapes for which a model is built. `bucket`: length of the sequences of a step; 0: length().
  SampleForm form(std::int64_t bucket = 0) const;
  // Whether labels are real regression targets, not classes.
  bool has_numbers() const { return classes == 0; }
  // Whether each place (pixel) of a sample has a class of its own.
  bool has_dense_classes() const { return kind == DataKind::samples && classes > 0 && label_shape.rank() > 0; }
  // Whether a sample has many classes, of its places or steps; some of them may be ignored.
  bool has_many_classes() const { return has_dense_classes() || (step_labels && classes > 0); }
  // Whether labels are tokens that follow others.
  bool predicts_tokens() const { return kind == DataKind::text || kind == DataKind::pairs; }
  // The dataset in the files that holds the labels, for messages.
  const char* labels_name() const;
  bool has_sequences() const { return kind != DataKind::samples; }
  // T: steps of a window, or the length to which sequences are padded and truncated; 0 for images.
  std::int64_t length() const { return has_sequences() ? sample_shape[0] : 0; }
  std::int64_t samples() const { return shards.empty() ? 0 : shards.back().first + shards.back().samples; }
  // The index in `shards` of the file that holds sample `id`.
  std::size_t file_of(std::int64_t id) const;
  // Steps of sample `id` after truncation to T (to U with the start token).
  std::int64_t length_of(std::int64_t id) const;
  std::int64_t target_length_of(std::int64_t id) const;
  // The labels of sample `id`, without padding: of a text its tokens, of a pair those of the target.
  std::int64_t labels_of(std::int64_t id) const;
  // The series to which window `id` belongs, its first window, and whether `id` is that. Without `series` each sequence
  // is a series of its own.
  std::int64_t series_of(std::int64_t id) const;
  std::int64_t first_window(std::int64_t of) const { return series ? (*series)[static_cast<std::size_t>(of)] : of; }
  bool begins_series(std::int64_t id) const { return first_window(series_of(id)) == id; }
  // The number of records in a file that is not a shard: samples, or the series of which samples are windows.
  std::int64_t records_of(const Shard& shard) const;
  // The number of samples whose sequences are truncated.
  std::int64_t cut() const;
};

// Opens every file at `location`: a folder (its *.h5 and *.hdf5), one file, or a pattern with * and ?. Throws DataError
// with the file if shapes, types and attributes disagree or if a file is empty or damaged. Reads headers and lengths,
// but no samples. `sequence_length`: T of a text (0: 64), or the greatest T of sequences (0: the longest one); throws
// ConfigError if given for samples of one shape.
Dataset open_dataset(const std::string& location, std::int64_t sequence_length = 0, Labels labels = Labels::needed,
                     const Hdf5Config& hdf5 = {});
// Takes data.sequence_length, data.order and [data.hdf5] from the config; DataConfig::of_test() is for data.test.
Dataset open_dataset(const std::string& location, const DataConfig& config, Labels labels = Labels::needed);

// Returns the data set of a rank that shares each sample with others. Samples that are changed, resized or decoded are
// read whole and cut afterwards.
Dataset with_slab(Dataset dataset, const Slab& slab, bool changed);

// Returns the view that data.image_size and data.evaluation_resize describe.
ImageView view_of(const DataConfig& config);

// Sets what the keys of [model] demand of labels: the range of numeric ones (bce 0 to 1, hinge -1 to 1), and which
// classes count how much, without model.inverse_frequency (weigh_by_frequency). A label outside throws DataError with
// file and record. ConfigError if class_weights are not as many as classes, or if labels have no weights.
void demand_labels(Dataset& dataset, const ModelConfig& model);
// Sets the weights of model.inverse_frequency from Dataset::label_sample; nothing if the key is 0.
void weigh_by_frequency(Dataset& train, const ModelConfig& model);

// Makes test data fit a model of the training data: `test` takes mean and std of `train` (in units of value * scale, so
// the stored types may differ), and both take the larger T and U. Throws DataError if kinds, shapes, classes, class
// names or vocabularies differ.
void see_alike(Dataset& test, Dataset& train);

}  // namespace echelon::inline data

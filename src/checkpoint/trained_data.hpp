// SPDX-License-Identifier: Apache-2.0
// Describes the training data in a checkpoint, so that predict, eval and readers of an export normalise as training did
// without the data, and a run that starts from another checkpoint can check whether its position in the data applies.
// One JSON text: root attribute `training_data` of a checkpoint, metadata of an export.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace echelon::inline checkpoint {

struct TrainedData {
  std::string kind;  // name_of(DataKind)
  std::int64_t samples = 0;
  std::vector<std::int64_t> sample_shape, label_shape;  // as the model sees them
  bool step_labels = false;                             // sequences: label_shape is that of each step
  std::int64_t classes = 0;                             // 0: labels are numbers
  std::int64_t target_length = 0;                       // for pairs
  std::vector<double> mean, std;                        // per channel or feature: x = (value * scale - mean) / std
  std::vector<double> class_weights;                    // LabelWeights::by_class; empty: none
  std::vector<std::string> class_names;                 // may be empty
  std::string vocabulary, target_vocabulary;            // checksum64 over the entries; "" if there are none
  std::string fingerprint;  // checksum64 over names, samples and bytes of the shards, and over all of the above
};

// Takes it from the metadata of an open data set; reads no samples.
TrainedData trained_data_of(const Dataset& train);
std::string to_text(const TrainedData& data);
// Inverse of to_text. Throws DataError with `path` if the text has another form.
TrainedData read_trained_data(const std::string& text, const std::string& path);
// Reads it from a verified checkpoint. Throws DataError if it has no such attribute.
TrainedData trained_data_in(const std::string& checkpoint);

// Returns the form of its samples, for a model that is built without data. `vocabulary`: number of tokens if samples
// are tokens, which the description does not contain.
SampleForm trained_form(const TrainedData& data, bool stream, std::int64_t vocabulary);

// Like see_alike (data/dataset.hpp), with the description in the checkpoint instead of the training data: `test` gets
// its mean, std and class weights, class names if it has none, the larger of both lengths and, if it has no labels, the
// form of the labels. Throws DataError with the path of the shard if kind, shapes, classes or vocabularies differ.
void see_as_trained(Dataset& test, const TrainedData& trained, const std::string& checkpoint);

}  // namespace echelon::inline checkpoint

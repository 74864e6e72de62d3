// The description of the training data in a checkpoint: predict, eval and readers of an export normalise as training
// did when the training data are gone, and a run that starts from another checkpoint checks whether its position in the
// data applies. One JSON text: root attribute `training_data` of a checkpoint, metadata of an export.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace echelon::inline checkpoint {

struct TrainedData {
  std::string kind;  // name_of(DataKind)
  std::int64_t samples = 0;
  std::vector<std::int64_t> sample_shape, label_shape;
  std::int64_t classes = 0;                   // 0: labels are numbers
  std::int64_t target_length = 0;             // of pairs
  std::vector<double> mean, std;              // by channel or feature: x = (value * scale - mean) / std
  std::vector<std::string> class_names;       // may be empty
  std::string vocabulary, target_vocabulary;  // checksum64 over the entries; "" where there are none
  std::string fingerprint;  // checksum64 over names, samples and bytes of the shards, and all of the above
};

// From the metadata of an open data set; reads no samples.
TrainedData trained_data_of(const Dataset& train);
std::string to_text(const TrainedData& data);
// Inverse of to_text. DataError with `path` where the text is not of that form.
TrainedData read_trained_data(const std::string& text, const std::string& path);
// Of a checkpoint that was verified before. DataError where it has no such attribute.
TrainedData trained_data_in(const std::string& checkpoint);

// The form of its samples, for a model that is built without data. `vocabulary`: tokens of the samples where they are
// tokens, which the description does not count.
SampleForm trained_form(const TrainedData& data, bool stream, std::int64_t vocabulary);

// Like see_alike (data/dataset.hpp), with the description in the checkpoint instead of the training data: `test` gets
// its mean and std, class names where it has none, the longer of both lengths and, without labels of its own, the form
// of the labels. DataError with the path of the shard where kind, shapes, classes or vocabularies differ.
void see_as_trained(Dataset& test, const TrainedData& trained, const std::string& checkpoint);

}  // namespace echelon::inline checkpoint

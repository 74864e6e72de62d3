// What a checkpoint holds of the data that its model was trained on, so that predict, eval and programs that read an
// export normalise as training did when the training data are gone, and so that a run that starts from another's
// checkpoint knows whether its position means anything here. One JSON text: root attribute `training_data` of a
// checkpoint, metadata of an export.
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

TrainedData trained_data_of(const Dataset& train);
std::string to_text(const TrainedData& data);
// DataError that names `path` where the text is not what to_text writes.
TrainedData read_trained_data(const std::string& text, const std::string& path);
// Of a checkpoint that was verified.
TrainedData trained_data_in(const std::string& checkpoint);

// As see_alike (data/dataset.hpp), with what the checkpoint holds in the place of the training data: `test` takes over
// mean and std, the longer of both lengths and, without labels of its own, their form. DataError where shapes, classes
// or vocabularies differ.
void see_as_trained(Dataset& test, const TrainedData& trained, const std::string& checkpoint);

}  // namespace echelon::inline checkpoint

// A trained model with the data that it is to be run over: what eval, predict and eval --follow open.
#pragma once

#include <memory>
#include <string>

#include "data/dataset.hpp"
#include "inference/inference.hpp"
#include "job/launch.hpp"

namespace echelon::cli {

struct OpenedData {
  SavedModel saved;
  std::string location;  // of the data
  Dataset data;          // as the model saw its training data
};

struct OpenedModel : OpenedData {
  LoadedModel model;
};

struct ModelChoice {
  std::string model;         // folder of a run, or a checkpoint
  std::string data;          // "": data.test of the run's config
  std::string device;        // "": the kind that it was trained on
  std::int64_t threads = 0;  // 0: all cores
  std::int64_t batch = 0;    // samples of a forward pass; 0: evaluate.batch of the run's config
  Labels labels = Labels::needed;
};

// Everything that `train` demands of a test set is demanded here: kind, shapes, classes and their names, vocabulary,
// and the range of the loss's labels. ConfigError without any data, DataError where the data do not fit the model.
OpenedData open_data(const ModelChoice& choice);
OpenedModel open_model(const ModelChoice& choice, const HostSlot& slot);

// The device of a rank: the config's, or of the kind that is given.
std::unique_ptr<Device> open_device_for(DeviceConfig device, const std::string& kind, std::int64_t threads,
                                        const HostSlot& slot);

}  // namespace echelon::cli

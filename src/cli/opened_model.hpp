// SPDX-License-Identifier: Apache-2.0
// A trained model together with the data it is to run on, as eval, predict and eval --follow open them.
#pragma once

#include <memory>
#include <string>

#include "data/dataset.hpp"
#include "inference/inference.hpp"
#include "job/launch.hpp"

namespace echelon::cli {

struct OpenedData {
  SavedModel saved;
  std::string location;  // path of the data
  Dataset data;          // with the preprocessing of the model's training data
};

struct OpenedModel : OpenedData {
  LoadedModel model;
};

struct ModelChoice {
  std::string model;         // folder of a run, or a checkpoint
  std::string data;          // "": data.test of the run's config
  std::string device;        // "": the kind of device that it was trained on
  std::int64_t threads = 0;  // 0: all cores
  std::int64_t batch = 0;    // samples per forward pass; 0: evaluate.batch of the run's config
  Labels labels = Labels::needed;
};

// Checks everything that `train` demands of a test set: kind, shapes, classes and their names, vocabulary, and the
// range of the loss's labels. Throws ConfigError if no data are given, DataError if they do not fit the model.
OpenedData open_data(const ModelChoice& choice);
OpenedModel open_model(const ModelChoice& choice, const HostSlot& slot);

// Opens the device of a rank: of `kind` if given, else the config's.
std::unique_ptr<Device> open_device_for(DeviceConfig device, const std::string& kind, std::int64_t threads,
                                        const HostSlot& slot);

}  // namespace echelon::cli

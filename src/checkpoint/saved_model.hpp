// SPDX-License-Identifier: Apache-2.0
// Finds a trained model: the config it was trained with, and the checkpoint with its weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/sample_form.hpp"
#include "checkpoint/slices.hpp"
#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "device/device.hpp"
#include "h5/file.hpp"
#include "model/graph.hpp"

namespace echelon::inline checkpoint {

struct SavedCheckpoint {
  std::string path;  // path of the .h5 file, which has been verified
  std::int64_t step = 0;
  std::string run;          // folder of the run
  std::string config_file;  // config of the newest attempt
};

struct SavedModel {
  Config config;           // config of the newest attempt
  std::string checkpoint;  // path of the .h5 file, which has been verified
  std::int64_t step = 0;
  std::string run;          // folder of the run
  std::string config_file;  // the file that `config` was read from
};

// Returns the run that a folder stands for, by the rules of find_saved; "" if there is none (yet). Throws ConfigError
// if it holds several.
std::string run_in(const std::string& folder);

// `location`: a run's folder (results/<name>/run-<hash>), whose newest good checkpoint is taken; the folder above if it
// holds a single run; the folder of an attempt; a checkpoint file, or `best` or `latest` in its folder. Verifies every
// byte of the checkpoint. Throws ConfigError, with valid alternatives, if there is no trained model; EnvironmentError
// if `location` cannot be read; DataError if the given checkpoint file is damaged (in a folder damaged ones are
// skipped).
SavedCheckpoint find_saved(const std::string& location);
// The same with the config, to which the environment of this process applies (load_config). Throws ConfigError if the
// config is not valid.
SavedModel find_model(const std::string& location);

// Whether a checkpoint has averages beside the weights (optimizer.average_decay).
bool holds_average(const std::string& checkpoint);
// The dataset of a checkpoint that holds the values of this parameter for use: of the average, if there is one.
std::string values_of(const h5::Reader& checkpoint, const std::string& parameter);
// Like load_checkpoint for weights of a trained model: with the averages in their place, if the checkpoint has some.
void load_model(const std::string& checkpoint, const VisitAll& visit);

// Returns the model for samples of the form that it was trained on, without data or device. Throws DataError if the
// checkpoint is of another model.
Graph trained_graph(const SavedModel& saved);

// The model on a device, for data of this form, with its weights loaded. The constructor throws ConfigError if the
// model cannot take such data, DataError if the checkpoint is of another model, and MemoryError. Ranks do not
// communicate: each loads its own model.
class LoadedModel {
 public:
  LoadedModel(const SavedModel& saved, const SampleForm& form, std::unique_ptr<Device> device);
  const Graph& graph() const { return graph_; }
  Device& device() { return *device_; }
  Arenas& arenas() { return *arenas_; }

 private:
  Graph graph_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Arenas> arenas_;
};

}  // namespace echelon::inline checkpoint

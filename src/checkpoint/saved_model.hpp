// Finding a trained model: the config with which it was trained and the checkpoint with its weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/sample_form.hpp"
#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "device/device.hpp"
#include "model/graph.hpp"

namespace echelon::inline checkpoint {

struct SavedCheckpoint {
  std::string path;  // of the .h5 file; it was verified as a whole
  std::int64_t step = 0;
  std::string run;          // folder
  std::string config_file;  // of the newest attempt
};

struct SavedModel {
  Config config;           // of the newest attempt
  std::string checkpoint;  // path of the .h5 file; it was verified as a whole
  std::int64_t step = 0;
  std::string run;          // folder
  std::string config_file;  // that `config` was read from
};

// The run that a folder means, as find_saved takes it; "" where there is none (yet). ConfigError where it holds
// several.
std::string run_in(const std::string& folder);

// `location`: a run's folder (results/<name>/run-<hash>: its newest good checkpoint), the folder above where it holds
// one run or that of an attempt, or one checkpoint file, or `best` or `latest` in its folder. Verifies every byte of
// the checkpoint. Throws ConfigError where there is no trained model, with what would be valid; EnvironmentError where
// `location` cannot be read; DataError where the checkpoint file that was given is damaged (in a folder damaged ones
// are passed over).
SavedCheckpoint find_saved(const std::string& location);
// The same with its config, to which the environment of this process applies (load_config). ConfigError where that is
// not valid.
SavedModel find_model(const std::string& location);

// The model for samples of the form that it was trained on, without data or device. DataError where the checkpoint is
// of another model.
Graph trained_graph(const SavedModel& saved);

// The model on a device, for data of this form, weights loaded. The constructor throws ConfigError where the model
// cannot take such data, DataError where the checkpoint is of another model, MemoryError. No rank communicates: each
// loads its own.
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

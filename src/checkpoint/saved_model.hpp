// A trained model found again: the config it was trained by and the checkpoint with its weights.
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

// `location`: a run's folder (results/<name>/run-<hash>: its newest good checkpoint), the folder above where it holds
// one run or that of an attempt, or one checkpoint file. Throws ConfigError where nothing is trained there, saying what
// would fit; DataError where the checkpoint file that was given is damaged (of a folder damaged ones are passed over).
SavedCheckpoint find_saved(const std::string& location);
// The same with its config.
SavedModel find_model(const std::string& location);

// The model on a device, for data of this form. DataError where the checkpoint is of another model.
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

#include "cli/opened_model.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "checkpoint/trained_data.hpp"
#include "cli/choice.hpp"
#include "device/device.hpp"

namespace echelon::cli {

OpenedModel open_model(const ModelChoice& choice, const HostSlot& slot) {
  SavedModel saved = find_model(choice.model);
  if (choice.batch > 0) saved.config.evaluate.batch = choice.batch;
  const std::string location = choice.data.empty() ? saved.config.data.test : choice.data;
  if (location.empty())
    throw ConfigError(fmt::format(
        "{}: its config names no data.test; give the data to evaluate on: a folder, file or pattern of shards",
        saved.run));
  Dataset data = open_dataset(location, saved.config.data, choice.labels);
  see_as_trained(data, trained_data_in(saved.checkpoint), saved.checkpoint);
  demand_labels(data, saved.config.model.loss);
  DeviceConfig& device = saved.config.device;
  device.threads = choice.threads;
  device.memory_limit_mb = 0;  // was for training
  if (!choice.device.empty()) device.kind = choice.device, device.kinds.clear();
  LoadedModel model(saved, data.form(), open_device(device_on(device, slot).kind, device_options(device, slot)));
  return {std::move(saved), location, std::move(data), std::move(model)};
}

}  // namespace echelon::cli

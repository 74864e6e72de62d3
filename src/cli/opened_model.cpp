// SPDX-License-Identifier: Apache-2.0
#include "cli/opened_model.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "checkpoint/trained_data.hpp"
#include "cli/choice.hpp"
#include "device/device.hpp"

namespace echelon::cli {

OpenedData open_data(const ModelChoice& choice) {
  SavedModel saved = find_model(choice.model);
  if (choice.batch > 0) saved.config.evaluate.batch = choice.batch;
  const std::string location = choice.data.empty() ? saved.config.data.test : choice.data;
  if (location.empty())
    throw ConfigError(fmt::format(
        "{}: its config names no data.test; give the data to evaluate on: a folder, file or pattern of shards",
        saved.run));
  DataConfig config = saved.config.data.of_test();
  if (!choice.data.empty()) config.hdf5.rows.clear(), config.hdf5.split.clear();  // of the files of the training alone
  Dataset data = open_dataset(location, config, choice.labels);
  demand_labels(data, saved.config.model);
  see_as_trained(data, trained_data_in(saved.checkpoint), saved.checkpoint);
  return {std::move(saved), location, std::move(data)};
}

std::unique_ptr<Device> open_device_for(DeviceConfig device, const std::string& kind, std::int64_t threads,
                                        const HostSlot& slot) {
  device.threads = threads;
  device.memory_limit_mb = 0;  // the limit was set for training
  if (!kind.empty()) device.kind = kind, device.kinds.clear();
  return open_device(device_on(device, slot).kind, device_options(device, slot));
}

OpenedModel open_model(const ModelChoice& choice, const HostSlot& slot) {
  OpenedData opened = open_data(choice);
  LoadedModel model(opened.saved, opened.data.form(),
                    open_device_for(opened.saved.config.device, choice.device, choice.threads, slot));
  return {std::move(opened), std::move(model)};
}

}  // namespace echelon::cli

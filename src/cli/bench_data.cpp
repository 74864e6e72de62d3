// SPDX-License-Identifier: Apache-2.0
// echelon bench data: how fast the training data of an experiment are read.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/peak_memory.hpp"
#include "base/text.hpp"
#include "cli/options.hpp"
#include "config/parse.hpp"
#include "data/reading_rate.hpp"

namespace echelon::cli {

int run_bench_data(const BenchDataOptions& options) {
  if (options.readers < 1) throw ConfigError("--readers must be at least 1");
  if (options.batch < 0) throw ConfigError("--batch must not be negative");
  if (options.epochs < 1) throw ConfigError("--epochs must be at least 1");
  if (!(options.seconds > 0)) throw ConfigError("--seconds must be above 0");
  const Config config = load_config(options.config, options.sets);
  Dataset set = open_dataset(config.data.train, config.data);
  demand_labels(set, config.model);
  const ReadingRate rate = reading_rate(
      set, config.data,
      {.readers = options.readers, .batch = options.batch, .most_s = options.seconds, .epochs = options.epochs});
  if (options.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"samples_s", rate.samples_s()},
                                              {"samples", rate.samples},
                                              {"seconds", rate.seconds},
                                              {"bytes", rate.bytes},
                                              {"readers", options.readers},
                                              {"peak_mb", peak_memory_mb()}}
                           .dump());
    return kExitOk;
  }
  fmt::print("{} samples/s: {} in {} by {}, {}/s from files, peak memory {:.0f} MiB\n", rate_text(rate.samples_s()),
             counted(rate.samples, "sample"), seconds_text(rate.seconds), counted(options.readers, "reader"),
             bytes_text(static_cast<double>(rate.bytes) / rate.seconds), peak_memory_mb());
  return kExitOk;
}

}  // namespace echelon::cli

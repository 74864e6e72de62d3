// SPDX-License-Identifier: Apache-2.0
// echelon bench data: how fast the training data of an experiment are read, decoded and changed.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/peak_memory.hpp"
#include "base/text.hpp"
#include "cli/options.hpp"
#include "config/parse.hpp"
#include "data/reading_rate.hpp"
#include "h5/file.hpp"
#include "train/run_plan.hpp"

namespace echelon::cli {

namespace {

// Writes a batch as the model sees it.
void write_batch(const std::string& path, const Batch& batch, const Dataset& set) {
  const SampleForm form = set.form();
  h5::Writer file(path);
  file.write_all("samples", DType::f32, form.shape.prepended(batch.n), batch.samples);
  file.write_all("labels", set.has_numbers() ? DType::f32 : DType::i32, form.label.prepended(batch.n), batch.labels);
  file.write_all("ids", DType::i32, Shape{batch.n}, batch.ids);
  if (batch.others != nullptr) {
    file.write_all("others", DType::i32, Shape{batch.n}, batch.others);
    file.write_all("weights", DType::f32, Shape{batch.n}, batch.weights);
  }
  file.publish();
}

}  // namespace

int run_bench_data(const BenchDataOptions& options) {
  if (options.readers < 1) throw ConfigError("--readers must be at least 1");
  if (options.batch < 0) throw ConfigError("--batch must not be negative");
  if (options.epochs < 1) throw ConfigError("--epochs must be at least 1");
  if (!(options.seconds > 0)) throw ConfigError("--seconds must be above 0");
  const Config config = load_config(options.config, options.sets);
  const Dataset set = open_inputs(config).train;
  if (!options.out.empty() && set.has_sequences()) throw ConfigError("--out is for samples of one shape");
  ReadingOptions reading{.readers = options.readers,
                         .batch = options.batch,
                         .most_s = options.seconds,
                         .epochs = options.epochs,
                         .loading = training_loading(config)};
  if (!options.out.empty()) reading.first = [&](const Batch& batch) { write_batch(options.out, batch, set); };
  const ReadingRate rate = reading_rate(set, config.data, reading);
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

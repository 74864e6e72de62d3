// echelon predict and echelon eval: a trained model over a data set.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options.hpp"
#include "data/dataset.hpp"
#include "device/device.hpp"
#include "h5/file.hpp"
#include "train/inference.hpp"
#include "train/launch.hpp"
#include "train/sharpness.hpp"

namespace echelon::cli {
namespace {

// The data as the model saw its training data, where that can still be looked up.
Dataset open_as_trained(const std::string& location, const Config& config) {
  Dataset data = open_dataset(location, config.data);
  try {
    Dataset train = open_dataset(config.data.train, config.data);
    see_alike(data, train);
  } catch (const DataError& error) {
    if (std::filesystem::exists(config.data.train)) throw;
    fmt::print(stderr, "echelon: warning: the training data {} is not here: {} is normalised by its own mean and std\n",
               config.data.train, location);
  }
  return data;
}

struct Opened {
  SavedModel saved;
  Dataset data;
  LoadedModel model;
};

Opened open(const PredictOptions& options) {
  prepare_process();
  SavedModel saved = find_model(options.model);
  saved.config.evaluate.batch = options.batch;
  Dataset data = open_as_trained(options.data, saved.config);
  DeviceOptions device;
  device.threads = options.threads > 0 ? options.threads : usable_cores();
  const std::string kind = options.device.empty() ? saved.config.device.kind : options.device;
  LoadedModel model(saved, data.form(), open_device(kind, device));
  return {std::move(saved), std::move(data), std::move(model)};
}

// Labels that a data set holds say how good the predictions are.
void print_summary(const Opened& opened, const InferenceSummary& summary, double seconds, std::int64_t batch) {
  const LossSums& sums = summary.sums;
  fmt::print("model    {} at step {}\n", opened.saved.checkpoint, opened.saved.step);
  fmt::print("data     {} samples\n", count_text(summary.samples));
  fmt::print("loss     {:.5g}\n", sums.loss / sums.weight);
  if (opened.model.graph().counts_correct()) fmt::print("accuracy {:.2f} %\n", 100 * sums.correct / sums.weight);
  fmt::print("speed    {} samples/s; a batch of {}: p50 {:.3g} ms, p99 {:.3g} ms\n",
             count_text(static_cast<std::int64_t>(static_cast<double>(summary.samples) / seconds)), batch,
             1e3 * summary.latency(0.5), 1e3 * summary.latency(0.99));
}

// predictions (N ..) i32 and outputs (N, ..) f32, filled batch by batch.
class PredictionFile {
 public:
  PredictionFile(const std::string& path, const Opened& opened, bool outputs)
      : writer_(path), samples_(opened.data.samples()), outputs_(outputs) {
    writer_.attribute("model", opened.saved.checkpoint);
    writer_.attribute("step", opened.saved.step);
    if (!opened.data.class_names.empty()) writer_.attribute("class_names", opened.data.class_names);
  }

  void write(const InferenceBatch& batch) {
    if (!created_) create(batch);
    if (!batch.chosen.empty()) write_rows("predictions", batch, batch.chosen, DType::i32);
    if (outputs_ || batch.chosen.empty()) write_rows("outputs", batch, batch.outputs, DType::f32);
  }
  void publish() { writer_.publish(); }

 private:
  // Runs of samples that follow one another are written together.
  template <class T>
  void write_rows(const char* dataset, const InferenceBatch& batch, const std::vector<T>& values, DType dtype) {
    const std::size_t row = values.size() / batch.ids.size();
    for (std::size_t first = 0, next; first < batch.ids.size(); first = next) {
      for (next = first + 1; next < batch.ids.size() && batch.ids[next] == batch.ids[next - 1] + 1;) ++next;
      writer_.write_rows(dataset, batch.ids[first], static_cast<std::int64_t>(next - first),
                         values.data() + first * row, dtype);
    }
  }

  void create(const InferenceBatch& batch) {
    created_ = true;
    Shape rows = Shape(batch.shape.extents().first(static_cast<std::size_t>(batch.shape.rank() - 1)));
    if (!batch.chosen.empty()) writer_.create("predictions", DType::i32, rows.prepended(samples_));
    if (outputs_ || batch.chosen.empty()) writer_.create("outputs", DType::f32, batch.shape.prepended(samples_));
  }

  h5::Writer writer_;
  std::int64_t samples_;
  bool outputs_;
  bool created_ = false;
};

}  // namespace

int run_predict(const PredictOptions& options) {
  Opened opened = open(options);
  PredictionFile file(options.out, opened, options.outputs);
  const double start = now_s();
  const InferenceSummary summary =
      infer(opened.model, opened.data, opened.saved.config, [&](const InferenceBatch& batch) { file.write(batch); });
  file.publish();
  print_summary(opened, summary, now_s() - start, options.batch);
  fmt::print("written  {}\n", options.out);
  return kExitOk;
}

int run_eval(const PredictOptions& options) {
  Opened opened = open(options);
  const double start = now_s();
  const InferenceSummary summary = infer(opened.model, opened.data, opened.saved.config, [](const InferenceBatch&) {});
  print_summary(opened, summary, now_s() - start, options.batch);
  if (options.sharpness <= 0) return kExitOk;
  const Sharpness sharpness =
      measure_sharpness(opened.model, opened.data, opened.saved.config, {.epsilon = options.sharpness});
  fmt::print(
      "sharpness {:.4g} in the box of {:g} (|w| + 1): loss {:.5g} rises to {:.5g} within {} steps on {} samples\n",
      sharpness.value, options.sharpness, sharpness.loss, sharpness.highest, sharpness.steps,
      count_text(sharpness.samples));
  return kExitOk;
}

}  // namespace echelon::cli

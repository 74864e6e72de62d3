// SPDX-License-Identifier: Apache-2.0
// echelon predict and echelon eval: run a trained model over a data set.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "checkpoint/quantise.hpp"
#include "checkpoint/trained_data.hpp"
#include "cli/choice.hpp"
#include "cli/follow.hpp"
#include "cli/on_ranks.hpp"
#include "cli/opened_model.hpp"
#include "cli/options.hpp"
#include "cli/predict_overlays.hpp"
#include "cli/predict_text.hpp"
#include "data/dataset.hpp"
#include "data/describe.hpp"
#include "device/device.hpp"
#include "h5/file.hpp"
#include "inference/inference.hpp"
#include "inference/sharpness.hpp"
#include "job/launch.hpp"

namespace echelon::cli {
namespace {

using Opened = OpenedModel;

Opened open(const PredictOptions& options, const HostSlot& slot, Labels labels) {
  Opened opened = open_model({.model = options.model,
                              .data = options.data,
                              .device = options.device,
                              .threads = options.threads,
                              .batch = options.batch,
                              .labels = labels},
                             slot);
  if (slot.rank == 0) warn_without_checksums(opened.data, opened.location);
  return opened;
}

void print_origin(const Opened& opened, const InferenceSummary& summary, int ranks) {
  fmt::print("model    {} at step {}\n", opened.saved.checkpoint, opened.saved.step);
  fmt::print("data     {}\n", counted(summary.samples, "sample"));
  if (ranks > 1)
    fmt::print("ranks    {} of {}{}\n", summary.ranks, ranks,
               summary.ranks == ranks ? ""
               : opened.data.stream   ? ": text in streams is processed by one rank"
                                      : ": there are no batches for more");
}

// If the data set has labels, prints how good the predictions are.
void print_summary(const Opened& opened, const InferenceSummary& summary, int ranks, double seconds,
                   std::int64_t batch) {
  const LossSums& sums = summary.sums;
  print_origin(opened, summary, ranks);
  if (opened.data.labelled)
    fmt::print("loss     {:.5g}\n", sums.loss / sums.weight);
  else
    fmt::print("labels   none: no loss, no accuracy\n");
  if (opened.data.labelled && opened.data.predicts_tokens())
    fmt::print("perplexity {:.5g}\n", std::exp(sums.loss / sums.weight));
  if (opened.data.labelled && opened.model.graph().counts_correct())
    fmt::print("accuracy {:.2f} %\n", 100 * summary.accuracy);
  if (summary.classes.any()) {
    const ClassFigures figures = summary.classes.figures();
    if (figures.top5_accuracy == figures.top5_accuracy) fmt::print("top-5    {:.2f} %\n", 100 * figures.top5_accuracy);
    fmt::print("macro F1 {:.4f}\nmean IoU {:.4f}\n", figures.macro_f1, figures.mean_iou);
    if (figures.auc == figures.auc) fmt::print("AUC      {:.4f}\n", figures.auc);
  }
  if (summary.values.mae == summary.values.mae) fmt::print("MAE      {:.5g}\n", summary.values.mae);
  if (summary.values.r2 == summary.values.r2) fmt::print("R2       {:.4f}\n", summary.values.r2);
  fmt::print("speed    {} samples/s; a batch of {}: p50 {:.3g} ms, p99 {:.3g} ms\n",
             rate_text(static_cast<double>(summary.samples) / seconds), batch, 1e3 * summary.latency(0.5),
             1e3 * summary.latency(0.99));
}

// Prints the results of the trained weights and of their 8-bit form over the same data.
void print_both(Opened& opened, const InferenceSummary& trained, const InferenceSummary& int8,
                const WeightBytes& bytes) {
  const bool accuracy = opened.model.graph().counts_correct();
  std::vector<std::string> header = {"weights", "bytes", "loss", "p50 ms", "p99 ms"};
  if (accuracy) header.insert(header.begin() + 3, "accuracy %");
  Table table(header);
  const auto row = [&](std::string_view name, std::int64_t size, const InferenceSummary& of) {
    std::vector<std::string> cells = {
        std::string(name), count_text(size), fmt::format("{:.5g}", of.sums.loss / of.sums.weight),
        fmt::format("{:.3g}", 1e3 * of.latency(0.5)), fmt::format("{:.3g}", 1e3 * of.latency(0.99))};
    if (accuracy) cells.insert(cells.begin() + 3, fmt::format("{:.2f}", 100 * of.accuracy));
    table.row(cells);
  };
  row(name_of(opened.model.arenas().dtype()), bytes.plain, trained);
  row("int8", bytes.int8, int8);
  fmt::print("{}8-bit weights are multiplied in floating point: they save memory, not time\n", table.text());
}

// predictions (N, ..) i32, outputs (N, ..) and layers/NAME (N, ..) in the dtype of the weights, filled batch by batch.
// If each step has a label, they are (steps, ..) of all series in a row, and `lengths` (series) i32 has the steps of
// each.
class PredictionFile {
 public:
  PredictionFile(const std::string& path, const Opened& opened, const std::string& weights, bool outputs)
      : writer_(path),
        samples_(opened.data.samples()),
        outputs_(outputs),
        labelled_(opened.data.labelled),
        counts_correct_(opened.model.graph().counts_correct()) {
    writer_.attribute("model", opened.saved.checkpoint);
    writer_.attribute("step", opened.saved.step);
    writer_.attribute("weights", weights);
    if (!opened.data.class_names.empty()) writer_.attribute("class_names", opened.data.class_names);
    if (!opened.data.step_labels) return;
    std::vector<std::int32_t> lengths;  // [series]
    starts_.push_back(0);
    for (std::int64_t id = 0; id < samples_; ++id) {
      const std::int64_t steps = opened.data.length_of(id);
      if (opened.data.begins_series(id)) lengths.push_back(0);
      lengths.back() += static_cast<std::int32_t>(steps);
      starts_.push_back(starts_.back() + steps);
    }
    writer_.create("lengths", DType::i32, Shape{std::ssize(lengths)});
    writer_.write_rows("lengths", 0, std::ssize(lengths), lengths.data(), DType::i32);
  }

  void write(const InferenceBatch& batch) {
    if (!created_) create(batch);
    if (!batch.chosen.empty())
      write_rows("predictions", batch, reinterpret_cast<const std::byte*>(batch.chosen.data()), DType::i32,
                 batch.places);
    for_values(batch, [&](const std::string& dataset, const LayerValues& values) {
      write_rows(dataset, batch, values.bytes.data(), values.dtype, values.shape);
    });
  }
  void publish(const InferenceSummary& summary) {
    if (labelled_) writer_.attribute("loss", summary.sums.loss / summary.sums.weight);
    if (labelled_ && counts_correct_) writer_.attribute("accuracy", summary.accuracy);
    if (summary.classes.any()) {
      const ClassFigures figures = summary.classes.figures();
      if (figures.top5_accuracy == figures.top5_accuracy) writer_.attribute("top5_accuracy", figures.top5_accuracy);
      writer_.attribute("macro_f1", figures.macro_f1);
      writer_.attribute("mean_iou", figures.mean_iou);
      if (figures.auc == figures.auc) writer_.attribute("auc", figures.auc);
    }
    if (summary.values.mae == summary.values.mae) writer_.attribute("mae", summary.values.mae);
    if (summary.values.r2 == summary.values.r2) writer_.attribute("r2", summary.values.r2);
    writer_.publish();
  }

 private:
  // Writes consecutive runs of samples together.
  void write_rows(const std::string& dataset, const InferenceBatch& batch, const std::byte* values, DType dtype,
                  const Shape& shape) {
    const std::size_t row = static_cast<std::size_t>(shape.elems()) * size_of(dtype);
    if (!starts_.empty()) {
      for (std::size_t i = 0; i < batch.ids.size(); ++i) {
        const auto id = static_cast<std::size_t>(batch.ids[i]);
        writer_.write_rows(dataset, starts_[id], starts_[id + 1] - starts_[id], values + i * row, dtype);
      }
      return;
    }
    for (std::size_t first = 0, next; first < batch.ids.size(); first = next) {
      for (next = first + 1; next < batch.ids.size() && batch.ids[next] == batch.ids[next - 1] + 1;) ++next;
      writer_.write_rows(dataset, batch.ids[first], static_cast<std::int64_t>(next - first), values + first * row,
                         dtype);
    }
  }

  template <class Body>
  void for_values(const InferenceBatch& batch, const Body& body) const {
    if (outputs_ || batch.chosen.empty()) body("outputs", batch.outputs);
    for (const LayerValues& layer : batch.layers) body("layers/" + layer.name, layer);
  }

  void create(const InferenceBatch& batch) {
    created_ = true;
    const auto rows = [&](const Shape& each) {
      return starts_.empty() ? each.prepended(samples_) : each.with_front(starts_.back());
    };
    if (!batch.chosen.empty()) writer_.create("predictions", DType::i32, rows(batch.places));
    for_values(batch, [&](const std::string& dataset, const LayerValues& values) {
      writer_.create(dataset, values.dtype, rows(values.shape));
    });
  }

  h5::Writer writer_;
  std::int64_t samples_;
  std::vector<std::int64_t> starts_;  // of each sample, and the end, in steps; empty: samples have one label each
  bool outputs_, labelled_, counts_correct_;
  bool created_ = false;
};

void write_classes(const std::string& path, const Opened& opened, const InferenceSummary& summary) {
  if (!summary.classes.any())
    throw ConfigError(
        fmt::format("--classes {}: the outputs of {} are real numbers; leave it out", path, opened.saved.checkpoint));
  write_file_whole(path, summary.classes.csv(opened.data.class_names));
}

void print_sharpness(Opened& opened, double epsilon) {
  const Sharpness sharpness = measure_sharpness(opened.model, opened.data, opened.saved.config, {.epsilon = epsilon});
  fmt::print(
      "sharpness {:.4g} in the box of {:g} (|w| + 1): loss {:.5g} rises to {:.5g} within {} steps on {} samples\n",
      sharpness.value, epsilon, sharpness.loss, sharpness.highest, sharpness.steps, count_text(sharpness.samples));
}

// The model and data of a verb, on the ranks that share the work.
struct Session : JointRanks {
  using JointRanks::JointRanks;
  std::optional<Opened> opened{};
};

}  // namespace

int run_predict(const PredictOptions& options) {
  if (options.generate > 0) return run_generate(options);
  if (options.beam > 0) return run_translate(options);
  if (options.out.empty() || !options.prompt.empty() || !options.prompt_file.empty())
    throw ConfigError("give --out FILE.h5 for predictions, --generate N for text, or --beam B for translations");
  const bool int8 = is_second("--weights", options.weights, kWeightForms);
  return on_ranks([&](Engine* ranks) {
    Session session(ranks);
    std::optional<PredictionFile> file;
    std::optional<PredictOverlays> overlays;
    WeightBytes bytes;
    session.together([&] {
      session.opened.emplace(open(options, session.slot, Labels::optional));
      if (int8) bytes = quantise(session.opened->model.arenas(), session.opened->model.graph());
      demand_layers(session.opened->model.graph(), options.layers);
      if (!session.reports()) return;
      overlays.emplace(*session.opened, options.overlays, options.out);
      file.emplace(options.out, *session.opened, options.weights, options.outputs);
    });
    Opened& opened = *session.opened;
    const double start = now_s();
    const auto take = [&](const InferenceBatch& batch) {
      file->write(batch);
      overlays->take(batch);
    };
    const InferenceSummary summary =
        infer(opened.model, opened.data, opened.saved.config,
              {.ranks = ranks, .outputs = options.outputs, .layers = options.layers, .take = take});
    session.together([&] {
      if (!session.reports()) return;
      file->publish(summary);
      print_summary(opened, summary, session.slot.ranks, now_s() - start, options.batch);
      if (int8) fmt::print("weights  int8: {} of {} bytes\n", count_text(bytes.int8), count_text(bytes.plain));
      fmt::print("written  {}\n", options.out);
      overlays->write();
    });
    return static_cast<int>(kExitOk);
  });
}

int run_eval(const PredictOptions& options) {
  const bool int8 = is_second("--weights", options.weights, kWeightForms);
  if (options.follow && int8)
    throw ConfigError("--weights int8 is for one model; evaluate a checkpoint that --follow has seen");
  if (options.follow)
    return on_ranks([&](Engine* ranks) {
      return follow({.model = options.model,
                     .data = options.data,
                     .device = options.device,
                     .threads = options.threads,
                     .every_s = options.every_s,
                     .patience_s = options.patience_s},
                    ranks);
    });
  return on_ranks([&](Engine* ranks) {
    Session session(ranks);
    session.together([&] { session.opened.emplace(open(options, session.slot, Labels::needed)); });
    Opened& opened = *session.opened;
    const double start = now_s();
    const bool by_class = !options.classes.empty();
    const auto evaluate = [&] {
      return infer(opened.model, opened.data, opened.saved.config, {.ranks = ranks, .confusion = by_class});
    };
    InferenceSummary summary = evaluate();
    std::optional<InferenceSummary> trained;
    WeightBytes bytes;
    if (int8) {
      session.together([&] { bytes = quantise(opened.model.arenas(), opened.model.graph()); });
      trained = std::exchange(summary, evaluate());
    }
    const std::string bleu = bleu_line(opened, options, session);
    session.together([&] {
      if (!session.reports()) return;
      if (by_class) write_classes(options.classes, opened, summary);
      if (trained) {
        print_origin(opened, summary, session.slot.ranks);
        print_both(opened, *trained, summary, bytes);
      } else {
        print_summary(opened, summary, session.slot.ranks, now_s() - start, options.batch);
      }
      fmt::print("{}", bleu);
      if (by_class) fmt::print("written  {}\n", options.classes);
      if (options.sharpness > 0) print_sharpness(opened, options.sharpness);
    });
    return static_cast<int>(kExitOk);
  });
}

}  // namespace echelon::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/predict_overlays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "data/loader.hpp"
#include "inference/overlay.hpp"
#include "report/writers/plot.hpp"
#include "train/run_plan.hpp"

namespace echelon::cli {
namespace {

constexpr std::int64_t kAFew = 4;
constexpr std::int64_t kNamedColours = 8;

// "class 1 #0072b2, ..", the classes that have a colour.
std::string colours_text(const Dataset& data) {
  std::string text;
  for (std::int64_t k = 1; k < std::min(data.classes, kNamedColours + 1); ++k) {
    const auto at = static_cast<std::size_t>(k);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        at < data.class_names.size() ? data.class_names[at] : fmt::format("class {}", k),
                        plot_colour(at - 1));
  }
  return text + (data.classes > kNamedColours + 1 ? ", .." : "");
}

}  // namespace

PredictOverlays::PredictOverlays(const OpenedData& opened, std::int64_t wanted, const std::string& out)
    : opened_(opened), stem_(std::filesystem::path(out).replace_extension("").string()) {
  const Dataset& data = opened.data;
  const bool fits = data.has_dense_classes() && can_overlay(data.seen_shape(), data.label_shape);
  if (!fits && wanted > 0)
    throw ConfigError(fmt::format("--overlays {}: {} has no class for every pixel of an image or volume; leave it out",
                                  wanted, opened.saved.checkpoint));
  if (fits) count_ = std::min(wanted < 0 ? kAFew : wanted, data.samples());
  classes_.resize(static_cast<std::size_t>(count_ * data.label_shape.elems()));
}

void PredictOverlays::take(const InferenceBatch& batch) {
  const std::int64_t places = opened_.data.label_shape.elems();
  for (std::size_t i = 0; i < batch.ids.size() && count_ > 0; ++i) {
    if (batch.ids[i] >= count_) continue;
    const auto from = static_cast<std::int64_t>(i) * places;
    for (std::int64_t p = 0; p < places; ++p) {
      const auto at = static_cast<std::size_t>(from + p);  // numbers: logits of one of 2 classes
      classes_[static_cast<std::size_t>(batch.ids[i] * places + p)] =
          batch.chosen.empty() ? (batch.outputs.at(at) > 0 ? 1 : 0) : batch.chosen[at];
    }
  }
}

void PredictOverlays::write() const {
  if (count_ == 0) return;
  Config config = opened_.saved.config;
  config.evaluate.batch = count_;
  const Dataset& data = opened_.data;
  const SamplePlan plan = evaluation_plan(data, config, 1);
  LoaderOptions loading = evaluation_loading(config, DType::f32);
  loading.prefetch = 1;
  Loader loader(data, plan, loading);
  const Batch& batch = loader.next();
  const Shape shape = data.seen_shape(), places = data.label_shape;
  for (std::int64_t id = 0; id < count_; ++id) {
    const std::int64_t place = id * places.elems();
    const Image image =
        overlay_of({.shape = shape,
                    .values = static_cast<const float*>(batch.samples) + id * shape.elems(),
                    .places = places,
                    .classes = classes_.data() + place,
                    .labels = data.labelled ? static_cast<const std::int32_t*>(batch.labels) + place : nullptr,
                    .label_weights = static_cast<const float*>(batch.weights) + place});
    write_file_whole(fmt::format("{}-{}.png", stem_, id), encode_png(image));
  }
  fmt::print("overlays {0}-0.png{1}: predicted {2}{3}\n", stem_,
             count_ == 1 ? "" : fmt::format(" .. {}-{}.png", stem_, count_ - 1), colours_text(data),
             data.labelled ? "; outlines of labels" : "");
}

}  // namespace echelon::cli

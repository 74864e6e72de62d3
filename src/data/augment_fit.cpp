// SPDX-License-Identifier: Apache-2.0
#include "data/augment_fit.hpp"

#include <fmt/format.h>

#include "config/refuse.hpp"

namespace echelon::inline data {
namespace {

class Fit {
 public:
  Fit(const Config& config, const Dataset& train)
      : config_(config), train_(train), seen_(train.view.shape_of(train.sample_shape)) {}

  void check() const {
    const DataConfig& data = config_.data;
    const AugmentKeys& keys = data.augment;
    require(data.augment_crop_padding > 0, "data.augment_crop_padding", {.moves = true});
    require(data.augment_flip, "data.augment_flip", {.moves = true});
    require(keys.crops(), "data.augment.crop_scale", {.images = true, .moves = true});
    require(keys.brightness > 0, "data.augment.brightness", {.images = true, .bytes = true});
    require(keys.contrast > 0, "data.augment.contrast", {.images = true, .bytes = true});
    require(keys.saturation > 0, "data.augment.saturation", {.images = true, .bytes = true, .colours = true});
    require(keys.hue > 0, "data.augment.hue", {.images = true, .bytes = true, .colours = true});
    require(keys.flip_rows, "data.augment.flip_rows", {.moves = true, .axes = 2});
    require(keys.flip_depth, "data.augment.flip_depth", {.moves = true, .axes = 3});
    require(keys.rotate == Rotate::plane, "data.augment.rotate", {.moves = true, .axes = 2, .equal = 2});
    require(keys.rotate == Rotate::cube, "data.augment.rotate", {.moves = true, .axes = 3, .equal = 3});
    require(keys.erase > 0, "data.augment.erase", {.images = true, .moves = true});
    require(keys.cutout > 0, "data.augment.cutout", {.moves = true});
    require(keys.mixup > 0, "data.augment.mixup", {.mixes = true});
    require(keys.cutmix > 0, "data.augment.cutmix", {.mixes = true});
  }

 private:
  struct Needs {
    bool images = false;   // (C, H, W)
    bool moves = false;    // places, which dense labels would not follow
    bool bytes = false;    // 8-bit values
    bool colours = false;  // three channels
    int axes = 1;          // spatial ones, at least
    int equal = 0;         // so many last axes are equally long
    bool mixes = false;    // one class per sample
  };

  void require(bool is_set, const char* key, const Needs& needs) const {
    if (!is_set) return;
    const auto refuse_for = [&](bool wrong, const std::string& why) {
      if (wrong) refuse(config_, key, fmt::format("{} {}; leave it out", key, why));
    };
    const std::string held = fmt::format("{} holds {} of {}", config_.data.train, name_of(train_.kind), seen_.text());
    const int axes = seen_.rank() - 1;
    refuse_for(train_.kind != DataKind::samples, "is for images; " + held);
    refuse_for(needs.images && axes != 2, "is for images (C, H, W); " + held);
    refuse_for(axes < needs.axes, fmt::format("needs {} spatial axes; {}", needs.axes, held));
    refuse_for(needs.moves && train_.label_shape.rank() > 1,
               fmt::format("would move images and not their labels of {}", train_.label_shape.text()));
    refuse_for(needs.colours && seen_[0] != 3, "needs the channels red, green and blue; " + held);
    refuse_for(needs.bytes && (train_.stored != DType::u8 || train_.scale > 1.0 / 15),
               fmt::format("needs 8-bit values whose products with the scale are 0 to 1; {} of {} with scale {:g}",
                           held, name_of(train_.stored), train_.scale));
    for (int a = 1; a < needs.equal; ++a)
      refuse_for(seen_[axes] != seen_[axes - a], fmt::format("exchanges axes, which must be equally long; {}", held));
    if (needs.mixes) require_classes(refuse_for);
  }

  template <class Refuse>
  void require_classes(const Refuse& refuse_for) const {
    const std::string& loss = config_.model.loss;
    refuse_for(train_.has_numbers() || train_.label_shape.rank() > 0 || (loss != "auto" && loss != "softmax"),
               "mixes the classes of two samples, for the softmax loss of one class a sample");
    refuse_for(train_.weighted, "mixes samples that have no weights of their own (data.hdf5.weights)");
    const LabelKeys& labels = config_.model.labels;
    refuse_for(!labels.ignore_label.empty() || !labels.class_weights.empty() || labels.inverse_frequency > 0,
               "cannot be combined with model.ignore_label, class_weights and inverse_frequency: the weights of mixed "
               "labels are shares of a sample");
  }

  const Config& config_;
  const Dataset& train_;
  Shape seen_;
};

}  // namespace

void check_augmentation(const Config& config, const Dataset& train) { Fit(config, train).check(); }

}  // namespace echelon::inline data

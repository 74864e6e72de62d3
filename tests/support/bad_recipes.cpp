// SPDX-License-Identifier: Apache-2.0
// Faults in schedules of the learning rate and in the augmentation of images.
#include "tests/support/bad_configs.hpp"

namespace echelon::test {
namespace {

// Returns good_config() with `lines` instead of the last line of [optimizer], its 19th.
std::string beside_rate(const std::string& lines) {
  const std::string& text = good_config();
  return text.substr(0, text.find("momentum")) + lines + "\n";
}

std::string augmented(const std::string& lines) { return good_config() + "[data.augment]\n" + lines; }

}  // namespace

const std::vector<BadConfig>& bad_recipe_configs() {
  static const std::vector<BadConfig> all = {
      {"factors without points", beside_rate("schedule = \"piecewise_linear\""), {"@19:1", "points = [0,"}},
      {"points that do not begin with 0",
       beside_rate("schedule = \"piecewise_constant\"\npoints = [1]\nfactors = [1]"),
       {"@20:1", "from 0 on"}},
      {"fewer factors than points",
       beside_rate("schedule = \"piecewise_linear\"\npoints = [0, 1]\nfactors = [1]"),
       {"@21:1", "1 number", "has 2"}},
      {"points out of order",
       beside_rate("schedule = \"piecewise_linear\"\npoints = [0, 2, 2]\nfactors = [1, 2, 3]"),
       {"@20:1", "must increase"}},
      {"warm-up of a cycle",
       beside_rate("schedule = \"one_cycle\"\nwarmup_epochs = 1"),
       {"@20:1", "rise of their own"}},
      {"a range of one number", augmented("crop_scale = [0.5]\n"), {"@21:1", "[0.08, 1]"}},
      {"a range upside down", augmented("erase = 0.5\nerase_ratio = [3, 0.3]\n"), {"@22:1", "[0.75, 1.33]"}},
      {"ratio of no crop", augmented("crop_ratio = [0.5, 2]\n"), {"@21:1", "data.augment.crop_scale"}},
      {"scale of nothing erased", augmented("erase_scale = [0.1, 0.2]\n"), {"@21:1", "data.augment.erase"}},
      {"unknown rotation", augmented("rotate = \"cubes\"\n"), {"@21:10", "did you mean 'cube'"}},
      {"two kinds of crops",
       augmented("crop_scale = [0.5, 1]\n"),
       {"@21:1", "keep one"},
       {"data.augment_crop_padding=4"}},
      {"three sides of an image", good_config(), {"has 3 numbers"}, {"data.image_size=[3, 4, 5]"}},
      {"resize below the size",
       good_config(),
       {"nearest valid: 32"},
       {"data.image_size=[24, 32]", "data.evaluation_resize=30"}},
      {"resize without a size", good_config(), {"data.image_size"}, {"data.evaluation_resize=30"}},
  };
  return all;
}

}  // namespace echelon::test

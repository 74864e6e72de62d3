// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/schema.hpp"
#include "data/dataset.hpp"

namespace echelon::inline data {

// ConfigError with the place of the key if [data.augment], data.augment_crop_padding or data.augment_flip do not fit
// the training data: other data than images, images with a label for each pixel that would be moved, mixed labels that
// are not classes, colours of values that are not 8-bit, and axes that cannot be exchanged.
void check_augmentation(const Config& config, const Dataset& train);

}  // namespace echelon::inline data

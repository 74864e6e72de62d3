// SPDX-License-Identifier: Apache-2.0
// Every predefined model. A new model needs a name here and its layers in model/zoo/<name>.cpp.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline config {

// clang-format off
#define ECHELON_ZOO(X)                                                                                       \
  X(digits_cnn) X(lenet) X(cnn_32_64) X(alexnet) X(vgg16) X(googlenet) X(inception_v3)                       \
  X(resnet18) X(resnet18_cifar) X(resnet20) X(resnet32) X(resnet44) X(resnet56) X(resnet50) X(deepcam)       \
  X(charlstm) X(chargru) X(wordlstm) X(sequence_classifier) X(translation)                                   \
  X(transformer) X(ranking)
// Models that read model.widths.
#define ECHELON_ZOO_OF_WIDTHS(X) X(unet) X(cosmoflow) X(frnn_lstm)
// clang-format on

#define X(model) #model,
inline std::vector<std::string> zoo_names_of_widths() { return {ECHELON_ZOO_OF_WIDTHS(X)}; }
inline std::vector<std::string> zoo_names() { return {ECHELON_ZOO(X) ECHELON_ZOO_OF_WIDTHS(X)}; }
#undef X

}  // namespace echelon::inline config

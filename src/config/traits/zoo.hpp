// SPDX-License-Identifier: Apache-2.0
// Every predefined model. A new model needs a name here and its layers in model/zoo/<name>.cpp.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline config {

// clang-format off
#define ECHELON_ZOO(X)                                                                                       \
  X(digits_cnn) X(lenet) X(cnn_32_64) X(alexnet) X(vgg16) X(googlenet) X(inception_v3)                       \
  X(resnet18) X(resnet20) X(resnet32) X(resnet44) X(resnet56) X(resnet50)                                    \
  X(charlstm) X(chargru) X(wordlstm) X(sequence_classifier) X(translation)                                   \
  X(transformer) X(ranking)
// clang-format on

inline std::vector<std::string> zoo_names() {
#define X(model) #model,
  return {ECHELON_ZOO(X)};
#undef X
}

}  // namespace echelon::inline config

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_models.hpp"

namespace echelon::test {

std::vector<NamedGraph> small_models() {
  std::vector<NamedGraph> models = small_sequence_models();
  models.insert(models.end(), {{"digits_cnn", small_digits_cnn()},
                               {"cnn_32_64", small_cnn()},
                               {"batch_norm", small_batch_norm_net()},
                               {"dropout", small_dropout_net()}});
  return models;
}

}  // namespace echelon::test

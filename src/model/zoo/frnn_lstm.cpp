// SPDX-License-Identifier: Apache-2.0
// FRNN for scalar signals (Kates-Harbeck, Svyatkovskiy, Tang, Nature 568, 2019; github.com/PPPLDeepLearning/
// plasma-python, plasma/models/builder.py and examples/conf.yaml): two LSTMs of 200 units, dropout of 0.1 behind each,
// and a value for each time step. Recurrent states are carried from window to window of a series.
//
// Keras' LSTM of H units and F inputs has 4 H (F + H + 1) parameters; layers here have PyTorch's second bias, 4 H more.
// On 14 signals that makes 494,601 parameters, and 493,001 there. Dropout within the LSTM is left out.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

std::vector<LayerConfig> zoo_frnn_lstm(const SampleForm& form, const ModelConfig& config) {
  const std::vector<std::int64_t> widths = config.widths.empty() ? std::vector<std::int64_t>{200, 200} : config.widths;
  const bool labelled = form.label.rank() > 0 && form.label.rank() < 3 && form.label[0] == form.shape[0];
  if (form.tokens() || form.shape.rank() != 2 || !labelled)
    throw ConfigError(fmt::format(
        "frnn_lstm takes series (T, F) with a label for each step, (T) or (T, K), but samples are {} {} and "
        "labels {}",
        form.tokens() ? "tokens" : "numbers", form.shape.text(), form.label.text()));
  const bool of_two = config.loss == "hinge" || config.loss == "bce";
  Chain net;
  for (const std::int64_t width : widths) {
    LayerConfig lstm = recurrent("lstm", width);
    lstm.carry = form.stream;
    net.add(lstm);
    net.add(dropout(0.1));
  }
  net.add(dense(form.classes > 0 && !of_two ? form.classes : form.label.rank() == 2 ? form.label[1] : 1));
  return net.take();
}

}  // namespace echelon::inline model

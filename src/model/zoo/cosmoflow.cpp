// SPDX-License-Identifier: Apache-2.0
// CosmoFlow (Mathuriya et al. 2018) as the reference of MLPerf HPC has it (github.com/mlcommons/hpc, cosmoflow): blocks
// of a 3x3x3 convolution, leaky ReLU with Keras' slope of 0.3 and a max pool of 2; dense layers of 128 and 64 with
// dropout of 0.5; outputs 1.2 tanh for targets in [-1, 1]. 8,907,556 parameters on (4, 128, 128, 128) and 4 targets.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

std::vector<LayerConfig> zoo_cosmoflow(const SampleForm& form, const ModelConfig& config) {
  const std::vector<std::int64_t> widths =
      config.widths.empty() ? std::vector<std::int64_t>{32, 64, 128, 256, 512} : config.widths;
  const std::int64_t least = std::int64_t{1} << widths.size();
  const Shape& input = form.shape;
  const bool fits = !form.tokens() && input.rank() == 4 && form.classes == 0 && form.label.rank() <= 1;
  if (!fits || input[1] < least || input[2] < least || input[3] < least)
    throw ConfigError(
        fmt::format("cosmoflow of {} levels takes volumes of at least {} x {} x {} with numbers as labels (it was "
                    "designed for (4, 128, 128, 128) and labels (4)), but samples are {} and labels {}{}",
                    widths.size(), least, least, least, input.text(),
                    form.classes > 0 ? fmt::format("of {} classes ", form.classes) : "", form.label.text()));
  LayerConfig leaky = layer("leaky_relu"), larger = layer("scale");
  leaky.slope = 0.3;
  larger.alpha = 1.2;
  Chain net;
  for (const std::int64_t width : widths) {
    net.add(conv(width, 3, 1));
    net.add(leaky);
    net.add(max_pool(2));
  }
  net.add(layer("flatten"));
  for (const std::int64_t units : {128, 64}) {
    net.add(dense(units));
    net.add(leaky);
    net.add(dropout(0.5));
  }
  net.add(dense(form.label.rank() == 0 ? 1 : form.label[0]));
  net.add(layer("tanh"));
  net.add(larger);
  return net.take();
}

}  // namespace echelon::inline model

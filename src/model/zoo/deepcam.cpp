// SPDX-License-Identifier: Apache-2.0
// DeepCAM (Kurth et al. 2018) as the reference of MLPerf HPC has it (github.com/mlcommons/hpc, deepcam): DeepLabv3+
// (Chen et al. 2018) of output stride 16 over a modified Xception, with transposed convolutions as decoder. 56,454,720
// parameters on (16, 768, 1152) and 3 classes. A separable convolution is one of a group for each channel and one of
// 1x1, without anything between; the pool's affine map is a 1x1 convolution of a group for each channel.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

namespace {

struct XceptionBlock {
  std::int64_t channels;
  int separable = 2;        // convolutions followed by batch norm
  std::int64_t stride = 1;  // of one more convolution behind them
  bool relu_at_end = true;
  bool grows_first = true;  // the first of them has the new number of channels, else the last
  bool one_more = false;    // one more convolution although the stride is 1
};

class DeepCam : public Chain {
 public:
  explicit DeepCam(const SampleForm& form) : form_(form) {}

  std::vector<LayerConfig> layers() {
    norm_relu(32, 3, 2);
    norm_relu(64, 3, 1);
    channels_ = 64;
    block({.channels = 128, .stride = 2, .relu_at_end = false});
    const std::string low = add(layer("relu"));
    block({.channels = 256, .stride = 2});
    block({.channels = 728, .stride = 2, .one_more = true});
    for (int i = 0; i < 16; ++i) block({.channels = 728, .separable = 3});
    block({.channels = 1024, .relu_at_end = false, .grows_first = false, .one_more = true});
    for (const std::int64_t channels : {1536, 1536, 2048}) {
      separable(channels, 1, 2);
      add(layer("batch_norm"));
      add(layer("relu"));
    }
    const std::string deep = last();
    const std::string narrow = norm_relu(48, 1, 1, {low});
    pyramid(deep);
    doubled_norm();
    doubled_norm();
    add(layer("concat"), {last(), narrow});
    norm_relu(256, 3, 1);
    norm_relu(256, 3, 1);
    add(conv(256, 1, 0));
    doubled_norm();
    doubled(form_.classes);
    return take();
  }

 private:
  std::string norm_relu(std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                        std::vector<std::string> inputs = {}) {
    conv_norm(channels, kernel, stride, std::move(inputs));
    return add(layer("relu"));
  }

  std::string separable(std::int64_t channels, std::int64_t stride, std::int64_t dilation,
                        std::vector<std::string> inputs = {}) {
    LayerConfig each = conv(channels_, 3, dilation, stride), joined = conv(channels, 1, 0);
    each.groups = channels_;
    each.dilation = {dilation};
    each.bias = joined.bias = false;
    add(each, std::move(inputs));
    channels_ = channels;
    return add(joined);
  }

  void block(const XceptionBlock& b) {
    const std::string from = last();
    const bool same = b.stride == 1 && b.channels == channels_;
    const std::string skip = same ? from : conv_norm(b.channels, 1, b.stride, {from});
    for (int i = 0; i < b.separable; ++i) {
      const bool grown = b.grows_first || i == b.separable - 1;
      separable(grown ? b.channels : channels_, 1, 1,
                i == 0 ? std::vector<std::string>{from} : std::vector<std::string>{});
      add(layer("batch_norm"));
      if (i < b.separable - 1) add(layer("relu"));
    }
    if (b.stride != 1 || b.one_more) separable(b.channels, b.stride, 1);
    const std::string body = last();
    add(layer("add"), {body, skip});
    if (b.relu_at_end) add(layer("relu"));
  }

  // Atrous spatial pyramid pooling: convolutions of several dilations and the mean of the image, joined.
  void pyramid(const std::string& from) {
    std::vector<std::string> joined = {norm_relu(256, 1, 1, {from})};
    for (const std::int64_t dilation : {6, 12, 18}) {
      LayerConfig atrous = conv(256, 3, dilation);
      atrous.dilation = {dilation};
      atrous.bias = false;
      add(atrous, {from});
      add(layer("batch_norm"));
      joined.push_back(add(layer("relu")));
    }
    add(layer("global_avg_pool"), {from});
    LayerConfig mean = conv(256, 1, 0), affine = conv(256, 1, 0), spread = layer("upsample");
    mean.bias = false;
    affine.groups = 256;
    spread.mode = "nearest";
    spread.factor = {form_.shape[1] / 16, form_.shape[2] / 16};
    for (const LayerConfig& each : {mean, affine, layer("relu"), spread}) add(each);
    joined.push_back(last());
    add(layer("concat"), joined);
    norm_relu(256, 1, 1);
  }

  void doubled(std::int64_t channels) {
    LayerConfig up = layer("conv_transpose");
    up.channels = channels;
    up.kernel = {3};
    up.stride = {2};
    up.padding = up.output_padding = {1};
    up.bias = false;
    add(up);
  }
  void doubled_norm() {
    doubled(256);
    add(layer("batch_norm"));
    add(layer("relu"));
  }

  const SampleForm& form_;
  std::int64_t channels_ = 0;  // of the last value
};

}  // namespace

std::vector<LayerConfig> zoo_deepcam(const SampleForm& form) {
  const Shape& input = form.shape;
  if (form.tokens() || input.rank() != 3 || input[1] % 16 != 0 || input[2] % 16 != 0 || !form.dense)
    throw ConfigError(
        fmt::format("deepcam takes images whose rows and columns are multiples of 16, with a class for every pixel (it "
                    "was designed for (16, 768, 1152) and 3 classes), but samples are {} and labels {}",
                    input.text(), form.label.text()));
  return DeepCam(form).layers();
}

}  // namespace echelon::inline model

// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy: samples, and labels that are integers (N) or (N, 1), one-hot (N, K), or floats, which are targets.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "base/text.hpp"
#include "data/import/npy_array.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {
namespace {

constexpr double kMostNpySample = 1 << 26;  // elements

// The axes of an array whose axes are not given, by their number: a table of features, grey images, images.
std::string usual_axes(const NpyArray& samples) {
  const std::size_t rank = samples.extents().size();
  if (rank >= 2 && rank <= 4) return rank == 2 ? "NC" : rank == 3 ? "NHW" : "NCHW";
  throw DataError(fmt::format("{}: is {}; samples have 2 to 4 axes, the first of which counts them", samples.input(),
                              samples.text()));
}

// The place of the one among zeros; -1 if the row is not one-hot.
template <class T>
std::int64_t hot_place(const T* row, std::int64_t width) {
  const bool hot = std::count(row, row + width, T{1}) == 1 && std::count(row, row + width, T{}) == width - 1;
  return hot ? std::find(row, row + width, T{1}) - row : -1;
}

class Npy final : public SampleSource {
 public:
  Npy(const std::string& samples, const std::string& labels, std::string axes)
      : samples_(samples), labels_(labels), axes_(axes.empty() ? usual_axes(samples_) : std::move(axes)) {
    check_axes();
    const h5::NumberType& type = samples_.type();
    const bool bytes = !type.real && !type.has_sign && type.bytes == 1;
    info_.stored = bytes ? DType::u8 : DType::f32;
    info_.scale = bytes ? 1.0 / 255 : 1;
    info_.sample = {extent_of('C'), extent_of('H'), extent_of('W')};
    check_labels();
  }

  const SourceInfo& info() const override { return info_; }
  void rewind() override {
    samples_.rewind();
    labels_.rewind();
    next_ = 0;
  }

  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* labels) override {
    const std::int64_t count = std::min(most, samples_.rows() - next_);
    if (count == 0) {
      samples_.expect_end();
      labels_.expect_end();
      return 0;
    }
    const std::size_t bytes = static_cast<std::size_t>(count * info_.sample.elems()) * size_of(info_.stored);
    if (axes_.find('C') < 2 || info_.sample[0] == 1) {  // channels come first already
      samples_.read(count, samples, info_.stored);
    } else {
      held_.resize(bytes);
      samples_.read(count, held_.data(), info_.stored);
      info_.stored == DType::u8 ? channels_first<std::uint8_t>(count, samples) : channels_first<float>(count, samples);
    }
    read_labels(count, labels);
    next_ += count;
    return count;
  }

 private:
  std::int64_t extent_of(char axis) const {
    const std::size_t at = axes_.find(axis);
    return at == std::string::npos ? 1 : samples_.extents()[at];
  }

  void check_axes() const {
    const std::vector<std::int64_t>& extents = samples_.extents();
    const auto refuse = [&](const std::string& what) {
      throw DataError(fmt::format("{}: is {}, and --axes {}: {}", samples_.input(), samples_.text(), axes_, what));
    };
    for (const char axis : axes_)
      if (std::string_view("NCHW").find(axis) == std::string_view::npos ||
          std::count(axes_.begin(), axes_.end(), axis) > 1)
        refuse("axes are N, C, H and W, each at most once");
    if (axes_.size() != extents.size()) refuse("one letter for each axis is needed");
    if (axes_[0] != 'N') refuse("N comes first; np.moveaxis(array, axis, 0) moves it there");
    const std::size_t row = axes_.find('H'), column = axes_.find('W');
    if (row != std::string::npos && column != std::string::npos && column < row)
      refuse("H comes before W; np.swapaxes(array, 1, 2) changes them");
    const std::size_t channel = axes_.find('C');
    if (channel != std::string::npos && channel > 1 && channel + 1 < axes_.size()) refuse("C comes behind N, or last");
    double elems = 1;
    for (std::size_t axis = 1; axis < extents.size(); ++axis) elems *= static_cast<double>(extents[axis]);
    if (samples_.rows() == 0 || elems == 0) refuse("it is empty");
    if (elems > kMostNpySample)
      refuse(fmt::format("a sample has {:.3g} values, at most {:.3g}", elems, kMostNpySample));
  }

  void check_labels() {
    if (labels_.rows() != samples_.rows())
      throw DataError(fmt::format("{}: has {} labels for the {} samples of {}", labels_.input(), labels_.rows(),
                                  samples_.rows(), samples_.input()));
    width_ = labels_.row_elems();
    const std::size_t rank = labels_.extents().size();
    if (rank > 2 || width_ == 0)
      throw DataError(fmt::format("{}: is {}; labels are (N), (N, 1), one-hot (N, K), or floats (N, K)",
                                  labels_.input(), labels_.text()));
    if (labels_.type().real && !is_one_hot()) info_.targets = width_;
    if (info_.targets == 0 && width_ > 1) info_.classes = width_;
  }

  // Whether every row of at least two numbers is a one among zeros. Reads all labels.
  bool is_one_hot() {
    if (width_ < 2) return false;
    bool all = true;
    std::vector<float> row(static_cast<std::size_t>(width_));
    for (std::int64_t i = 0; i < labels_.rows() && all; ++i) {
      labels_.read(1, row.data(), DType::f32);
      all = hot_place(row.data(), width_) >= 0;
    }
    labels_.rewind();
    return all;
  }

  void read_labels(std::int64_t count, void* labels) {
    if (info_.targets > 0) return labels_.read(count, labels, DType::f32);
    std::vector<double> values(static_cast<std::size_t>(count * width_));
    labels_.read(count, values.data(), DType::f64);
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<std::int32_t*>(labels)[i] = class_of(values.data() + i * width_, next_ + i);
  }

  std::int32_t class_of(const double* row, std::int64_t sample) const {
    const auto refuse = [&](const std::string& what) {
      throw DataError(fmt::format("{}: label {}: {}", labels_.input(), sample, what));
    };
    if (width_ > 1) {
      const std::int64_t place = hot_place(row, width_);
      if (place < 0) refuse(fmt::format("is not one-hot: one of its {} numbers must be 1, the others 0", width_));
      return static_cast<std::int32_t>(place);
    }
    if (!(*row >= 0 && *row < std::numeric_limits<std::int32_t>::max()))
      refuse(fmt::format("{} is no class: classes count from 0", *row));
    return static_cast<std::int32_t>(*row);
  }

  // (N, H, W, C) to (N, C, H, W).
  template <class T>
  void channels_first(std::int64_t count, std::uint8_t* samples) const {
    const std::int64_t channels = info_.sample[0], pixels = info_.sample[1] * info_.sample[2];
    const auto* from = reinterpret_cast<const T*>(held_.data());
    auto* to = reinterpret_cast<T*>(samples);
    for (std::int64_t n = 0; n < count; ++n, from += channels * pixels)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t p = 0; p < pixels; ++p) *to++ = from[p * channels + c];
  }

  NpyArray samples_, labels_;
  std::string axes_;
  SourceInfo info_;
  std::int64_t width_ = 1;  // numbers of a label
  std::int64_t next_ = 0;
  std::vector<std::byte> held_;  // samples whose channels come last
};

}  // namespace

std::unique_ptr<SampleSource> open_npy(const ImportRequest& request) {
  if (request.inputs.size() != 2)
    throw ConfigError(fmt::format("npy takes 2 arrays, samples and labels, each FILE.npy or FILE.npz:NAME; {} given",
                                  request.inputs.size()));
  return std::make_unique<Npy>(request.inputs[0], request.inputs[1], request.axes);
}

}  // namespace echelon::inline data

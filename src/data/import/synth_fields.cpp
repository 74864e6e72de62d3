// SPDX-License-Identifier: Apache-2.0
// Gaussian random fields whose power spectrum is |k|^-index: the volumes of a small cosmology.
//
// A field is the sum over all frequencies k of a_k cas(2 pi k x / extent), a product of one cas = cos + sin for each
// axis, with independent normal a_k of variance amplitude^2 |k|^-index / norm. As this variance does not depend on the
// sign of any frequency, the sines cancel in the covariance, which is that of a stationary field with this spectrum
// (Bracewell 1983, discrete Hartley transform). The frequency 0 is left out, so that the mean is 0 up to the draw.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {
namespace {

// The matrix cas(2 pi j k / n) / sqrt(n), row by row.
std::vector<float> hartley_matrix(std::int64_t n) {
  std::vector<float> matrix(static_cast<std::size_t>(n * n));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t k = 0; k < n; ++k) {
      const double turn = 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      const double cas = std::cos(turn) + std::sin(turn);
      matrix[static_cast<std::size_t>(j * n + k)] = static_cast<float>(cas / std::sqrt(static_cast<double>(n)));
    }
  return matrix;
}

class Fields final : public SampleSource {
 public:
  explicit Fields(const SynthRequest& request)
      : request_(request), cells_(request.shape.elems() / request.shape[0]), rng_(request.seed, "synth fields") {
    info_.sample = request.shape;
    info_.stored = DType::f32;
    info_.scale = 1;
    info_.targets = 2;
    for (int axis = 1; axis < request.shape.rank(); ++axis) transforms_.push_back(hartley_matrix(request.shape[axis]));
    field_.resize(static_cast<std::size_t>(cells_));
    next_field_.resize(field_.size());
    squares_ = squared_frequencies();
  }

  const SourceInfo& info() const override { return info_; }
  void rewind() override { next_ = 0; }

  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* targets) override {
    const std::int64_t count = std::min(most, request_.samples - next_);
    for (std::int64_t i = 0; i < count; ++i, ++next_) {
      const HashRng rng = rng_.at(static_cast<std::uint64_t>(next_));
      const double of_index = 2 * rng.uniform(0) - 1, of_amplitude = 2 * rng.uniform(1) - 1;
      static_cast<float*>(targets)[2 * i] = static_cast<float>(of_index);
      static_cast<float*>(targets)[2 * i + 1] = static_cast<float>(of_amplitude);
      const double index = 2.5 + 1.5 * of_index, amplitude = 1.25 + 0.75 * of_amplitude;
      for (std::int64_t c = 0; c < info_.sample[0]; ++c) {
        draw(rng.at(static_cast<std::uint64_t>(2 + c)), index, amplitude);
        std::memcpy(samples + 4 * (i * info_.sample.elems() + c * cells_), field_.data(), field_.size() * 4);
      }
    }
    return count;
  }

 private:
  // |k|^2 of each cell.
  std::vector<float> squared_frequencies() const {
    std::vector<float> squares(field_.size());
    for (std::int64_t cell = 0; cell < cells_; ++cell) {
      std::int64_t rest = cell, square = 0;
      for (int axis = info_.sample.rank() - 1; axis > 0; --axis) {
        const std::int64_t n = info_.sample[axis], k = std::min(rest % n, n - rest % n);
        square += k * k;
        rest /= n;
      }
      squares[static_cast<std::size_t>(cell)] = static_cast<float>(square);
    }
    return squares;
  }

  void draw(const HashRng& rng, double index, double amplitude) {
    double power = 0;
    for (std::size_t cell = 1; cell < field_.size(); ++cell) {
      const double variance = std::pow(static_cast<double>(squares_[cell]), -index / 2);
      power += variance;
      field_[cell] = static_cast<float>(std::sqrt(variance) * hash_normal(rng, cell));
    }
    field_[0] = 0;
    const double factor = amplitude * std::sqrt(static_cast<double>(cells_) / power);
    for (float& value : field_) value *= static_cast<float>(factor);
    std::int64_t inner = cells_;
    for (int axis = 1; axis < info_.sample.rank(); ++axis) {
      inner /= info_.sample[axis];
      transform(transforms_[static_cast<std::size_t>(axis - 1)].data(), info_.sample[axis], inner);
    }
  }

  // Along an axis of n cells, which are `inner` cells apart.
  void transform(const float* matrix, std::int64_t n, std::int64_t inner) {
    std::fill(next_field_.begin(), next_field_.end(), 0.0f);
    for (std::int64_t outer = 0; outer < cells_; outer += n * inner)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t k = 0; k < n; ++k) {
          const float factor = matrix[j * n + k];
          const float* from = field_.data() + outer + k * inner;
          float* to = next_field_.data() + outer + j * inner;
#pragma omp simd
          for (std::int64_t i = 0; i < inner; ++i) to[i] += factor * from[i];
        }
    field_.swap(next_field_);
  }

  SynthRequest request_;
  std::int64_t cells_;  // of a channel
  HashRng rng_;
  SourceInfo info_;
  std::vector<std::vector<float>> transforms_;  // by spatial axis
  std::vector<float> field_, next_field_, squares_;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> make_fields(const SynthRequest& request) {
  if (request.samples < 1) throw ConfigError("--samples must be 1 or more");
  if (request.shape.rank() < 2 || request.shape.rank() > 4)
    throw ConfigError("--shape of fields must be C,W, C,H,W or C,D,H,W");
  if (request.shape.elems() == request.shape[0]) throw ConfigError("--shape of fields must have more than one place");
  return std::make_unique<Fields>(request);
}

}  // namespace echelon::inline data

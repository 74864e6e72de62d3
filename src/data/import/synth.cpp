// SPDX-License-Identifier: Apache-2.0
// Synthetic data of any size and shape: a smooth wave per class and channel, plus noise, all from hashes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {
namespace {

// Nearly normal, mean 0 and variance 1: the sum of four 16-bit uniform draws from one hash.
double cheap_normal(std::uint64_t bits) {
  const std::uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  return (static_cast<double>(sum) / 65535.0 - 2.0) * std::numbers::sqrt3;
}

class Synth : public SampleSource {
 public:
  explicit Synth(const SynthRequest& request) : request_(request), noise_(HashRng(request.seed, "synth noise")) {
    info_.sample = request.shape;
    info_.stored = request.stored;
    info_.scale = request.stored == DType::u8 ? 1.0 / 255 : 1.0;
    info_.classes = request.classes;
  }

  const SourceInfo& info() const override { return info_; }
  void rewind() override { next_ = 0; }

  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* classes) override {
    auto* labels = static_cast<std::int32_t*>(classes);
    const std::int64_t count = std::min(most, request_.samples - next_);
    const std::size_t bytes = static_cast<std::size_t>(info_.sample.elems()) * size_of(info_.stored);
    for (std::int64_t i = 0; i < count; ++i) {
      labels[i] = static_cast<std::int32_t>((next_ + i) % request_.classes);
      draw(next_ + i, labels[i], samples + static_cast<std::size_t>(i) * bytes);
    }
    next_ += count;
    return count;
  }

 private:
  void draw(std::int64_t index, std::int64_t label, std::uint8_t* sample) const {
    const std::int64_t height = info_.sample[1], width = info_.sample[2];
    const HashRng noise = noise_.at(static_cast<std::uint64_t>(index));
    std::int64_t at = 0;
    for (std::int64_t c = 0; c < info_.sample[0]; ++c) {
      const HashRng wave = HashRng(request_.seed, "synth pattern")
                               .at(static_cast<std::uint64_t>(label))
                               .at(static_cast<std::uint64_t>(c));
      const double rows = 0.5 + 2.5 * wave.uniform(0), columns = 0.5 + 2.5 * wave.uniform(1), phase = wave.uniform(2);
      for (std::int64_t h = 0; h < height; ++h) {
        const double of_row = phase + rows * static_cast<double>(h) / static_cast<double>(height);
        for (std::int64_t w = 0; w < width; ++w, ++at) {
          const double turns = of_row + columns * static_cast<double>(w) / static_cast<double>(width);
          const double pattern = 0.5 + 0.5 * std::sin(2 * std::numbers::pi * turns);
          const double value = pattern + request_.noise * cheap_normal(noise.bits(static_cast<std::uint64_t>(at)));
          store(sample, at, std::clamp(value, 0.0, 1.0));
        }
      }
    }
  }

  void store(std::uint8_t* sample, std::int64_t at, double value) const {
    if (info_.stored == DType::u8) {
      sample[at] = static_cast<std::uint8_t>(std::lround(255 * value));
    } else {
      const auto real = static_cast<float>(value);
      std::memcpy(sample + 4 * at, &real, sizeof(real));
    }
  }

  SynthRequest request_;
  HashRng noise_;
  SourceInfo info_;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> make_synth(const SynthRequest& request) {
  if (request.samples < 1) throw ConfigError("--samples must be 1 or more");
  if (request.classes < 1) throw ConfigError("--classes must be 1 or more");
  if (request.shape.rank() != 3 || request.shape.elems() < 1)
    throw ConfigError("--shape must be C,H,W, each 1 or more");
  if (!(request.noise >= 0) || request.noise > 100) throw ConfigError("--noise must be 0 to 100");
  if (request.stored != DType::u8 && request.stored != DType::f32) throw ConfigError("--stored must be u8 or f32");
  return std::make_unique<Synth>(request);
}

}  // namespace echelon::inline data

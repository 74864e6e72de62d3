// SPDX-License-Identifier: Apache-2.0
// Small images with a class for every pixel, and an experiment with them.
#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "base/hash_rng.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {

inline constexpr const char* kScenes = R"(name = "trial"
seed = 3
[data]
train = "train"
test = "test"
sharding = "record"
[batch]
global = 8
[train]
epochs = 2
[optimizer]
learning_rate = 0.5
[device]
kind = "reference"
dtype = "f64"
[model]
ignore_label = 255
[[model.layers]]
type = "conv"
channels = 4
kernel = [3, 3]
padding = [1, 1]
[[model.layers]]
type = "relu"
[[model.layers]]
type = "conv"
channels = 3
kernel = [1, 1]
)";

inline constexpr std::int64_t kSide = 6, kPixels = kSide * kSide;

// The class of a pixel follows from its value; pixels of `unknown` have no class.
template <class Unknown>
void write_scenes(const std::string& path, std::int64_t samples, const Unknown& unknown, std::int64_t rows = kSide) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const HashRng draws(5, "scenes");
  std::vector<float> pixels;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < samples; ++i)
    for (std::int64_t p = 0; p < rows * kSide; ++p) {
      const double value = draws.uniform(static_cast<std::uint64_t>(i * kPixels + p));
      pixels.push_back(static_cast<float>(2 * value - 1));
      labels.push_back(unknown(i, p) ? 255 : value < 0.7 ? 0 : value < 0.9 ? 1 : 2);
    }
  h5::Writer writer(path);
  writer.attribute("classes", std::int64_t{3});
  writer.write_all("samples", DType::f32, {samples, 1, rows, kSide}, pixels.data(), {.chunk_rows = 4});
  writer.write_all("labels", DType::u8, {samples, rows, kSide}, labels.data(), {.chunk_rows = 4});
  writer.publish();
}

// The first scenes of every 8 have few pixels that count, one has none.
inline bool uneven(std::int64_t i, std::int64_t p) { return i % 8 == 0 || p % kPixels < (i % 8 < 4 ? 30 : i % 3); }

inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  return most;
}

inline std::vector<double> weights_of(const Trial& trial, const std::string& name, int ranks, const Sets& sets) {
  const Outcome outcome = trial.train(ranks, with({"name=" + name}, sets));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  return last_values(trial, "weights", name);
}

}  // namespace echelon::test

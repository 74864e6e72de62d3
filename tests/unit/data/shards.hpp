// SPDX-License-Identifier: Apache-2.0
// Small shards for tests: pixel values and labels follow from the global id, so that a batch can be checked alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/format.hpp"
#include "h5/file.hpp"

namespace echelon::test {

struct ShardSpec {
  std::int64_t samples = 0;
  std::int64_t first = 0;  // global id of the first sample
  Shape sample{1, 4, 4};
  DType stored = DType::u8;
  DType labels = DType::u8;
  std::int64_t classes = 10;
  h5::DatasetOptions options{.chunk_rows = 8, .deflate = 0};
  std::function<void(h5::Writer&)> attributes = [](h5::Writer&) {};
};

inline double pixel_of(std::int64_t id, std::int64_t at) { return static_cast<double>((id * 31 + at * 7) % 251); }
inline std::int32_t label_of(std::int64_t id) { return static_cast<std::int32_t>(id % 10); }

inline void write_shard(const std::string& path, const ShardSpec& spec) {
  const std::int64_t pixels = spec.sample.elems();
  std::vector<double> samples(static_cast<std::size_t>(spec.samples * pixels));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(spec.samples));
  for (std::int64_t i = 0; i < spec.samples; ++i) {
    labels[static_cast<std::size_t>(i)] = label_of(spec.first + i);
    for (std::int64_t p = 0; p < pixels; ++p)
      samples[static_cast<std::size_t>(i * pixels + p)] = pixel_of(spec.first + i, p);
  }
  h5::Writer writer(path);
  writer.attribute(sample_format::kFormat, std::string(sample_format::kName));
  writer.attribute(sample_format::kFormatVersion, sample_format::kVersion);
  writer.attribute(sample_format::kClasses, spec.classes);
  spec.attributes(writer);
  h5::DatasetOptions of_labels = spec.options;
  writer.create(sample_format::kSamples, spec.stored, spec.sample.prepended(spec.samples), spec.options);
  writer.create(sample_format::kLabels, spec.labels, {spec.samples}, of_labels);
  if (spec.samples > 0) {
    writer.write_rows(sample_format::kSamples, 0, spec.samples, samples.data(), DType::f64);
    writer.write_rows(sample_format::kLabels, 0, spec.samples, labels.data(), DType::i32);
  }
  writer.publish();
}

// Writes shards a0.h5, a1.h5, ... of these sizes into `folder`.
inline void write_shards(const std::string& folder, const std::vector<std::int64_t>& sizes, ShardSpec spec = {}) {
  spec.first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    spec.samples = sizes[i];
    write_shard(folder + "/a" + std::to_string(i) + ".h5", spec);
    spec.first += sizes[i];
  }
}

}  // namespace echelon::test

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "base/hash_rng.hpp"
#include "data/vocabulary.hpp"
#include "h5/file.hpp"
#include "tests/support/config_rows.hpp"

namespace echelon::test {
namespace {

namespace fs = std::filesystem;

void write_attributes(h5::Writer& writer, const char* kind, std::int64_t classes) {
  writer.attribute("format", std::string("echelon-samples"));
  writer.attribute("version", std::int64_t{1});
  writer.attribute("kind", std::string(kind));
  if (classes > 0) writer.attribute("classes", classes);
}

Vocabulary letters() { return Vocabulary(std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g"}); }

void write_images(const std::string& path, std::int64_t samples, std::uint64_t name) {
  const HashRng rng = HashRng(1, "row images").at(name);
  std::vector<float> pixels(static_cast<std::size_t>(samples) * 36);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(rng.at(1).below(i, 5));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<float>(hash_normal(rng, i)) + static_cast<float>(labels[i / 36]) / 4;
  h5::Writer writer(path);
  write_attributes(writer, "samples", 5);
  writer.write_all("samples", DType::f32, {samples, 1, 6, 6}, pixels.data(), {.chunk_rows = 8});
  writer.write_all("labels", DType::i32, {samples}, labels.data(), {.chunk_rows = 8});
  writer.publish();
}

void write_token_shards(const std::string& path, std::int64_t windows, std::uint64_t name) {
  const HashRng rng = HashRng(1, "row text").at(name);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(6 * windows + 1));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(rng.below(i, 7));
  h5::Writer writer(path);
  write_attributes(writer, "text", 0);
  letters().write(writer, "vocabulary");
  writer.write_all("tokens", DType::i32, {static_cast<std::int64_t>(tokens.size())}, tokens.data(), {.chunk_rows = 48});
  writer.publish();
}

void write_sequences(const std::string& path, std::int64_t samples, std::uint64_t name) {
  const HashRng rng = HashRng(1, "row sequences").at(name);
  std::vector<std::int32_t> lengths, tokens, labels;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(samples); ++i) {
    lengths.push_back(1 + static_cast<std::int32_t>(rng.at(1).below(i, 8)));
    labels.push_back(static_cast<std::int32_t>(rng.at(2).below(i, 3)));
    for (std::int32_t t = 0; t < lengths.back(); ++t)
      tokens.push_back(static_cast<std::int32_t>(rng.at(3).below(tokens.size(), 7)));
  }
  h5::Writer writer(path);
  write_attributes(writer, "sequences", 3);
  letters().write(writer, "vocabulary");
  writer.write_all("lengths", DType::i32, {samples}, lengths.data());
  writer.write_all("tokens", DType::i32, {static_cast<std::int64_t>(tokens.size())}, tokens.data());
  writer.write_all("labels", DType::i32, {samples}, labels.data());
  writer.publish();
}

}  // namespace

void write_row_data(const std::string& folder) {
  for (const char* kind : {"images", "text", "sequences"})
    for (const char* part : {"train", "test"}) {
      const std::string at = folder + "/" + kind + "/" + part;
      fs::create_directories(at);
      const bool train = part == std::string("train");
      const std::vector<std::int64_t> sizes = train ? std::vector<std::int64_t>{21, 14} : std::vector<std::int64_t>{9};
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const std::string path = fmt::format("{}/a{}.h5", at, i);
        const std::uint64_t name = train ? i : 9;
        if (kind == std::string("images")) write_images(path, sizes[i], name);
        if (kind == std::string("text")) write_token_shards(path, sizes[i], name);
        if (kind == std::string("sequences")) write_sequences(path, sizes[i], name);
      }
    }
}

}  // namespace echelon::test

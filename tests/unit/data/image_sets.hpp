// SPDX-License-Identifier: Apache-2.0
// Imports images with ranks as threads, and reads the resulting shards.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "data/import/image.hpp"
#include "data/import/image_import.hpp"
#include "h5/file.hpp"
#include "job/agree.hpp"
#include "tests/support/images.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon::test {

// Calls write_images on this many ranks; throws their error as a CommonError.
inline ImportWritten import_images(const ImageRequest& request, const ShardOptions& options, int ranks = 1) {
  ImportWritten written;
  std::string trouble;
  ExitCode code = kExitOk;
  run_ranks(ranks, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Group group(engine, 0);
    ImportTeam team;
    team.rank = group.rank();
    team.size = group.size();
    team.gather = [&](const std::string& own) { return group.gather(own); };
    team.together = [&](const std::function<void()>& body) { all_or_none(group, body); };
    try {
      ImportWritten own = write_images(request, options, team);
      if (group.rank() == 0) written = std::move(own);
    } catch (const CommonError& error) {
      if (group.rank() == 0) trouble = error.what(), code = error.code();
    }
  });
  if (code != kExitOk) throw CommonError(code, trouble);
  return written;
}

// Returns the bytes of all files below a folder, by name.
inline std::map<std::string, std::string> tree_of(const std::string& folder) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      tree[entry.path().lexically_relative(folder).string()] = file_content(entry.path().string());
  return tree;
}

// A sample with its label; samples_of() lists them in the order of the shards.
using Labelled = std::pair<int, std::vector<std::uint8_t>>;
inline std::vector<Labelled> samples_of(const std::string& folder) {
  const Dataset set = open_dataset(folder);
  const auto elems = static_cast<std::size_t>(set.sample_shape.elems());
  std::vector<Labelled> all;
  for (const Shard& shard : set.shards) {
    const h5::Reader reader(shard.path);
    const auto n = static_cast<std::size_t>(shard.samples);
    std::vector<std::uint8_t> samples(n * elems);
    std::vector<std::int32_t> labels(n);
    reader.read_all("samples", samples.data(), DType::u8);
    reader.read_all("labels", labels.data(), DType::i32);
    for (std::size_t i = 0; i < n; ++i)
      all.emplace_back(labels[i],
                       std::vector<std::uint8_t>(samples.begin() + static_cast<std::ptrdiff_t>(i * elems),
                                                 samples.begin() + static_cast<std::ptrdiff_t>((i + 1) * elems)));
  }
  return all;
}

// Returns the planes that an image file becomes.
inline std::vector<std::uint8_t> fitted(const std::string& file, int channels, int height, int width) {
  std::vector<std::uint8_t> planes(static_cast<std::size_t>(channels * height * width));
  fit_image(decode_image(file, channels), height, width, planes.data());
  return planes;
}

}  // namespace echelon::test

// SPDX-License-Identifier: Apache-2.0
#include "data/import/source.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline data {
namespace {

struct Format {
  const char* name;
  std::unique_ptr<SampleSource> (*open)(const ImportRequest&);
};
constexpr Format kFormats[] = {
    {"idx", open_idx}, {"cifar10", open_cifar10}, {"cifar100", open_cifar100}, {"csv", open_csv}, {"npy", open_npy},
};

}  // namespace

std::vector<std::string> known_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  for (const char* other : {"hdf5", "images", "tar", "text", "words", "sequences", "pairs"}) names.emplace_back(other);
  return names;
}

std::unique_ptr<SampleSource> open_source(const ImportRequest& request) {
  for (const Format& format : kFormats)
    if (request.format == format.name) return format.open(request);
  throw ConfigError(unknown_name("format", request.format, known_formats()));
}

}  // namespace echelon::inline data

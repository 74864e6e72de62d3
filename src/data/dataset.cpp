#include "data/dataset.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "data/format.hpp"
#include "h5/file.hpp"

namespace echelon {
namespace {

namespace format = sample_format;
namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path, what));
}

bool is_shard_name(const fs::path& path) { return path.extension() == ".h5" || path.extension() == ".hdf5"; }

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files, folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_directory()) folders.push_back(entry->path().filename());
    if (is_shard_name(entry->path()) && !entry->is_directory()) files.push_back(entry->path().string());
  }
  if (error) fail(folder, "the folder cannot be read: " + error.message());
  if (!files.empty()) return files;
  std::sort(folders.begin(), folders.end());
  fail(folder, folders.empty() ? "the folder holds no .h5 or .hdf5 file"
                               : fmt::format("the folder holds no .h5 or .hdf5 file, but folders; did you mean {}?",
                                             (fs::path(folder) / folders.back()).string()));
}

std::vector<std::string> files_like(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status != 0 || files.empty()) fail(pattern, "no file is like this pattern");
  return files;
}

std::vector<std::string> files_at(const std::string& location) {
  if (fs::is_directory(location)) return files_in(location);
  if (!fs::exists(location) && location.find_first_of("*?[") != std::string::npos) return files_like(location);
  return {location};
}

// Records that are read together: a stored chunk where it must be decoded whole or has a fair size, else 64 to 256.
std::int64_t read_together(const h5::DatasetInfo& info) {
  constexpr std::int64_t kLeast = 64, kMost = 256, kUsual = 128;
  const std::int64_t samples = info.shape[0];
  std::int64_t rows = info.chunk.rank() == 0 ? kUsual : info.chunk[0];
  if (rows < kLeast) rows *= (kLeast + rows - 1) / rows;
  if (rows > kMost && !info.deflate) rows = kMost;
  return std::clamp<std::int64_t>(rows, 1, samples);
}

std::vector<double> per_channel(const h5::Reader& reader, const char* name, std::int64_t channels, double fallback) {
  if (!reader.has_attribute(name)) return std::vector<double>(static_cast<std::size_t>(channels), fallback);
  std::vector<double> values = reader.attribute_doubles(name);
  if (values.size() != static_cast<std::size_t>(channels))
    fail(reader.path(), fmt::format("attribute '{}' has {} values for {} channels", name, values.size(), channels));
  for (const double value : values)
    if (!std::isfinite(value)) fail(reader.path(), fmt::format("attribute '{}' holds {}", name, value));
  return values;
}

// Everything but the shards, as one file states it.
void read_header(const h5::Reader& reader, Dataset& dataset) {
  const std::string& path = reader.path();
  if (reader.has_attribute(format::kFormat)) {
    const std::string name = reader.attribute_text(format::kFormat);
    if (name != format::kName) fail(path, fmt::format("is of format '{}', expected '{}'", name, format::kName));
  }
  if (reader.has_attribute(format::kFormatVersion)) {
    const std::int64_t version = reader.attribute_int(format::kFormatVersion);
    if (version != format::kVersion)
      fail(path, fmt::format("is of version {}, this program reads version {}", version, format::kVersion));
  }
  dataset.classes = reader.attribute_int(format::kClasses);
  if (dataset.classes < 1) fail(path, fmt::format("attribute 'classes' is {}, must be 1 or more", dataset.classes));
  if (reader.has_attribute(format::kClassNames)) dataset.class_names = reader.attribute_texts(format::kClassNames);
  if (!dataset.class_names.empty() && dataset.class_names.size() != static_cast<std::size_t>(dataset.classes))
    fail(path, fmt::format("has {} class_names for {} classes", dataset.class_names.size(), dataset.classes));
  dataset.scale = dataset.stored == DType::u8 ? 1.0 / 255 : 1.0;
  if (reader.has_attribute(format::kScale)) dataset.scale = reader.attribute_double(format::kScale);
  if (!std::isfinite(dataset.scale) || dataset.scale == 0)
    fail(path, fmt::format("attribute 'scale' is {}", dataset.scale));
  dataset.mean = per_channel(reader, format::kMean, dataset.sample_shape[0], 0.0);
  dataset.std = per_channel(reader, format::kStd, dataset.sample_shape[0], 1.0);
  for (const double value : dataset.std)
    if (value <= 0) fail(path, fmt::format("attribute 'std' holds {}, must be above 0", value));
}

// One file as a dataset of its own.
Dataset read_shard(const std::string& path) {
  const h5::Reader reader(path);
  const h5::DatasetInfo samples = reader.info(format::kSamples), labels = reader.info(format::kLabels);
  if (samples.shape.rank() != 4)
    fail(path, fmt::format("dataset 'samples' has shape {}, must be (N, C, H, W)", samples.shape.text()));
  if (samples.dtype != DType::u8 && samples.dtype != DType::f32)
    fail(path, fmt::format("dataset 'samples' is {}, must be u8 or f32", name_of(samples.dtype)));
  if (labels.shape.rank() != 1)
    fail(path, fmt::format("dataset 'labels' has shape {}, must be (N)", labels.shape.text()));
  if (labels.dtype != DType::u8 && labels.dtype != DType::i32)
    fail(path, fmt::format("dataset 'labels' is {}, must be u8 or i32", name_of(labels.dtype)));
  if (samples.shape[0] != labels.shape[0])
    fail(path, fmt::format("holds {} samples but {} labels", samples.shape[0], labels.shape[0]));
  if (samples.shape.elems() == 0) fail(path, fmt::format("holds no sample: shape {}", samples.shape.text()));

  Dataset dataset;
  dataset.sample_shape = samples.shape.without_front();
  dataset.stored = samples.dtype;
  read_header(reader, dataset);
  dataset.shards.push_back({.path = path,
                            .samples = samples.shape[0],
                            .first = 0,
                            .chunk_rows = read_together(samples),
                            .bytes = samples.stored_bytes + labels.stored_bytes,
                            .chunk = samples.chunk,
                            .deflate = samples.deflate});
  return dataset;
}

// Where the next file says other things than the first.
void require_agreement(const Dataset& first, const Dataset& next) {
  const std::string& path = next.shards[0].path;
  const auto differ = [&](const char* what, const auto& here, const auto& there) {
    fail(path, fmt::format("has {} {}, but {} has {}", what, here, first.shards[0].path, there));
  };
  const auto list = [](const auto& values) { return fmt::format("[{}]", fmt::join(values, ", ")); };
  if (next.sample_shape != first.sample_shape)
    differ("samples of shape", next.sample_shape.text(), first.sample_shape.text());
  if (next.stored != first.stored) differ("samples of type", name_of(next.stored), name_of(first.stored));
  if (next.classes != first.classes) differ("classes", next.classes, first.classes);
  if (next.class_names != first.class_names) differ("class_names", list(next.class_names), list(first.class_names));
  if (next.scale != first.scale) differ("scale", next.scale, first.scale);
  if (next.mean != first.mean) differ("mean", list(next.mean), list(first.mean));
  if (next.std != first.std) differ("std", list(next.std), list(first.std));
}

}  // namespace

void normalise_like(Dataset& test, const Dataset& train) {
  if (test.sample_shape != train.sample_shape || test.classes != train.classes)
    fail(test.shards[0].path,
         fmt::format("holds samples of {} and {} classes, the training data in {} {} and {}", test.sample_shape.text(),
                     test.classes, train.shards[0].path, train.sample_shape.text(), train.classes));
  test.mean = train.mean;
  test.std = train.std;
}

Dataset open_dataset(const std::string& location) {
  std::vector<std::string> files = files_at(location);
  std::sort(files.begin(), files.end());
  Dataset dataset;
  for (const std::string& file : files) {
    Dataset next = read_shard(file);
    if (dataset.shards.empty()) {
      dataset = std::move(next);
      continue;
    }
    require_agreement(dataset, next);
    next.shards[0].first = dataset.samples();
    dataset.shards.push_back(std::move(next.shards[0]));
  }
  return dataset;
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
#include "data/import/shard_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "data/format.hpp"
#include "data/import/fresh_folder.hpp"
#include "data/import/hold_out.hpp"
#include "data/import/import_work.hpp"
#include "data/import/mixer.hpp"
#include "data/import/shard_file.hpp"
#include "data/import/statistics.hpp"
#include "data/text_list.hpp"

namespace echelon::inline data {
namespace {

namespace format = sample_format;
namespace fs = std::filesystem;

struct Measured {
  std::int64_t samples = 0;  // all samples, including those held out
  std::int64_t held = 0;
  ShardHeader header;
  std::string empty_classes;
};

std::int32_t class_at(const std::uint8_t* label) {
  std::int32_t number = 0;
  std::memcpy(&number, label, sizeof(number));
  return number;
}

constexpr std::int64_t kBlockBytes = 64 << 20;  // or one sample; a damaged header may claim large ones

// Calls body(index, sample, label) with pointers for every sample of the source, from its start. Returns their number.
// `total`: number of samples if known, else 0.
template <class Body>
std::int64_t for_samples(SampleSource& source, std::int64_t most_rows, std::int64_t total, Body&& body) {
  const std::size_t bytes = sample_bytes(source.info()), label_size = label_bytes(source.info());
  const std::int64_t block_rows =
      std::clamp<std::int64_t>(kBlockBytes / static_cast<std::int64_t>(bytes), 1, most_rows);
  const auto rows = static_cast<std::size_t>(block_rows);
  std::vector<std::uint8_t> samples_read(rows * bytes), labels_read(rows * label_size);
  std::int64_t samples = 0;
  ImportWork work("samples", total);
  source.rewind();
  while (const std::int64_t got = source.read(block_rows, samples_read.data(), labels_read.data())) {
    work.at(samples);
    for (std::int64_t i = 0; i < got; ++i)
      body(samples++, samples_read.data() + static_cast<std::size_t>(i) * bytes,
           labels_read.data() + static_cast<std::size_t>(i) * label_size);
  }
  return samples;
}

Measured measure(SampleSource& source, const ShardOptions& options) {
  Measured measured;
  const auto nothing = [](std::int64_t, const std::uint8_t*, const std::uint8_t*) {};
  if (holds_out(options)) {  // the number of samples decides which of them are held out
    measured.samples = for_samples(source, options.chunk, 0, nothing);
    measured.held = held_out_of(measured.samples, options);
  }
  const HoldOut held_out(std::max<std::int64_t>(measured.samples, 1), measured.held);
  Statistics statistics(source.info());
  const bool classes = source.info().targets == 0;
  LabelCounts counts, train;
  measured.samples = for_samples(source, options.chunk, measured.samples,
                                 [&](std::int64_t index, const std::uint8_t* sample, const std::uint8_t* label) {
                                   const bool held = held_out(index);
                                   if (!held) statistics.add(sample, 1);
                                   if (!classes) return;
                                   counts.add(class_at(label));
                                   if (!held) train.add(class_at(label));
                                 });
  if (measured.samples == 0) throw DataError("the input holds no sample");
  const SourceInfo& info = source.info();
  if (classes) {
    measured.header.classes = info.classes > 0 ? info.classes : counts.greatest() + 1;
    if (info.classes == 0 || !info.class_names.empty())
      refuse_odd_classes(counts, measured.header.classes, info.class_names, options);
    if (measured.header.classes > format::kMostClasses)
      throw DataError(fmt::format("{}: the largest label is {}, but at most {} classes are possible", options.input,
                                  counts.greatest(), format::kMostClasses));
    measured.empty_classes = empty_classes_text(train, measured.header.classes, info.class_names);
  }
  measured.header.mean = info.mean.empty() ? statistics.mean() : info.mean;
  measured.header.std = info.std.empty() ? statistics.std() : info.std;
  measured.header.value_range = statistics.value_range();
  return measured;
}

// Writes one set of samples into shards of given sizes.
class SetWriter {
 public:
  SetWriter(const std::string& place, std::vector<std::int64_t> sizes, const SourceInfo& info,
            const ShardHeader& header, const ShardOptions& options)
      : folder_(place), sizes_(std::move(sizes)), info_(info), header_(header), options_(options) {}

  void append(const std::uint8_t* sample, const std::uint8_t* label) {
    if (files_ == sizes_.size()) throw DataError("the input became longer while it was read");
    if (!file_) {
      file_ = std::make_unique<ShardFile>(folder_.now(name(files_)), sizes_[files_], info_, header_, options_);
      written_ = 0;
    }
    file_->append(sample, label);
    if (++written_ < sizes_[files_]) return;
    file_->publish();
    file_.reset();
    bytes_ += fs::file_size(folder_.now(name(files_)));
    ++files_;
  }

  // Moves the folder to its place and records the files.
  void publish(ShardsWritten& written) {
    if (files_ != sizes_.size()) throw DataError("the input became shorter while it was read");
    folder_.publish();
    for (std::size_t i = 0; i < files_; ++i) written.files.push_back(folder_.then(name(i)));
    written.bytes += bytes_;
  }

 private:
  std::string name(std::size_t index) const { return shard_name(options_, index); }

  FreshFolder folder_;
  std::vector<std::int64_t> sizes_;
  const SourceInfo& info_;
  const ShardHeader& header_;
  const ShardOptions& options_;
  std::unique_ptr<ShardFile> file_;
  std::int64_t written_ = 0;  // samples in the open shard
  std::size_t files_ = 0;     // complete shards
  std::uint64_t bytes_ = 0;
};

}  // namespace

void check_options(const ShardOptions& options) {
  if (options.out.empty()) throw ConfigError("--out names the folder to write");
  if (options.chunk < 64 || options.chunk > 256)
    throw ConfigError(fmt::format("--chunk is {}, must be 64 to 256 records", options.chunk));
  if (options.slab_rows < 0)
    throw ConfigError(fmt::format("--slab-rows is {}, must be 0 (whole samples) or more", options.slab_rows));
  if (options.compress < 0 || options.compress > 9)
    throw ConfigError(fmt::format("--compress is {}, must be a gzip level from 0 to 9", options.compress));
  if (options.hold_out < 0) throw ConfigError("--hold-out must not be negative");
  if (!(options.hold_out_part >= 0 && options.hold_out_part < 1))
    throw ConfigError(fmt::format("--hold-out-part is {}, must be 0 or more and below 1", options.hold_out_part));
  if (options.hold_out > 0 && options.hold_out_part > 0)
    throw ConfigError("--hold-out and --hold-out-part exclude each other");
  if (options.prefix.empty() || options.prefix.find('/') != std::string::npos)
    throw ConfigError(fmt::format("--prefix '{}' must be usable in a file's name", options.prefix));
}

std::int64_t held_out_of(std::int64_t samples, const ShardOptions& options) {
  std::int64_t held = options.hold_out;
  if (options.hold_out_part > 0)
    held = std::max<std::int64_t>(1, std::llround(options.hold_out_part * static_cast<double>(samples)));
  if (held >= samples && held > 0) throw ConfigError(fmt::format("{} samples cannot be held out of {}", held, samples));
  return held;
}

ImportFolders free_folders(const ShardOptions& options) {
  ImportFolders folders{options.out, ""};
  if (holds_out(options))
    folders = {(fs::path(options.out) / "train").string(), (fs::path(options.out) / "test").string()};
  require_free(folders.train);
  if (!folders.test.empty()) require_free(folders.test);
  return folders;
}

void refuse_odd_classes(const LabelCounts& counts, std::int64_t classes, const std::vector<std::string>& names,
                        const ShardOptions& options) {
  if (options.labels_as_they_are) return;
  if (const std::string why = like_parts_of_a_set(names); !why.empty())
    throw DataError(
        fmt::format("{}: {}: import each part by itself, the others --like the first; "
                    "--labels-as-they-are takes them as classes",
                    options.input, why));
  if (const std::string why = unlike_classes(counts, classes); !why.empty())
    throw DataError(
        fmt::format("{}: {}: name the classes' column (csv: --label-column; of regression targets: "
                    "--targets); --labels-as-they-are takes them as classes",
                    options.input, why));
}

void write_class_names(h5::Writer& writer, const std::vector<std::string>& names) {
  constexpr std::size_t kMostBytes = 32768;  // attributes hold 64 KiB
  std::size_t longest = 1;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  if (longest * names.size() <= kMostBytes)
    writer.attribute(format::kClassNames, names);
  else
    write_text_list(writer, format::kClassNames, names);
}

std::string shard_name(const ShardOptions& options, std::size_t index) {
  return fmt::format("{}-{:04}.h5", options.prefix, index);
}

std::vector<std::int64_t> shard_sizes(std::int64_t samples, const ShardOptions& options) {
  std::vector<std::int64_t> parts = options.unequal;
  if (options.shards < 0 || options.samples_per_shard < 0)
    throw ConfigError("--shards and --samples-per-shard must not be negative");
  if ((options.shards > 0 || !parts.empty()) && options.samples_per_shard > 0)
    throw ConfigError("--samples-per-shard does not go with --shards or --unequal");
  if (!parts.empty() && options.shards > 0 && static_cast<std::int64_t>(parts.size()) != options.shards)
    throw ConfigError(fmt::format("--unequal has {} parts for {} shards", parts.size(), options.shards));
  if (!parts.empty() && *std::min_element(parts.begin(), parts.end()) < 1)
    throw ConfigError("--unequal takes parts of 1 or more");
  std::vector<std::int64_t> sizes;
  if (parts.empty() && options.shards == 0) {
    const std::int64_t most = options.samples_per_shard > 0 ? options.samples_per_shard : 10000;
    for (std::int64_t left = samples; left > 0; left -= most) sizes.push_back(std::min(most, left));
    return sizes;
  }
  if (std::max<std::int64_t>(options.shards, static_cast<std::int64_t>(parts.size())) > samples)
    throw ConfigError(fmt::format("{} samples do not fill {} shards", samples,
                                  std::max<std::int64_t>(options.shards, static_cast<std::int64_t>(parts.size()))));
  if (parts.empty()) parts.assign(static_cast<std::size_t>(options.shards), 1);
  const std::int64_t total = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  std::int64_t before = 0, begin = 0;
  for (const std::int64_t part : parts) {
    before += part;
    const auto end = static_cast<std::int64_t>(static_cast<__int128>(samples) * before / total);
    if (end == begin) throw ConfigError(fmt::format("{} samples leave a part of {} of {} empty", samples, part, total));
    sizes.push_back(end - begin);
    begin = end;
  }
  return sizes;
}

ShardsWritten write_shards(SampleSource& source, const ShardOptions& options) {
  check_options(options);
  const ImportFolders folders = free_folders(options);

  const Measured measured = measure(source, options);
  ShardsWritten written;
  written.samples = measured.samples - measured.held;
  written.held_out = measured.held;
  written.classes = measured.header.classes;
  written.empty_classes = measured.empty_classes;
  written.sample_shape = source.info().sample;
  written.stored = source.info().stored;
  written.mean = measured.header.mean;
  written.std = measured.header.std;
  written.value_range = measured.header.value_range;

  SetWriter train(folders.train, shard_sizes(written.samples, options), source.info(), measured.header, options);
  std::unique_ptr<SetWriter> test;
  if (!folders.test.empty())
    test = std::make_unique<SetWriter>(folders.test, std::vector<std::int64_t>{measured.held}, source.info(),
                                       measured.header, options);
  const HoldOut held_out(measured.samples, measured.held);
  const std::size_t sample_size = sample_bytes(source.info()), label_size = label_bytes(source.info());
  std::optional<Mixer> mixer;
  if (!options.keep_order)
    mixer.emplace(folders.train, written.samples * static_cast<std::int64_t>(sample_size + label_size));
  std::string record(sample_size + label_size, '\0');
  for_samples(source, options.chunk, measured.samples,
              [&](std::int64_t index, const std::uint8_t* sample, const std::uint8_t* label) {
                if (held_out(index)) return test->append(sample, label);
                if (!mixer) return train.append(sample, label);
                std::memcpy(record.data(), sample, sample_size);
                std::memcpy(record.data() + sample_size, label, label_size);
                mixer->add(record);
              });
  if (mixer)
    mixer->each([&](std::int64_t, std::string_view mixed) {
      const auto* sample = reinterpret_cast<const std::uint8_t*>(mixed.data());
      train.append(sample, sample + sample_size);
    });
  if (test) test->publish(written);
  train.publish(written);
  return written;
}

}  // namespace echelon::inline data

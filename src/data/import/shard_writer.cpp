#include "data/import/shard_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "data/format.hpp"
#include "data/import/fresh_folder.hpp"
#include "data/import/hold_out.hpp"
#include "data/import/import_work.hpp"
#include "data/import/statistics.hpp"
#include "data/text_list.hpp"

namespace echelon::inline data {
namespace {

namespace format = sample_format;
namespace fs = std::filesystem;

struct Measured {
  std::int64_t samples = 0;  // of all, held out too
  std::int64_t held = 0;
  std::int64_t classes = 0;
  std::vector<double> mean, std, value_range;
};

struct Block {
  Block(const SourceInfo& info, std::int64_t rows)
      : samples(static_cast<std::size_t>(rows * info.sample.elems()) * size_of(info.stored)),
        labels(static_cast<std::size_t>(rows) * label_bytes(info)) {}
  static std::size_t label_bytes(const SourceInfo& info) {
    return 4 * static_cast<std::size_t>(std::max<std::int64_t>(1, info.targets));
  }
  std::vector<std::uint8_t> samples, labels;  // labels: i32, or `targets` f32 each
};

std::int32_t class_at(const std::uint8_t* label) {
  std::int32_t number = 0;
  std::memcpy(&number, label, sizeof(number));
  return number;
}

// Calls body(index, sample, label) with pointers for every sample of the source, from its start. Returns their number.
// `total`: where it is known, else 0.
template <class Body>
std::int64_t for_samples(SampleSource& source, std::int64_t block_rows, std::int64_t total, Body&& body) {
  Block block(source.info(), block_rows);
  const auto rows = static_cast<std::size_t>(block_rows);
  const std::size_t bytes = block.samples.size() / rows, label_bytes = block.labels.size() / rows;
  std::int64_t samples = 0;
  ImportWork work("samples", total);
  source.rewind();
  while (const std::int64_t got = source.read(block_rows, block.samples.data(), block.labels.data())) {
    work.at(samples);
    for (std::int64_t i = 0; i < got; ++i)
      body(samples++, block.samples.data() + static_cast<std::size_t>(i) * bytes,
           block.labels.data() + static_cast<std::size_t>(i) * label_bytes);
  }
  return samples;
}

Measured measure(SampleSource& source, const ShardOptions& options) {
  Measured measured;
  const auto nothing = [](std::int64_t, const std::uint8_t*, const std::uint8_t*) {};
  if (holds_out(options)) {  // the held-out ones depend on the number of samples
    measured.samples = for_samples(source, options.chunk, 0, nothing);
    measured.held = held_out_of(measured.samples, options);
  }
  const HoldOut held_out(std::max<std::int64_t>(measured.samples, 1), measured.held);
  Statistics statistics(source.info());
  const bool classes = source.info().targets == 0;
  std::int32_t greatest = -1;
  measured.samples = for_samples(source, options.chunk, measured.samples,
                                 [&](std::int64_t index, const std::uint8_t* sample, const std::uint8_t* label) {
                                   if (!held_out(index)) statistics.add(sample, 1);
                                   if (classes) greatest = std::max(greatest, class_at(label));
                                 });
  if (measured.samples == 0) throw DataError("the input holds no sample");
  if (classes) measured.classes = source.info().classes > 0 ? source.info().classes : std::int64_t{greatest} + 1;
  const SourceInfo& info = source.info();
  measured.mean = info.mean.empty() ? statistics.mean() : info.mean;
  measured.std = info.std.empty() ? statistics.std() : info.std;
  measured.value_range = statistics.value_range();
  return measured;
}

void write_header(h5::Writer& writer, const SourceInfo& info, const Measured& measured) {
  writer.attribute(format::kFormat, std::string(format::kName));
  writer.attribute(format::kFormatVersion, format::kVersion);
  if (info.targets == 0) writer.attribute(format::kClasses, measured.classes);
  if (!info.class_names.empty()) write_class_names(writer, info.class_names);
  writer.attribute(format::kMean, measured.mean);
  writer.attribute(format::kStd, measured.std);
  writer.attribute(format::kScale, info.scale);
  writer.attribute(format::kValueRange, measured.value_range);
}

// One set of samples written into shards of given sizes, a chunk at a time (each is compressed once).
class SetWriter {
 public:
  SetWriter(const std::string& place, std::vector<std::int64_t> sizes, const SourceInfo& info, const Measured& measured,
            const ShardOptions& options)
      : folder_(place),
        sizes_(std::move(sizes)),
        info_(info),
        measured_(measured),
        options_(options),
        block_(info, options.chunk),
        sample_bytes_(block_.samples.size() / static_cast<std::size_t>(options.chunk)),
        label_bytes_(Block::label_bytes(info)) {}

  void append(const std::uint8_t* sample, const std::uint8_t* label) {
    if (files_ == sizes_.size()) throw DataError("the input became longer while it was read");
    if (!writer_) begin_shard();
    std::copy(sample, sample + sample_bytes_, block_.samples.data() + static_cast<std::size_t>(held_) * sample_bytes_);
    std::copy(label, label + label_bytes_, block_.labels.data() + static_cast<std::size_t>(held_++) * label_bytes_);
    const bool full = written_ + held_ == sizes_[files_];
    if (held_ == options_.chunk || full) flush();
    if (full) end_shard();
  }

  // Moves the folder to its place and notes the files.
  void publish(ShardsWritten& written) {
    if (files_ != sizes_.size()) throw DataError("the input became shorter while it was read");
    folder_.publish();
    for (std::size_t i = 0; i < files_; ++i) written.files.push_back(folder_.then(name(i)));
    written.bytes += bytes_;
  }

 private:
  std::string name(std::size_t index) const { return shard_name(options_, index); }

  void begin_shard() {
    writer_ = std::make_unique<h5::Writer>(folder_.now(name(files_)));
    write_header(*writer_, info_, measured_);
    const h5::DatasetOptions storage{
        .chunk_rows = options_.chunk, .deflate = options_.compress, .checksum = options_.checksums};
    writer_->create(format::kSamples, info_.stored, info_.sample.prepended(sizes_[files_]), storage);
    if (info_.targets > 0)
      writer_->create(format::kLabels, DType::f32, {sizes_[files_], info_.targets}, storage);
    else
      writer_->create(format::kLabels, measured_.classes <= 256 ? DType::u8 : DType::i32, {sizes_[files_]}, storage);
    written_ = 0;
  }
  void flush() {
    writer_->write_rows(format::kSamples, written_, held_, block_.samples.data(), info_.stored);
    writer_->write_rows(format::kLabels, written_, held_, block_.labels.data(),
                        info_.targets > 0 ? DType::f32 : DType::i32);
    written_ += held_;
    held_ = 0;
  }
  void end_shard() {
    writer_->publish();
    writer_.reset();
    bytes_ += fs::file_size(folder_.now(name(files_)));
    ++files_;
  }

  FreshFolder folder_;
  std::vector<std::int64_t> sizes_;
  const SourceInfo& info_;
  const Measured& measured_;
  const ShardOptions& options_;
  Block block_;
  std::size_t sample_bytes_, label_bytes_;
  std::unique_ptr<h5::Writer> writer_;
  std::int64_t held_ = 0;     // samples in the block
  std::int64_t written_ = 0;  // of the open shard
  std::size_t files_ = 0;     // complete
  std::uint64_t bytes_ = 0;
};

}  // namespace

void check_options(const ShardOptions& options) {
  if (options.out.empty()) throw ConfigError("--out names the folder to write");
  if (options.chunk < 64 || options.chunk > 256)
    throw ConfigError(fmt::format("--chunk is {}, must be 64 to 256 records", options.chunk));
  if (options.compress < 0 || options.compress > 9)
    throw ConfigError(fmt::format("--compress is {}, must be a gzip level from 0 to 9", options.compress));
  if (options.hold_out < 0) throw ConfigError("--hold-out must not be negative");
  if (!(options.hold_out_part >= 0 && options.hold_out_part < 1))
    throw ConfigError(fmt::format("--hold-out-part is {}, must be 0 or more and below 1", options.hold_out_part));
  if (options.hold_out > 0 && options.hold_out_part > 0)
    throw ConfigError("--hold-out and --hold-out-part exclude each other");
  if (options.prefix.empty() || options.prefix.find('/') != std::string::npos)
    throw ConfigError(fmt::format("--prefix '{}' must be part of a file's name", options.prefix));
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
  written.classes = measured.classes;
  written.sample_shape = source.info().sample;
  written.stored = source.info().stored;
  written.mean = measured.mean;
  written.std = measured.std;
  written.value_range = measured.value_range;

  SetWriter train(folders.train, shard_sizes(written.samples, options), source.info(), measured, options);
  std::unique_ptr<SetWriter> test;
  if (!folders.test.empty())
    test = std::make_unique<SetWriter>(folders.test, std::vector<std::int64_t>{measured.held}, source.info(), measured,
                                       options);
  const HoldOut held_out(measured.samples, measured.held);
  for_samples(source, options.chunk, measured.samples,
              [&](std::int64_t index, const std::uint8_t* sample, const std::uint8_t* label) {
                (held_out(index) ? *test : train).append(sample, label);
              });
  if (test) test->publish(written);
  train.publish(written);
  return written;
}

}  // namespace echelon::inline data

// SPDX-License-Identifier: Apache-2.0
// Reads damaged shards. An input is a byte, the number of the undamaged file, and the file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/checksum.hpp"
#include "data/chunk_cache.hpp"
#include "data/dataset.hpp"
#include "data/import/sequence_writer.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/text_writer.hpp"
#include "data/verify.hpp"
#include "tests/fuzz/foreign_files.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"

namespace echelon::fuzz {
namespace {

namespace fs = std::filesystem;

// A checksum of all that a run may see of a data set.
class Digest {
 public:
  void add(const void* data, std::size_t bytes) { sum_ = checksum64(data, bytes, sum_); }
  void add(std::int64_t value) { add(&value, sizeof value); }
  void add(const std::string& text) {
    add(static_cast<std::int64_t>(text.size()));
    add(text.data(), text.size());
  }
  template <class T>
  void add_all(const std::vector<T>& values) {
    for (const T& value : values) add(&value, sizeof value);
  }
  void add_all(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) add(text);
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

// Fletcher32 sums 16-bit words modulo 65535, so words of ones and words of zeros are the same to it.
std::string with_zeros_for_ones(const void* data, std::size_t bytes) {
  std::string text(static_cast<const char*>(data), bytes);
  std::replace(text.begin(), text.end(), '\xff', '\0');
  return text;
}

// Tells whether three records in a row, or all, are zero. Fletcher32 of zeros is zero, so a chunk that became zeros
// together with its checksum cannot be told from one that was written so.
class ZeroRun {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* all = static_cast<const char*>(data);
    zeros_ = std::all_of(all, all + bytes, [](char byte) { return byte == 0; }) ? zeros_ + 1 : 0;
    longest_ = std::max(longest_, zeros_);
    ++records_;
  }
  bool any() const { return records_ > 0 && longest_ >= std::min(records_, 3); }

 private:
  int zeros_ = 0, longest_ = 0, records_ = 0;
};

struct Contents {
  std::uint64_t digest = 0;
  bool zeros = false;
};

Contents contents_of(const std::string& path) {
  const Dataset set = open_dataset(path);
  Digest digest;
  digest.add(static_cast<std::int64_t>(set.kind));
  digest.add(set.sample_shape.text() + set.label_shape.text());
  digest.add(set.classes);
  digest.add_all(set.class_names);
  digest.add_all(set.mean);
  digest.add_all(set.std);
  digest.add(&set.scale, sizeof set.scale);
  digest.add_all(set.vocabulary.entries());
  digest.add_all(set.target_vocabulary.entries());
  ChunkCache records(set, 1 << 20);
  const bool classes = set.labelled && (set.kind == DataKind::samples || set.kind == DataKind::sequences);
  ZeroRun samples, labels, targets;
  for (std::int64_t id = 0; id < set.samples(); ++id) {
    const Record record = records.record(id);
    const std::size_t step = set.vocabulary.size() > 0 ? sizeof(std::int32_t) : size_of(set.stored);
    const std::int64_t values = set.kind == DataKind::samples ? set.sample_shape.elems()
                                : set.kind == DataKind::text  ? set.length() + 1
                                                              : record.length * set.sample_shape.row_elems();
    digest.add(with_zeros_for_ones(record.sample, static_cast<std::size_t>(values) * step));
    samples.add(record.sample, static_cast<std::size_t>(values) * step);
    const auto places = static_cast<std::size_t>(record.labels == nullptr ? 0 : set.label_shape.elems());
    for (std::size_t i = 0; i < places; ++i) digest.add(record.labels[i]);
    if (places > 0) labels.add(record.labels, places * sizeof(std::int32_t));
    if (record.numbers)
      digest.add(
          with_zeros_for_ones(record.numbers, static_cast<std::size_t>(set.label_shape.elems()) * sizeof(float)));
    if (!record.target) continue;
    const std::size_t target_bytes = static_cast<std::size_t>(record.target_length) * sizeof(std::int32_t);
    digest.add(with_zeros_for_ones(record.target, target_bytes));
    targets.add(record.target, target_bytes);
  }
  return {digest.sum(), samples.any() || targets.any() || (classes && labels.any())};
}

class ShardTarget final : public Target {
 public:
  // `covered`: a checksum covers every byte of the files that matters.
  ShardTarget(const Place& place, const std::vector<std::string>& paths, bool covered)
      : path_(place.folder + "/damaged.h5"), covered_(covered) {
    for (const std::string& path : paths) {
      files_.push_back(read_plain(path));
      digests_.push_back(contents_of(path).digest);
    }
  }

  std::string draw(Draws& draws) override {
    const std::size_t which = draws.below(files_.size());
    return static_cast<char>(which) + mutate_bytes(files_[which], files_, draws);
  }

  bool take(const std::string& input) override {
    if (input.empty()) return false;
    const std::size_t which = static_cast<unsigned char>(input[0]) % files_.size();
    write_plain(path_, input.substr(1));
    Contents contents;
    const bool accepted = refused_with({kExitData}, [&] { contents = contents_of(path_); });
    const ShardVerdict verdict = verify_shard(path_);
    if (accepted && covered_ && !contents.zeros && contents.digest != digests_[which])
      throw Defect("a damaged shard reads as other data");
    if (accepted && covered_ && !verdict.damaged.empty()) throw Defect("a shard was read whose damage is known");
    return accepted;
  }

 private:
  std::string path_;
  bool covered_;
  std::vector<std::string> files_;
  std::vector<std::uint64_t> digests_;  // digests of the undamaged files
};

std::string only_file_in(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".h5") return entry.path().string();
  throw Defect("no shard in " + folder);
}

// Writes one shard of each kind of data.
std::vector<std::string> imported(const std::string& folder) {
  std::vector<std::string> paths;
  const auto out = [&](const char* name, int compress) {
    return ShardOptions{.out = folder + "/" + name, .shards = 1, .chunk = 64, .compress = compress};
  };
  const auto written = [&](const ShardOptions& options) { paths.push_back(only_file_in(options.out)); };
  const auto text = [&](const char* name, const std::string& content) {
    write_plain(folder + "/" + name, content);
    return folder + "/" + name;
  };
  ShardOptions options = out("bytes", 0);
  write_shards(*make_synth({.samples = 90, .shape = {1, 3, 4}, .classes = 3}), options);
  written(options);
  options = out("compressed", 4);
  write_shards(*make_synth({.samples = 70, .shape = {2, 2, 3}, .classes = 3, .stored = DType::f32}), options);
  written(options);
  options = out("named", 0);
  const std::string table = text("named.csv", "1.5,2,cat\n3,4,dog\n5,6,cat\n7,8,bird\n");
  write_shards(*open_source({.format = "csv", .inputs = {table}, .shape = {1, 1, 2}, .stored = DType::f32}), options);
  written(options);
  options = out("series", 0);
  write_sequences(*open_sequences({.format = "sequences", .inputs = {text("s.csv", "a,x,1,2\na,x,3,4\nb,y,5,6\n")}}),
                  options);
  written(options);
  options = out("pairs", 0);
  write_sequences(*open_sequences({.format = "pairs", .inputs = {text("p.txt", "a b\tc d\nb a a\td\nb\tc c\n")}}),
                  options);
  written(options);
  options = out("text", 0);
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "some text, and more of it.\n";
  write_token_shards({.format = "text", .inputs = {text("t.txt", lines)}}, options);
  written(options);
  return paths;
}

std::vector<std::string> foreign(const std::string& folder) {
  std::vector<std::string> paths;
  for (const int chunk : {0, 16})
    for (const bool texts : {false, true}) {
      paths.push_back(fmt::format("{}/foreign-{}-{}.h5", folder, chunk, texts));
      write_foreign_shard(paths.back(), chunk, texts);
    }
  return paths;
}

}  // namespace

std::unique_ptr<Target> make_shard(const Place& place) {
  return std::make_unique<ShardTarget>(place, imported(place.folder), true);
}
std::unique_ptr<Target> make_old_shard(const Place& place) {
  return std::make_unique<ShardTarget>(place, foreign(place.folder), false);
}

}  // namespace echelon::fuzz

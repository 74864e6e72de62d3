// SPDX-License-Identifier: Apache-2.0
#include "data/import/import_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/shard_header.hpp"

namespace echelon::inline data {
namespace {

namespace fs = std::filesystem;

// The checksum of a note's bytes, salted so that notes of another version do not match.
std::string sum_of(std::string_view packed) {
  constexpr std::uint64_t kForm = 2;
  return hex64(checksum64(packed) + kForm);
}

// All files below a folder; links are not followed.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (entry->is_symlink(unreadable) || !entry->is_directory(unreadable)) files.push_back(entry->path());
  }
  return files;
}

}  // namespace

void ShardNote::put(Packing& packing) const {
  packing.put(std::string_view(made_of));
  packing.put(bytes);
  packing.put(samples);
  packing.put(std::uint64_t{moments.size()});
  for (const Statistics::Moments& m : moments)
    for (const double value : {m.n, m.mean, m.squares, m.least, m.greatest}) packing.put(value);
  packing.put(damaged);
  packing.put(labels);
}

ShardNote ShardNote::get(Unpacking& packed) {
  ShardNote note;
  packed.get(note.made_of);
  packed.get(note.bytes);
  packed.get(note.samples);
  std::uint64_t channels = 0;
  packed.get(channels);
  note.moments.resize(channels);
  for (Statistics::Moments& m : note.moments)
    for (double* value : {&m.n, &m.mean, &m.squares, &m.least, &m.greatest}) packed.get(*value);
  packed.get(note.damaged);
  packed.get(note.labels);
  return note;
}

ImportFolder::ImportFolder(const std::string& out) : out_(fs::path(out).lexically_normal().string()) {
  while (out_.size() > 1 && out_.back() == '/') out_.pop_back();
  path_ = out_ + ".importing";
}

std::string ImportFolder::now(const PlannedShard& shard) const { return path_ + "/data/" + shard.file; }
std::string ImportFolder::then(const PlannedShard& shard) const { return (fs::path(out_) / shard.file).string(); }
std::string ImportFolder::note_path(const PlannedShard& shard) const { return path_ + "/made/" + shard.file; }

void ImportFolder::prepare(const std::vector<PlannedShard>& shards) const {
  for (const PlannedShard& shard : shards)
    for (const std::string& file : {now(shard), note_path(shard)}) make_folders(fs::path(file).parent_path().string());
  std::error_code ignored;
  fs::remove(path_ + "/stop", ignored);
}

void ImportFolder::keep_only(const std::set<std::string>& kept) const {
  for (const char* part : {"data", "made"}) {
    const fs::path folder = fs::path(path_) / part;
    for (const fs::path& file : files_below(folder)) {
      std::error_code ignored;
      if (!kept.contains(file.lexically_relative(folder).string())) fs::remove(file, ignored);
    }
  }
}

void ImportFolder::remove_unless_begun() const {
  std::error_code ignored;
  if (files_below(path_ + "/made").empty()) fs::remove_all(path_, ignored);
}

void ImportFolder::publish(const std::vector<std::string>& left_out) const {
  if (!left_out.empty()) write_file_whole(path_ + "/data/left_out.txt", fmt::format("{}\n", fmt::join(left_out, "\n")));
  std::error_code error;
  fs::rename(path_ + "/data", out_, error);  // replaces an empty folder if there is one
  if (error) throw EnvironmentError(fmt::format("{}: cannot be moved into place: {}", out_, error.message()));
  fs::remove_all(path_, error);
}

std::optional<ShardNote> ImportFolder::note_of(const PlannedShard& shard, bool& changed) const {
  std::error_code error;
  if (!fs::is_regular_file(note_path(shard), error)) return std::nullopt;
  const std::string content = read_file_whole(note_path(shard));
  constexpr std::size_t kSumBytes = 16;
  if (content.size() < kSumBytes) return std::nullopt;
  const std::string_view packed = std::string_view(content).substr(kSumBytes);
  if (sum_of(packed) != content.substr(0, kSumBytes)) return std::nullopt;
  Unpacking unpacking(packed);
  ShardNote note = ShardNote::get(unpacking);
  if (fs::file_size(now(shard), error) != note.bytes || error) return std::nullopt;
  changed = note.made_of != shard.made_of;
  if (changed) return std::nullopt;
  try {
    (void)read_shard(now(shard));  // its headers may be half written if the process was killed
  } catch (const Error&) {
    return std::nullopt;
  }
  return note;
}

void ImportFolder::write_note(const PlannedShard& shard, const ShardNote& note) const {
  Packing packing;
  note.put(packing);
  write_file_whole(note_path(shard), sum_of(packing.bytes()) + packing.bytes());
}

void ImportFolder::stop() const {
  const int fd = create_file(path_ + "/stop");
  if (fd >= 0) ::close(fd);
}

bool ImportFolder::stopped() const { return ::access((path_ + "/stop").c_str(), F_OK) == 0; }

}  // namespace echelon::inline data

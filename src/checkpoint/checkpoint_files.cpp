#include "checkpoint/checkpoint_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "h5/file.hpp"

namespace echelon::inline checkpoint {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

std::string stem_of(std::int64_t step) { return fmt::format("step-{:08}", step); }

// Steps of the checkpoints that have a manifest, newest first.
std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::int64_t step = 0;
    const std::string name = entry->path().filename().string();
    if (std::sscanf(name.c_str(), "step-%18" SCNd64, &step) == 1 && name == stem_of(step) + ".json")
      steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

// Throws json::exception or EnvironmentError where there is none that can be read.
ordered_json read_manifest(const std::string& checkpoint) {
  return ordered_json::parse(read_file_whole(manifest_path(checkpoint)));
}

std::string wrong_with_manifest(const ordered_json& manifest, const std::string& checkpoint) {
  if (manifest.at("format") != kCheckpointFormat) return "its manifest is of another format";
  if (manifest.at("version") != kCheckpointVersion)
    return fmt::format("its format has version {}, this program reads version {}", manifest.at("version").dump(),
                       kCheckpointVersion);
  const std::string stem = fs::path(checkpoint).stem().string();
  if (stem.starts_with("step-") && stem != stem_of(manifest.at("step").get<std::int64_t>()))
    return fmt::format("its manifest is of step {}", manifest.at("step").dump());
  std::error_code error;
  const std::uintmax_t size = fs::file_size(checkpoint, error);
  if (error) return "the file cannot be read: " + error.message();
  const auto expected = manifest.at("file").at("bytes").get<std::uint64_t>();
  if (size != expected) return fmt::format("the file has {} bytes, its manifest {}", size, expected);
  return {};
}

std::string wrong_with_datasets(const ordered_json& manifest, const std::string& checkpoint) {
  const h5::Reader reader(checkpoint);
  std::vector<std::byte> bytes;
  for (const auto& entry : manifest.at("datasets")) {
    const std::string name = entry.at("name");
    const h5::DatasetInfo info = reader.info(name);
    const std::size_t size = static_cast<std::size_t>(info.shape.elems()) * size_of(info.dtype);
    if (size != entry.at("bytes").get<std::size_t>())
      return fmt::format("'{}' does not have the size of the manifest", name);
    bytes.resize(size);
    reader.read_all(name, bytes.data(), info.dtype);
    if (hex64(checksum64(bytes.data(), size)) != entry.at("checksum64").get<std::string>())
      return fmt::format("'{}' does not have the checksum of the manifest", name);
  }
  return {};
}

// Manifest and size alone.
bool looks_good(const std::string& checkpoint) {
  try {
    return wrong_with_manifest(read_manifest(checkpoint), checkpoint).empty();
  } catch (const nlohmann::json::exception&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  return fmt::format("{}/{}.h5", folder, stem_of(step));
}

std::string manifest_path(const std::string& checkpoint) {
  return fs::path(checkpoint).replace_extension(".json").string();
}

void write_manifest(const std::string& checkpoint, std::int64_t step, const ordered_json& datasets) {
  const FileSum sum = checksum_of_file(checkpoint);
  const ordered_json manifest = {{"format", kCheckpointFormat},
                                 {"version", kCheckpointVersion},
                                 {"step", step},
                                 {"file", {{"bytes", sum.bytes}, {"checksum64", hex64(sum.checksum)}}},
                                 {"datasets", datasets}};
  write_file_whole(manifest_path(checkpoint), manifest.dump(1) + "\n");
}

void set_latest(const std::string& folder, std::int64_t step) {
  write_file_whole(folder + "/latest", stem_of(step) + "\n");
}

std::string damage_of(const std::string& checkpoint) {
  std::error_code error;
  if (!fs::exists(manifest_path(checkpoint), error))
    return fmt::format("its manifest {} is missing", fs::path(manifest_path(checkpoint)).filename().string());
  try {
    const ordered_json manifest = read_manifest(checkpoint);
    if (const std::string wrong = wrong_with_manifest(manifest, checkpoint); !wrong.empty()) return wrong;
    if (hex64(checksum_of_file(checkpoint).checksum) != manifest.at("file").at("checksum64").get<std::string>())
      return "the file does not have the checksum of its manifest";
    return wrong_with_datasets(manifest, checkpoint);
  } catch (const nlohmann::json::exception&) {
    return "its manifest cannot be read";
  } catch (const Error& wrong) {
    return wrong.what();
  }
}

void require_good(const std::string& checkpoint) {
  if (const std::string wrong = damage_of(checkpoint); !wrong.empty())
    throw DataError(fmt::format("checkpoint {} is damaged: {}", checkpoint, wrong));
}

std::optional<CheckpointInfo> find_checkpoint(const std::string& folder, std::vector<std::int64_t>* passed_over) {
  for (const std::int64_t step : steps_in(folder)) {
    const std::string path = checkpoint_path(folder, step);
    const std::string wrong = damage_of(path);
    if (wrong.empty()) return CheckpointInfo{path, step};
    log_warning("checkpoint {}/{} is damaged and passed over: {}", folder, stem_of(step), wrong);
    if (passed_over) passed_over->push_back(step);
  }
  return {};
}

std::optional<CheckpointInfo> glance_at_newest(const std::string& folder) {
  for (const std::int64_t step : steps_in(folder))
    if (const std::string path = checkpoint_path(folder, step); looks_good(path)) return CheckpointInfo{path, step};
  return {};
}

void set_damaged_aside(const std::string& folder, const std::vector<std::int64_t>& steps, const std::string& to,
                       const std::optional<CheckpointInfo>& good) {
  if (steps.empty()) return;
  make_folders(to);
  for (const std::int64_t step : steps) {
    const std::string path = checkpoint_path(folder, step);
    for (const std::string& from : {manifest_path(path), path}) {  // the manifest first: then the rest does not count
      std::error_code error;
      fs::rename(from, to / fs::path(from).filename(), error);
      if (error && error != std::errc::no_such_file_or_directory)
        throw EnvironmentError(fmt::format("{}: cannot be set aside in {}: {}", from, to, error.message()));
    }
  }
  std::error_code ignored;
  if (good)
    set_latest(folder, good->step);
  else
    fs::remove(folder + "/latest", ignored);
}

void prune_checkpoints(const std::string& folder, std::int64_t keep) {
  std::vector<std::string> kept = {"latest"};
  std::int64_t good = 0;
  for (const std::int64_t step : steps_in(folder)) {
    if (good == keep) break;
    if (!looks_good(checkpoint_path(folder, step))) continue;
    ++good;
    for (const char* extension : {".h5", ".json"}) kept.push_back(stem_of(step) + extension);
  }
  std::vector<fs::path> gone;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = name.starts_with("step-") || name.starts_with("latest");
    if (ours && std::find(kept.begin(), kept.end(), name) == kept.end()) gone.push_back(entry->path());
  }
  // Manifests first: a file without one does not count, whatever happens in between.
  std::stable_partition(gone.begin(), gone.end(), [](const fs::path& p) { return p.extension() == ".json"; });
  for (const fs::path& path : gone) fs::remove(path, error);
}

}  // namespace echelon::inline checkpoint

// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "checkpoint/manifest.hpp"

namespace echelon::inline checkpoint {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr std::string_view kPart = ".part-";

std::string stem_of(std::int64_t step) { return fmt::format("step-{:08}", step); }

// Returns the steps of the checkpoints that have a manifest, newest first.
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

// Throws json::exception or EnvironmentError if there is no readable manifest.
ordered_json read_manifest(const std::string& checkpoint) {
  return ordered_json::parse(read_file_whole(manifest_path(checkpoint)));
}

const ordered_json& parts_in(const ordered_json& manifest) {
  static const ordered_json none = ordered_json::array();
  return manifest.at("version") == kPartsVersion ? manifest.at("parts") : none;
}

// A file is always in the folder of its checkpoint, whatever a damaged manifest says.
std::string file_of(const ordered_json& part, const std::string& checkpoint) {
  const fs::path name = fs::path(part.at("file").at("name").get<std::string>()).filename();
  return fs::path(checkpoint).replace_filename(name).string();
}

// Returns the first non-empty differs(file, its manifest), after the name of the file if it is a part.
template <class Differs>
std::string for_each_file(const ordered_json& manifest, const std::string& checkpoint, const Differs& differs) {
  if (std::string wrong = differs(checkpoint, manifest); !wrong.empty()) return wrong;
  for (const ordered_json& part : parts_in(manifest)) {
    const std::string file = file_of(part, checkpoint);
    if (const std::string wrong = differs(file, part); !wrong.empty())
      return fmt::format("{}: {}", fs::path(file).filename().string(), wrong);
  }
  return {};
}

// Checks manifest and sizes.
std::string wrong_with_manifest(const ordered_json& manifest, const std::string& checkpoint) {
  if (manifest.at("format") != kCheckpointFormat) return "its manifest has a different format";
  if (const auto& version = manifest.at("version");
      version != kCheckpointVersion && version != kWholeSumVersion && version != kPartsVersion)
    return fmt::format("its format has version {}, this program reads versions {} to {}", version.dump(),
                       kWholeSumVersion, kPartsVersion);
  const std::string stem = fs::path(checkpoint).stem().string();
  if (stem.starts_with("step-") && stem != stem_of(manifest.at("step").get<std::int64_t>()))
    return fmt::format("its manifest belongs to step {}", manifest.at("step").dump());
  return for_each_file(manifest, checkpoint, difference_in_size);
}

// Path of a manifest that waits to take the place of another.
std::string next_manifest_path(const std::string& checkpoint) {
  return fs::path(checkpoint).replace_extension(".next.json").string();
}

// Returns "" if it cannot be read.
std::string text_of(const std::string& manifest) {
  try {
    return read_file_whole(manifest);
  } catch (const Error&) {
    return {};
  }
}

// Like damage_of, but with this text as the manifest.
std::string damage_under(const std::string& text, const std::string& checkpoint) {
  try {
    const ordered_json manifest = ordered_json::parse(text);
    if (const std::string wrong = wrong_with_manifest(manifest, checkpoint); !wrong.empty()) return wrong;
    return for_each_file(manifest, checkpoint,
                         [](const std::string& file, const ordered_json& of) { return difference(file, of); });
  } catch (const nlohmann::json::exception&) {
    return "its manifest cannot be read";
  } catch (const std::logic_error&) {  // a checksum that is not a number
    return "its manifest cannot be read";
  } catch (const Error& wrong) {
    return wrong.what();
  }
}

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

std::string part_path(const std::string& folder, std::int64_t step, int part, bool again) {
  return fmt::format("{}/{}{}{:04}{}.h5", folder, stem_of(step), kPart, part, again ? ".again" : "");
}

bool is_part(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.starts_with("step-") && name.find(kPart) != std::string::npos && name.ends_with(".h5");
}

std::vector<std::string> files_of(const std::string& checkpoint) {
  const ordered_json manifest = read_manifest(checkpoint);
  std::vector<std::string> files = {checkpoint};
  for (const ordered_json& part : parts_in(manifest)) files.push_back(file_of(part, checkpoint));
  return files;
}

void publish_counted(const std::string& checkpoint, const ordered_json& manifest,
                     const std::function<void()>& publish) {
  const std::string place = manifest_path(checkpoint), next = next_manifest_path(checkpoint);
  const std::string text = manifest.dump(1) + "\n";
  std::error_code ignored;
  if (fs::is_regular_file(place, ignored)) {
    write_file_whole(next, text);
    try {
      publish();
    } catch (...) {
      fs::remove(next, ignored);
      throw;
    }
    publish_file(next, place);
    return;
  }
  publish();
  try {
    write_file_whole(place, text);
  } catch (...) {  // the folder may contain the manifest already, unsynced
    fs::remove(place, ignored);
    fs::remove(checkpoint, ignored);
    throw;
  }
}

void settle_manifests(const std::string& folder) {
  for (const std::int64_t step : steps_in(folder)) {
    const std::string path = checkpoint_path(folder, step), next = next_manifest_path(path);
    std::error_code ignored;
    if (!fs::exists(next, ignored)) continue;
    if (damage_under(text_of(manifest_path(path)), path).empty() || !damage_under(text_of(next), path).empty())
      fs::remove(next, ignored);
    else
      publish_file(next, manifest_path(path));
  }
}

void set_latest(const std::string& folder, std::int64_t step) {
  write_file_whole(folder + "/latest", stem_of(step) + "\n");
}

void set_best(const std::string& folder, std::optional<std::int64_t> step) {
  std::error_code ignored;
  if (step)
    write_file_whole(folder + "/best", stem_of(*step) + "\n");
  else
    fs::remove(folder + "/best", ignored);
}

std::string damage_of(const std::string& checkpoint) {
  std::error_code error;
  const std::string place = manifest_path(checkpoint);
  if (!fs::exists(place, error)) return fmt::format("its manifest {} is missing", fs::path(place).filename().string());
  const std::string text = text_of(place), wrong = damage_under(text, checkpoint);
  if (wrong.empty()) return wrong;
  // Another manifest may have taken its place meanwhile, or be waiting for it.
  for (const std::string& path : {next_manifest_path(checkpoint), place})
    if (const std::string other = text_of(path);
        !other.empty() && other != text && damage_under(other, checkpoint).empty())
      return {};
  return wrong;
}

void require_good(const std::string& checkpoint) {
  if (const std::string wrong = damage_of(checkpoint); !wrong.empty())
    throw DataError(fmt::format("checkpoint {} is damaged: {}", checkpoint, wrong));
}

std::optional<CheckpointInfo> find_checkpoint(const std::string& folder, std::vector<DamagedCheckpoint>* passed_over) {
  for (const std::int64_t step : steps_in(folder)) {
    const std::string path = checkpoint_path(folder, step);
    const std::string wrong = damage_of(path);
    if (wrong.empty()) return CheckpointInfo{path, step};
    log_warning("checkpoint {}/{} is damaged and was skipped: {}", folder, stem_of(step), wrong);
    if (passed_over) passed_over->push_back({step, fmt::format("{}: {}", stem_of(step), wrong)});
  }
  return {};
}

std::optional<CheckpointInfo> glance_at_newest(const std::string& folder) {
  for (const std::int64_t step : steps_in(folder))
    if (const std::string path = checkpoint_path(folder, step); looks_good(path)) return CheckpointInfo{path, step};
  return {};
}

void set_damaged_aside(const std::string& folder, const std::vector<DamagedCheckpoint>& damaged, const std::string& to,
                       const CheckpointInfo& good) {
  if (damaged.empty()) return;
  make_folders(to);
  std::error_code ignored;
  for (const DamagedCheckpoint& one : damaged) {
    const std::string path = checkpoint_path(folder, one.step);
    std::vector<std::string> files = {manifest_path(path), path};  // the manifest first; then the rest does not count
    for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
      const std::string file = entry->path().string();
      if (is_part(file) && entry->path().filename().string().starts_with(stem_of(one.step) + "."))
        files.push_back(file);
    }
    for (const std::string& from : files) {
      std::error_code error;
      fs::rename(from, to / fs::path(from).filename(), error);
      if (error && error != std::errc::no_such_file_or_directory)
        throw EnvironmentError(fmt::format("{}: cannot be moved to {}: {}", from, to, error.message()));
    }
  }
  set_latest(folder, good.step);
}

void prune_checkpoints(const std::string& folder, std::int64_t keep, std::int64_t best) {
  std::vector<std::string> kept = {"latest", "best"};
  std::int64_t good = 0;
  for (const std::int64_t step : steps_in(folder)) {
    if (good == keep && step != best) continue;
    const std::string path = checkpoint_path(folder, step);
    if (!looks_good(path)) continue;
    good += good < keep ? 1 : 0;
    kept.push_back(stem_of(step) + ".json");
    for (const std::string& file : files_of(path)) kept.push_back(fs::path(file).filename().string());
  }
  std::vector<fs::path> gone;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = name.starts_with("step-") || name.starts_with("latest") || name.starts_with("best");
    if (ours && std::find(kept.begin(), kept.end(), name) == kept.end()) gone.push_back(entry->path());
  }
  // Manifests first: a file without one does not count, even if the process is killed in between.
  std::stable_partition(gone.begin(), gone.end(), [](const fs::path& p) { return p.extension() == ".json"; });
  for (const fs::path& path : gone) fs::remove(path, error);
}

}  // namespace echelon::inline checkpoint

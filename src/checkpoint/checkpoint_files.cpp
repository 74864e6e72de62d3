#include "checkpoint/checkpoint_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace echelon::inline checkpoint {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kWholeSumVersion = 2;

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
  if (const auto& version = manifest.at("version"); version != kCheckpointVersion && version != kWholeSumVersion)
    return fmt::format("its format has version {}, this program reads versions {} and {}", version.dump(),
                       kWholeSumVersion, kCheckpointVersion);
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

// In the order of the file.
std::vector<SavedValues> values_in(const ordered_json& manifest) {
  std::vector<SavedValues> values;
  for (const auto& entry : manifest.at("datasets")) {
    SavedValues& saved = values.emplace_back();
    entry.at("name").get_to(saved.name);
    entry.at("offset").get_to(saved.offset);
    entry.at("bytes").get_to(saved.bytes);
    saved.checksum = std::stoull(entry.at("checksum64").get<std::string>(), nullptr, 16);
  }
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return values;
}

struct Sums {
  std::vector<std::uint64_t> of_values;
  std::uint64_t of_structure = 0;  // of all that is no value
};

// One pass over the file; `values` in its order.
Sums sums_of(SummedFile& file, const std::vector<SavedValues>& values, bool structure_alone) {
  Sums sums;
  std::uint64_t at = 0;
  for (const SavedValues& saved : values) {
    if (saved.offset < at || saved.offset > file.bytes() || saved.bytes > file.bytes() - saved.offset)
      throw DataError(fmt::format("its manifest has no possible place for '{}'", saved.name));
    sums.of_structure = file.checksum(at, saved.offset - at, sums.of_structure);
    if (!structure_alone) sums.of_values.push_back(file.checksum(saved.offset, saved.bytes));
    at = saved.offset + saved.bytes;
  }
  sums.of_structure = file.checksum(at, file.bytes() - at, sums.of_structure);
  return sums;
}

std::string quoted(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i)
    text += fmt::format("{}'{}'", i ? ", " : "", names[i]);
  return names.size() > kNamed ? fmt::format("{} and {} more", text, names.size() - kNamed) : text;
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

ordered_json manifest_of(const std::string& file, std::int64_t step, const std::vector<SavedValues>& values) {
  std::vector<SavedValues> ordered = values;
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  SummedFile summed(file);
  const Sums sums = sums_of(summed, ordered, true);
  ordered_json datasets = ordered_json::array();
  for (const SavedValues& saved : values)
    datasets.push_back({{"name", saved.name},
                        {"dtype", saved.dtype},
                        {"bytes", saved.bytes},
                        {"offset", saved.offset},
                        {"checksum64", hex64(saved.checksum)}});
  return {{"format", kCheckpointFormat},
          {"version", kCheckpointVersion},
          {"step", step},
          {"file", {{"bytes", summed.bytes()}}},
          {"structure", {{"checksum64", hex64(sums.of_structure)}}},
          {"datasets", datasets}};
}

std::string difference(const std::string& path, const ordered_json& manifest, bool from_disk) {
  SummedFile file(path);
  if (from_disk) file.forget_cached();
  if (manifest.at("version") == kWholeSumVersion)
    return hex64(file.checksum(0, file.bytes())) == manifest.at("file").at("checksum64").get<std::string>()
               ? ""
               : "the file does not have the checksum of its manifest";
  const std::vector<SavedValues> values = values_in(manifest);
  const Sums sums = sums_of(file, values, false);
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (sums.of_values[i] != values[i].checksum) wrong.push_back(values[i].name);
  if (!wrong.empty())
    return fmt::format("{} {} the checksum of the manifest", quoted(wrong),
                       wrong.size() == 1 ? "does not have" : "do not have");
  if (hex64(sums.of_structure) != manifest.at("structure").at("checksum64").get<std::string>())
    return "the structure of the file does not have the checksum of its manifest";
  return {};
}

void write_manifest(const std::string& checkpoint, const ordered_json& manifest) {
  write_file_whole(manifest_path(checkpoint), manifest.dump(1) + "\n");
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
  if (!fs::exists(manifest_path(checkpoint), error))
    return fmt::format("its manifest {} is missing", fs::path(manifest_path(checkpoint)).filename().string());
  try {
    const ordered_json manifest = read_manifest(checkpoint);
    if (const std::string wrong = wrong_with_manifest(manifest, checkpoint); !wrong.empty()) return wrong;
    return difference(checkpoint, manifest);
  } catch (const nlohmann::json::exception&) {
    return "its manifest cannot be read";
  } catch (const std::logic_error&) {  // a checksum that is no number
    return "its manifest cannot be read";
  } catch (const Error& wrong) {
    return wrong.what();
  }
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
    log_warning("checkpoint {}/{} is damaged and passed over: {}", folder, stem_of(step), wrong);
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
  for (const DamagedCheckpoint& one : damaged) {
    const std::string path = checkpoint_path(folder, one.step);
    for (const std::string& from : {manifest_path(path), path}) {  // the manifest first: then the rest does not count
      std::error_code error;
      fs::rename(from, to / fs::path(from).filename(), error);
      if (error && error != std::errc::no_such_file_or_directory)
        throw EnvironmentError(fmt::format("{}: cannot be set aside in {}: {}", from, to, error.message()));
    }
  }
  set_latest(folder, good.step);
}

void prune_checkpoints(const std::string& folder, std::int64_t keep, std::int64_t best) {
  std::vector<std::string> kept = {"latest", "best"};
  std::int64_t good = 0;
  for (const std::int64_t step : steps_in(folder)) {
    if (good == keep && step != best) continue;
    if (!looks_good(checkpoint_path(folder, step))) continue;
    good += good < keep ? 1 : 0;
    for (const char* extension : {".h5", ".json"}) kept.push_back(stem_of(step) + extension);
  }
  std::vector<fs::path> gone;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = name.starts_with("step-") || name.starts_with("latest") || name.starts_with("best");
    if (ours && std::find(kept.begin(), kept.end(), name) == kept.end()) gone.push_back(entry->path());
  }
  // Manifests first: a file without one does not count, whatever happens in between.
  std::stable_partition(gone.begin(), gone.end(), [](const fs::path& p) { return p.extension() == ".json"; });
  for (const fs::path& path : gone) fs::remove(path, error);
}

}  // namespace echelon::inline checkpoint

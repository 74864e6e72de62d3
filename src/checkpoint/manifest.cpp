// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace echelon::inline checkpoint {
namespace {

using nlohmann::ordered_json;

// Returns the values in the order of the file.
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
  std::uint64_t of_structure = 0;  // checksum of all bytes outside of values
};

// Sums the file in one pass; `values` must be in its order.
Sums sums_of(SummedFile& file, const std::vector<SavedValues>& values, bool structure_alone) {
  Sums sums;
  std::uint64_t at = 0;
  for (const SavedValues& saved : values) {
    if (saved.offset < at || saved.offset > file.bytes() || saved.bytes > file.bytes() - saved.offset)
      throw DataError(fmt::format("its manifest gives an impossible position for '{}'", saved.name));
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

ordered_json to_json(const SavedValues& saved) {
  return {{"name", saved.name},
          {"dtype", saved.dtype},
          {"bytes", saved.bytes},
          {"offset", saved.offset},
          {"checksum64", hex64(saved.checksum)}};
}

std::vector<std::int64_t> extents_of(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

ordered_json box_to_json(const SavedValues& saved) {
  ordered_json json = to_json(saved);
  json["shape"] = extents_of(saved.region.shape);
  json["begins"] = extents_of(saved.region.offset);
  json["of"] = extents_of(saved.region.whole);
  if (saved.folded >= 0) json["folded"] = saved.folded;
  return json;
}

Shape shape_in(const ordered_json& json) {
  const auto extents = json.get<std::vector<std::int64_t>>();
  return Shape(std::span<const std::int64_t>(extents));
}

// Returns "file", "structure" and "datasets".
ordered_json contents_of(const std::string& file, const std::vector<SavedValues>& values,
                         ordered_json (*write)(const SavedValues&)) {
  std::vector<SavedValues> ordered = values;
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  SummedFile summed(file);
  const Sums sums = sums_of(summed, ordered, true);
  ordered_json datasets = ordered_json::array();
  for (const SavedValues& saved : values) datasets.push_back(write(saved));
  return {{"file", {{"bytes", summed.bytes()}}},
          {"structure", {{"checksum64", hex64(sums.of_structure)}}},
          {"datasets", datasets}};
}

}  // namespace

ordered_json manifest_of(const std::string& file, std::int64_t step, const std::vector<SavedValues>& values) {
  ordered_json manifest = {{"format", kCheckpointFormat}, {"version", kCheckpointVersion}, {"step", step}};
  manifest.update(contents_of(file, values, to_json));
  return manifest;
}

ordered_json part_manifest_of(const std::string& file, const std::string& name,
                              const std::vector<SavedValues>& values) {
  ordered_json part = contents_of(file, values, box_to_json);
  part["file"]["name"] = name;
  return part;
}

std::vector<SavedValues> boxes_in(const ordered_json& part) {
  std::vector<SavedValues> boxes;
  for (const auto& entry : part.at("datasets")) {
    SavedValues& box = boxes.emplace_back();
    entry.at("name").get_to(box.name);
    entry.at("dtype").get_to(box.dtype);
    box.region = {shape_in(entry.at("shape")), shape_in(entry.at("of")), shape_in(entry.at("begins"))};
    box.folded = entry.value("folded", -1);
  }
  return boxes;
}

std::string difference(const std::string& path, const ordered_json& manifest, bool from_disk) {
  SummedFile file(path);
  if (from_disk) file.forget_cached();
  if (manifest.value("version", kCheckpointVersion) == kWholeSumVersion)
    return hex64(file.checksum(0, file.bytes())) == manifest.at("file").at("checksum64").get<std::string>()
               ? ""
               : "the file does not match the checksum in its manifest";
  const std::vector<SavedValues> values = values_in(manifest);
  const Sums sums = sums_of(file, values, false);
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (sums.of_values[i] != values[i].checksum) wrong.push_back(values[i].name);
  if (!wrong.empty())
    return fmt::format("{} {} the checksum in the manifest", quoted(wrong),
                       wrong.size() == 1 ? "does not match" : "do not match");
  if (hex64(sums.of_structure) != manifest.at("structure").at("checksum64").get<std::string>())
    return "the structure of the file does not match the checksum in its manifest";
  return {};
}

std::string difference_in_size(const std::string& path, const ordered_json& manifest) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return "the file cannot be read: " + error.message();
  const auto expected = manifest.at("file").at("bytes").get<std::uint64_t>();
  return size == expected ? "" : fmt::format("the file has {} bytes, its manifest says {}", size, expected);
}

}  // namespace echelon::inline checkpoint

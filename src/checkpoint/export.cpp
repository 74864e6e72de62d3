// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/export.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "checkpoint/onnx/model.hpp"
#include "checkpoint/quantise.hpp"
#include "checkpoint/trained_data.hpp"
#include "config/parse.hpp"
#include "h5/file.hpp"

namespace echelon::inline checkpoint {
namespace {

using nlohmann::ordered_json;
constexpr std::string_view kWeights = "weights/";

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::f64: return "F64";
    case DType::i32: return "I32";
    case DType::u8: return "U8";
    default: return "F32";
  }
}

std::vector<std::pair<std::string, std::string>> metadata_of(const SavedModel& saved) {
  return {{"echelon_version", kVersion},
          {"step", std::to_string(saved.step)},
          {"config", echo_config(saved.config)},
          {"training_data", to_text(trained_data_in(saved.checkpoint))}};
}

std::vector<float> read_values(const h5::Reader& reader, const std::string& dataset, std::int64_t elems) {
  std::vector<float> values(static_cast<std::size_t>(elems));
  reader.read_all(dataset, values.data(), DType::f32);
  return values;
}

// A tensor of a safetensors file: a dataset of the checkpoint unchanged, or one of the two parts of its 8-bit form.
struct Entry {
  enum class Part : std::uint8_t { whole, scales, int8 };
  h5::DatasetInfo from;
  Part part = Part::whole;

  std::string name() const { return from.name.substr(kWeights.size()) + (part == Part::scales ? ".scale" : ""); }
  const char* type() const { return part == Part::whole ? type_name(from.dtype) : part == Part::scales ? "F32" : "I8"; }
  Shape shape() const { return part == Part::scales ? Shape{from.shape[0]} : from.shape; }
  std::size_t bytes() const {
    const std::size_t each = part == Part::whole ? size_of(from.dtype) : part == Part::scales ? sizeof(float) : 1;
    return static_cast<std::size_t>(shape().elems()) * each;
  }
  void read(const h5::Reader& reader, char* to) const {
    const std::string values = values_of(reader, from.name.substr(kWeights.size()));
    if (part == Part::whole) return reader.read_all(values, to, from.dtype);
    const QuantisedRows rows = quantise_rows(read_values(reader, values, from.shape.elems()), from.shape[0]);
    if (part == Part::scales)
      std::memcpy(to, rows.scales.data(), bytes());
    else
      std::memcpy(to, rows.values.data(), bytes());
  }
};

// 8-bit tensors come last, so that the others are aligned to their element size.
std::vector<Entry> entries_of(const h5::Reader& reader, const std::vector<std::string>& matrices) {
  std::vector<Entry> entries, last;
  for (const h5::DatasetInfo& info : reader.datasets()) {
    if (!info.name.starts_with(kWeights)) continue;
    const bool matrix =
        std::find(matrices.begin(), matrices.end(), info.name.substr(kWeights.size())) != matrices.end();
    entries.push_back({info, matrix ? Entry::Part::scales : Entry::Part::whole});
    if (matrix) last.push_back({info, Entry::Part::int8});
  }
  if (entries.empty()) throw DataError(reader.path() + ": holds no weights");
  entries.insert(entries.end(), last.begin(), last.end());
  return entries;
}

}  // namespace

Exported export_safetensors(const SavedModel& saved, const std::string& path, bool int8) {
  const h5::Reader reader(saved.checkpoint);
  const std::vector<Entry> entries =
      entries_of(reader, int8 ? matrices_of(trained_graph(saved)) : std::vector<std::string>{});
  ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  for (const auto& [key, value] : metadata_of(saved)) header["__metadata__"][key] = value;
  std::size_t end = 0;
  for (const Entry& entry : entries) {
    const Shape shape = entry.shape();
    header[entry.name()] = {{"dtype", entry.type()},
                            {"shape", std::vector<std::int64_t>(shape.extents().begin(), shape.extents().end())},
                            {"data_offsets", {end, end + entry.bytes()}}};
    end += entry.bytes();
  }

  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // values must begin at a multiple of 8
  const std::uint64_t length = text.size();
  std::string file(sizeof length + text.size() + end, '\0');
  std::memcpy(file.data(), &length, sizeof length);  // little-endian on every supported machine
  std::memcpy(file.data() + sizeof length, text.data(), text.size());
  char* at = file.data() + sizeof length + text.size();
  for (const Entry& entry : entries) {
    entry.read(reader, at);
    at += entry.bytes();
  }
  write_file_whole(path, file);
  return {static_cast<std::int64_t>(entries.size()), file.size()};
}

Exported export_onnx(const SavedModel& saved, const std::string& path, bool int8) {
  const h5::Reader reader(saved.checkpoint);
  const TrainedData data = trained_data_in(saved.checkpoint);
  const auto read = [&](const Parameter& parameter) {
    return read_values(reader, values_of(reader, parameter.name), parameter.elems());
  };
  const Graph graph = trained_graph(saved);
  onnx::File model =
      onnx::make_file(graph, read, {.normalisation = {.mean = data.mean, .std = data.std}, .int8 = int8});
  model.metadata = metadata_of(saved);
  const std::string file = onnx::serialise(std::move(model));
  write_file_whole(path, file);
  return {static_cast<std::int64_t>(graph.parameters().with_frozen().size()), file.size()};
}

}  // namespace echelon::inline checkpoint

#include "checkpoint/export.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
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

}  // namespace

Exported export_safetensors(const SavedModel& saved, const std::string& path) {
  const h5::Reader reader(saved.checkpoint);
  ordered_json header;
  header["__metadata__"] = {{"format", "pt"},
                            {"echelon_version", kVersion},
                            {"step", std::to_string(saved.step)},
                            {"config", echo_config(saved.config)},
                            {"training_data", to_text(trained_data_in(saved.checkpoint))}};
  std::vector<h5::DatasetInfo> weights;
  std::size_t end = 0;
  for (const h5::DatasetInfo& info : reader.datasets()) {
    if (!info.name.starts_with(kWeights)) continue;
    const std::size_t bytes = static_cast<std::size_t>(info.shape.elems()) * size_of(info.dtype);
    header[info.name.substr(kWeights.size())] = {
        {"dtype", type_name(info.dtype)},
        {"shape", std::vector<std::int64_t>(info.shape.extents().begin(), info.shape.extents().end())},
        {"data_offsets", {end, end + bytes}}};
    end += bytes;
    weights.push_back(info);
  }
  if (weights.empty()) throw DataError(saved.checkpoint + ": holds no weights");

  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the values begin at a multiple of 8
  const std::uint64_t length = text.size();
  std::string file(sizeof length + text.size() + end, '\0');
  std::memcpy(file.data(), &length, sizeof length);  // little-endian, as every machine that this program runs on
  std::memcpy(file.data() + sizeof length, text.data(), text.size());
  char* at = file.data() + sizeof length + text.size();
  for (const h5::DatasetInfo& info : weights) {
    reader.read_all(info.name, at, info.dtype);
    at += static_cast<std::size_t>(info.shape.elems()) * size_of(info.dtype);
  }
  write_file_whole(path, file);
  return {static_cast<std::int64_t>(weights.size()), file.size()};
}

}  // namespace echelon::inline checkpoint

// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

namespace echelon::inline checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";
constexpr int kMostNested = 127;  // the limit of the format's own library

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

const std::map<std::string, int> kBits = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};

std::vector<std::uint64_t> counts(const json& list, const std::string& name, const char* key) {
  std::vector<std::uint64_t> values;
  if (!list.is_array()) refuse(fmt::format("'{}': its {} is not a list", name, key));
  for (const json& value : list) {
    if (!value.is_number_unsigned()) refuse(fmt::format("'{}': its {} is not a list of counts", name, key));
    values.push_back(value.get<std::uint64_t>());
  }
  return values;
}

SafeTensor tensor_of(const std::string& name, const json& entry) {
  static constexpr const char* kKeys[] = {"dtype", "shape", "data_offsets"};
  const json* found[3];
  if (!entry.is_object() && !(entry.is_array() && entry.size() == 3)) refuse(fmt::format("'{}' is not a tensor", name));
  for (std::size_t i = 0; i < 3; ++i) {
    if (entry.is_object() && !entry.contains(kKeys[i])) refuse(fmt::format("'{}' has no {}", name, kKeys[i]));
    found[i] = entry.is_object() ? &entry[kKeys[i]] : &entry[i];
  }
  if (!found[0]->is_string()) refuse(fmt::format("'{}': its dtype is not text", name));
  SafeTensor tensor{.name = name, .dtype = found[0]->get<std::string>(), .shape = counts(*found[1], name, kKeys[1])};
  if (!kBits.contains(tensor.dtype)) refuse(fmt::format("'{}' has the unknown dtype '{}'", name, tensor.dtype));
  const std::vector<std::uint64_t> offsets = counts(*found[2], name, kKeys[2]);
  if (offsets.size() != 2) refuse(fmt::format("'{}': its data_offsets are not two numbers", name));
  tensor.begin = offsets[0], tensor.end = offsets[1];
  return tensor;
}

// Size of the values of a tensor of this shape.
std::uint64_t bytes_of(const SafeTensor& tensor) {
  std::uint64_t bits = static_cast<std::uint64_t>(kBits.at(tensor.dtype)), elems = 1;
  bool fits = true;
  for (const std::uint64_t extent : tensor.shape) fits = fits && !__builtin_mul_overflow(elems, extent, &elems);
  if (!fits || __builtin_mul_overflow(elems, bits, &bits))
    refuse(fmt::format("'{}' is larger than any file", tensor.name));
  if (bits % 8 != 0) refuse(fmt::format("'{}' ends within a byte", tensor.name));
  return bits / 8;
}

void require_metadata(const json& metadata) {
  bool texts = metadata.is_object();
  for (const json& value : metadata) texts = texts && value.is_string();
  if (!texts && !metadata.is_null()) refuse("its __metadata__ is not an object of texts");
}

// Collects the header while it is parsed. Of two entries with one name the second counts, as in the format's own
// library; a known key must not occur twice in an entry.
class Entries {
 public:
  bool take(int depth, json::parse_event_t event, const json& value) {
    using Event = json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMostNested)
      refuse("its header is nested too deeply");
    if (event == Event::key && depth == 1) begin(value.get_ref<const std::string&>());
    if (event == Event::key && depth == 2) key(value.get_ref<const std::string&>());
    if (depth == 1 && (event == Event::object_end || event == Event::array_end || event == Event::value)) end(value);
    return true;
  }
  std::map<std::string, SafeTensor> tensors;

 private:
  void begin(const std::string& name) {
    name_ = name;
    keys_.clear();
    if (name == kMetadata && std::exchange(metadata_, true)) refuse("__metadata__ occurs twice in its header");
  }
  void key(const std::string& key) {
    const bool read = key == "dtype" || key == "shape" || key == "data_offsets";
    if (read && name_ != kMetadata && !keys_.insert(key).second) refuse(fmt::format("'{}' has '{}' twice", name_, key));
  }
  void end(const json& value) {
    if (name_ == kMetadata)
      require_metadata(value);
    else
      tensors[name_] = tensor_of(name_, value);
  }

  std::string name_;
  std::set<std::string> keys_;
  bool metadata_ = false;
};

}  // namespace

std::vector<SafeTensor> safetensors_header(const std::string& text, std::uint64_t value_bytes) {
  // The parser skips a byte-order mark and stops at a zero byte; neither is valid JSON.
  if (text.empty() || text[0] == '\xef' || text.find('\0') != std::string::npos) refuse("its header is not JSON");
  Entries entries;
  const json header = json::parse(
      text, [&](int depth, json::parse_event_t event, const json& value) { return entries.take(depth, event, value); },
      false);
  if (!header.is_object()) refuse("its header is not a JSON object");
  std::vector<SafeTensor> tensors;
  for (auto& [name, tensor] : entries.tensors) tensors.push_back(std::move(tensor));
  std::sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const SafeTensor& tensor : tensors) {
    const std::uint64_t bytes = bytes_of(tensor);
    if (tensor.begin != covered || tensor.end < tensor.begin)
      refuse(fmt::format("the values of '{}' begin at byte {}, but those before end at {}", tensor.name, tensor.begin,
                         covered));
    if (tensor.end - tensor.begin != bytes)
      refuse(fmt::format("'{}' has {} bytes for its {} of shape ({})", tensor.name, tensor.end - tensor.begin,
                         tensor.dtype, fmt::join(tensor.shape, ", ")));
    covered = tensor.end;
  }
  if (covered != value_bytes)
    refuse(fmt::format("its tensors have {} bytes, but the file has {} after its header", covered, value_bytes));
  return tensors;
}

}  // namespace echelon::inline checkpoint

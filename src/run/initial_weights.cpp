// SPDX-License-Identifier: Apache-2.0
#include "run/initial_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/tensor_region.hpp"
#include "base/text.hpp"
#include "checkpoint/weights_file.hpp"
#include "config/refuse.hpp"

namespace echelon::inline run {
namespace {

constexpr const char* kKey = "model.weights";
constexpr const char* kPartial = "model.weights_partial = true draws what does not fit from the seed";
constexpr std::size_t kMostListed = 12;

using ByName = std::map<std::string, StoredTensor>;

ByName by_name(const WeightsFile& file) {
  ByName all;
  for (const StoredTensor& tensor : file.tensors()) all.emplace(tensor.name, tensor);
  return all;
}

std::string listed(const std::vector<std::string>& names) {
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostListed)));
  const std::size_t more = names.size() - first.size();
  return fmt::format("{}{}", fmt::join(first, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

// Chooses among the names that no parameter has.
std::string nearest_text(const std::string& name, const ByName& there, const ParameterSet& parameters) {
  std::vector<std::string> known;
  for (const auto& [other, tensor] : there) known.push_back(other);
  for (const Parameter& parameter : parameters.with_frozen()) std::erase(known, parameter.name);
  const std::string near = nearest_name(name, known);
  return near.empty() ? "" : fmt::format(" (the nearest is '{}')", near);
}

[[noreturn]] void refuse_weights(const Config& config, const WeightsFile& file, const std::string& why) {
  refuse(config, kKey, fmt::format("{}: {}: {}", kKey, file.path(), why));
}

std::unique_ptr<WeightsFile> open_for(const Config& config) {
  try {
    return open_weights(config.model.weights);
  } catch (const ConfigError& error) {
    refuse(config, kKey, fmt::format("{}: {}", kKey, error.what()));
  }
}

void require_finite(const WeightsFile& file, const StoredTensor& tensor, DType dtype) {
  std::vector<std::byte> all(static_cast<std::size_t>(tensor.shape.elems()) * size_of(dtype));
  file.read(tensor, all.data(), dtype);
  with_float(dtype, [&]<class T>(T) {
    const T* values = reinterpret_cast<const T*>(all.data());
    for (std::int64_t i = 0; i < tensor.shape.elems(); ++i)
      if (!std::isfinite(values[i]))
        throw DataError(fmt::format("{}: {}: value {} of '{}' is {:g}; weights are finite numbers of {}", kKey,
                                    file.path(), i, tensor.name, values[i], name_of(dtype)));
  });
}

// Reads a tensor of the file into each tensor that it is shown, if name and whole shape agree.
class Filler final : public StateVisitor {
 public:
  explicit Filler(const WeightsFile& file) : file_(file), there_(by_name(file)) {}
  bool loading() const override { return true; }
  void tensor(const StateTensor& t) override {
    const std::string name(t.name.substr(t.name.find('/') + 1));
    const auto found = there_.find(name);
    const bool whole = t.placement == Placement::replicated;
    if (found == there_.end() || found->second.shape != (whole ? t.shape : t.global_shape.folded(t.folded))) return;
    if (whole) return file_.read(found->second, t.data, t.dtype);
    std::vector<std::byte> all(static_cast<std::size_t>(t.global_shape.elems()) * size_of(t.dtype));
    file_.read(found->second, all.data(), t.dtype);
    copy_from_whole({t.shape, t.global_shape, t.offset}, size_of(t.dtype), all.data(), t.data);
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}

 private:
  const WeightsFile& file_;
  ByName there_;
};

}  // namespace

std::string InitialWeights::text() const {
  std::string text = fmt::format("{} of {}", counted(static_cast<std::int64_t>(loaded.size()), "tensor"), path);
  if (!missing.empty()) text += "; drawn because the file does not have them: " + listed(missing);
  if (!misshapen.empty()) text += "; drawn because the file has another shape: " + listed(misshapen);
  if (!left.empty()) text += "; not in the model: " + listed(left);
  return text;
}

InitialWeights foresee_weights(const Config& config, const Graph& graph) {
  const std::unique_ptr<WeightsFile> file = open_for(config);
  const ByName there = by_name(*file);
  const bool strict = !config.model.weights_partial;
  InitialWeights found{.path = file->path(), .loaded = {}, .missing = {}, .misshapen = {}, .left = {}};
  for (const Parameter& parameter : graph.parameters().with_frozen()) {
    const auto at = there.find(parameter.name);
    if (at == there.end()) {
      if (strict)
        refuse_weights(config, *file,
                       fmt::format("holds no '{}'{}; {}", parameter.name,
                                   nearest_text(parameter.name, there, graph.parameters()), kPartial));
      found.missing.push_back(parameter.name);
    } else if (at->second.shape != parameter.shape) {
      if (strict)
        refuse_weights(config, *file,
                       fmt::format("its '{}' is {}, but this model needs {}; {}", parameter.name,
                                   at->second.shape.text(), parameter.shape.text(), kPartial));
      found.misshapen.push_back(parameter.name);
    } else {
      found.loaded.push_back(parameter.name);
    }
  }
  for (const auto& [name, tensor] : there)
    if (graph.parameters().find(name) < 0) found.left.push_back(name);
  if (strict && !found.left.empty())
    refuse_weights(config, *file,
                   fmt::format("holds '{}', which this model does not have; model.weights_partial = "
                               "true leaves it out",
                               found.left.front()));
  for (const std::string& name : found.loaded) require_finite(*file, there.at(name), wide_of(config.device.dtype));
  if (found.loaded.empty())
    refuse_weights(config, *file, fmt::format("holds no tensor of this model; it holds {}", listed(found.left)));
  return found;
}

void load_weights(const std::string& path, Arenas& arenas) {
  const std::unique_ptr<WeightsFile> file = open_weights(path);
  Filler filler(*file);
  arenas.visit_state(filler);
}

}  // namespace echelon::inline run

// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/saved_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/trained_data.hpp"
#include "config/parse.hpp"
#include "h5/file.hpp"
#include "job/run_folder.hpp"
#include "model/build.hpp"

namespace echelon::inline checkpoint {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "checkpoints", error);
}

// The run that a folder stands for: itself, the run that contains it, or the only run in it; empty if there is none.
fs::path run_at(const fs::path& folder) {
  const fs::path here = folder.filename().empty() ? folder.parent_path() : folder;
  if (is_run(here)) return here;
  if (is_run(here.parent_path())) return here.parent_path();
  std::vector<std::string> runs;
  std::error_code error;
  for (fs::directory_iterator entry(here, error), end; !error && entry != end; entry.increment(error))
    if (is_run(entry->path())) runs.push_back(entry->path().string());
  if (runs.size() == 1) return runs.front();
  if (runs.empty()) return {};
  throw ConfigError(
      fmt::format("{}: holds {} runs; give one: {}", folder.string(), runs.size(), fmt::join(runs, ", ")));
}

std::string config_file_of(const fs::path& run) {
  const std::vector<std::string> attempts = attempts_of(run.string());
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    std::string file = *attempt + "/config.toml";
    std::error_code error;
    if (fs::exists(file, error)) return file;
  }
  throw ConfigError(fmt::format("{}: no attempt of the run has a config.toml", run.string()));
}

// Whether the checkpoint is of a version whose "lenet" is now called cnn_32_64.
bool holds_cnn_32_64(const std::string& checkpoint) {
  const h5::Reader reader(checkpoint);
  const std::string first = "weights/conv1.weight";
  return reader.has(first) && reader.info(first).shape[0] == 32;
}

constexpr std::string_view kOfWeights = "weights/", kOfAverage = "average/";

// Shows each tensor of weights as that of the average that the checkpoint holds beside it.
class AverageVisitor final : public StateVisitor {
 public:
  AverageVisitor(StateVisitor& inner, std::set<std::string> averaged) : inner_(inner), averaged_(std::move(averaged)) {}
  bool loading() const override { return true; }
  void tensor(const StateTensor& tensor) override {
    StateTensor shown = tensor;
    std::string name(tensor.name);
    if (name.starts_with(kOfWeights)) name.replace(0, kOfWeights.size(), kOfAverage);
    if (averaged_.contains(name)) shown.name = name;
    inner_.tensor(shown);
  }
  void scalar(std::string_view name, std::int64_t& value, Absent absent) override {
    inner_.scalar(name, value, absent);
  }
  void scalar(std::string_view name, double& value, Absent absent) override { inner_.scalar(name, value, absent); }

 private:
  StateVisitor& inner_;
  std::set<std::string> averaged_;
};

std::set<std::string> averages_in(const std::string& checkpoint) {
  const h5::Reader reader(checkpoint);
  std::set<std::string> names;
  for (const h5::DatasetInfo& info : reader.datasets())
    if (info.name.starts_with(kOfAverage)) names.insert(info.name);
  return names;
}

}  // namespace

bool holds_average(const std::string& checkpoint) { return !averages_in(checkpoint).empty(); }

std::string values_of(const h5::Reader& checkpoint, const std::string& parameter) {
  const std::string average = std::string(kOfAverage) + parameter;
  return checkpoint.has(average) ? average : std::string(kOfWeights) + parameter;
}

void load_model(const std::string& checkpoint, const VisitAll& visit) {
  load_checkpoint(checkpoint, [&](StateVisitor& visitor) {
    AverageVisitor averaged(visitor, averages_in(checkpoint));
    visit(averaged);
  });
}

std::string run_in(const std::string& folder) { return run_at(folder).string(); }

SavedCheckpoint find_saved(const std::string& location) {
  const fs::path path(location);
  std::error_code error;
  if ((path.filename() == "best" || path.filename() == "latest") && fs::is_regular_file(path, error)) {
    std::string stem = read_file_whole(location);
    stem.erase(stem.find_last_not_of('\n') + 1);
    return find_saved((path.parent_path() / fs::path(stem + ".h5").filename()).string());
  }
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw ConfigError(fmt::format("{}: does not exist", location));
  if (error) throw EnvironmentError(fmt::format("{}: cannot be read: {}", location, error.message()));
  if (fs::is_directory(status)) {
    const fs::path run = run_at(path);
    if (run.empty())
      throw ConfigError(
          fmt::format("{}: holds no trained model; give the folder of a run (results/NAME/run-HASH) or a "
                      "checkpoint (step-NNNNNNNN.h5)",
                      location));
    std::vector<DamagedCheckpoint> damaged;
    const auto found = find_checkpoint((run / "checkpoints").string(), &damaged);
    if (!found && damaged.empty()) throw ConfigError(fmt::format("{}: holds no checkpoint", run.string()));
    if (!found)
      throw DataError(fmt::format(
          "{}: holds no good checkpoint: {}", run.string(),
          damaged.size() == 1 ? "the only one is damaged" : fmt::format("all {} are damaged", damaged.size())));
    return {found->path, found->step, run.string(), config_file_of(run)};
  }
  const fs::path run = fs::absolute(path).parent_path().parent_path();
  if (!is_run(run))
    throw ConfigError(
        fmt::format("{}: is not in the checkpoints folder of a run, whose config would describe its model", location));
  if (is_part(location))
    throw ConfigError(fmt::format("{}: is one part of a checkpoint; give {}.h5, which stands for all parts", location,
                                  path.stem().stem().string()));
  require_good(location);
  const h5::Reader reader(location);
  const std::int64_t step = reader.has_attribute("step") ? reader.attribute_int("step") : 0;
  return {location, step, run.string(), config_file_of(run)};
}

SavedModel find_model(const std::string& location) {
  const SavedCheckpoint found = find_saved(location);
  SavedModel saved{load_config(found.config_file), found.path, found.step, found.run, found.config_file};
  if (saved.config.model.zoo == "lenet" && holds_cnn_32_64(found.path)) saved.config.model.zoo = "cnn_32_64";
  return saved;
}

// The number of tokens comes from the embedding that reads them, so the graph is built twice if samples are tokens.
Graph trained_graph(const SavedModel& saved) {
  const h5::Reader reader(saved.checkpoint);
  const TrainedData data = read_trained_data(reader.attribute_text("training_data"), saved.checkpoint);
  const bool stream = saved.config.data.order == Order::stream;
  std::int64_t tokens = 1;
  ModelConfig untied = saved.config.model;
  bool tied = false;  // weights of an embedding do not fit before its number of tokens is known
  for (LayerConfig& layer : untied.layers) tied |= !std::exchange(layer.weights_of, {}).empty();
  Graph graph = build_model(untied, trained_form(data, stream, tokens));
  for (const Node& node : graph.nodes())
    if (node.layer->kind() == "embedding" && node.inputs.front() == graph.find("samples"))
      tokens = std::max(tokens, reader.info("weights/" + node.name + ".weight").shape[0]);
  if (tied || tokens > 1) graph = build_model(saved.config.model, trained_form(data, stream, tokens));
  for (const Parameter& parameter : graph.parameters().with_frozen())
    if (const Shape stored = reader.info("weights/" + parameter.name).shape; !(stored == parameter.shape))
      throw DataError(fmt::format("{}: '{}' is {}, but the model of {} has {}", saved.checkpoint, parameter.name,
                                  stored.text(), saved.config_file, parameter.shape.text()));
  return graph;
}

LoadedModel::LoadedModel(const SavedModel& saved, const SampleForm& form, std::unique_ptr<Device> device)
    : graph_(build_model(saved.config.model, form)),
      device_(std::move(device)),
      arenas_(std::make_unique<Arenas>(*device_, graph_.parameters(), wide_of(saved.config.device.dtype))) {
  load_model(saved.checkpoint, [this](StateVisitor& visitor) { arenas_->visit_state(visitor); });
  arenas_->touch();
}

}  // namespace echelon::inline checkpoint

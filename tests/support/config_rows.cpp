// SPDX-License-Identifier: Apache-2.0
#include "tests/support/config_rows.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "comm/host_groups.hpp"
#include "config/check_combinations.hpp"
#include "config/choices.hpp"
#include "config/parse.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/strategies.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/strategy_periods.hpp"
#include "train/run_plan.hpp"

namespace echelon::test {
namespace {

// Returns the names of the choices on an axis (config/choices.hpp), the default first.
std::vector<std::string> axis_of(const std::string& name) {
  std::vector<std::string> all;
  for (const ChoiceAxis& axis : choice_axes())
    for (const Choice& choice : axis.choices)
      if (axis.name == name) all.insert(choice.neutral ? all.begin() : all.end(), choice.name);
  return all;
}

// The values of a row, looked up by the names of the axes.
class Choices {
 public:
  Choices(const std::vector<Axis>& axes, const PairwiseRow& row) : axes_(axes), row_(row) {}
  const std::string& operator[](std::string_view axis) const {
    for (std::size_t a = 0; a < axes_.size(); ++a)
      if (axes_[a].name == axis) return axes_[a].values[row_[a]];
    throw std::logic_error(fmt::format("no axis '{}'", axis));
  }

 private:
  const std::vector<Axis>& axes_;
  const PairwiseRow& row_;
};

// Collects the lines of a TOML file by section.
class Toml {
 public:
  template <class Value>
  void set(const std::string& section, const std::string& key, const Value& value) {
    sections_[section] += fmt::format("{} = {}\n", key, value);
  }
  void text(const std::string& section, const std::string& key, const std::string& value) {
    set(section, key, fmt::format("\"{}\"", value));
  }
  void layer(const std::string& lines) { layers_ += "[[model.layers]]\n" + lines; }
  std::string str() const {
    std::string all = sections_.contains("") ? sections_.at("") : "";
    for (const auto& [name, lines] : sections_)
      if (!name.empty()) all += fmt::format("[{}]\n{}", name, lines);
    return all + layers_;
  }

 private:
  std::map<std::string, std::string> sections_;
  std::string layers_;
};

void put_model(Toml& toml, const Choices& row) {
  const std::string& norm = row["norm"];
  const std::string batch_norm = norm == "none" ? "" : "type = \"batch_norm\"\n";
  if (norm == "synchronised" || norm == "groups") toml.set("model", "synchronised_batch_norm", "true");
  if (norm == "groups") toml.set("model", "batch_norm_group", 1);
  if (norm == "renorm") toml.set("model", "batch_renorm", "true");
  if (row["data"] == "images") {
    for (int i = 0; i < 2; ++i) {
      toml.layer("type = \"conv\"\nchannels = 4\nkernel = [3]\npadding = [1]\n");
      if (!batch_norm.empty()) toml.layer(batch_norm);
      toml.layer("type = \"relu\"\n");
    }
    toml.layer("type = \"flatten\"\n");
    toml.layer("type = \"dense\"\nunits = 5\n");
    return;
  }
  const bool text = row["data"] == "text" || row["data"] == "stream";
  toml.layer(fmt::format("type = \"embedding\"\nunits = 6\nsparse = {}\n", row["embedding"] == "sparse"));
  for (int i = 0; i < 2; ++i)
    toml.layer(fmt::format("type = \"lstm\"\nunits = 6\n{}", row["data"] == "stream" ? "carry = true\n" : ""));
  if (!text) toml.layer("type = \"sequence_pool\"\nmode = \"last\"\n");
  if (!batch_norm.empty()) toml.layer(batch_norm);
  const bool tied = text && row["embedding"] == "tied";
  toml.layer(
      fmt::format("type = \"dense\"\nunits = {}\n{}", text ? 7 : 3, tied ? "weights_of = \"embedding1\"\n" : ""));
}

void put_data(Toml& toml, const Choices& row, const std::string& folder) {
  const std::string& kind = row["data"];
  const std::string set = kind == "stream" ? "text" : kind == "buckets" ? "sequences" : kind;
  toml.text("data", "train", folder + "/" + set + "/train");
  if (row["evaluate"] != "never") toml.text("data", "test", folder + "/" + set + "/test");
  if (set == "text") toml.set("data", "sequence_length", 6);
  if (kind == "stream") toml.text("data", "order", "stream");
  if (kind == "buckets") toml.set("data", "buckets", "[4, 8]");
  if (row["sharding"] == "queue")
    toml.text("data", "balance", "queue");
  else if (row["sharding"] != "auto")
    toml.text("data", "sharding", row["sharding"]);
  if (row["ragged"] != "wrap") toml.text("data", "ragged", row["ragged"]);
}

// Returns the strategy of a row. The choice is a strategy or a key of its table, such as "server.ranks".
std::string strategy_of(const Choices& row) {
  const std::string& chosen = row["strategy"];
  return chosen.substr(0, chosen.find('.'));
}

void put_exchange(Toml& toml, const Choices& row) {
  const std::string& strategy = row["strategy"];
  toml.text("exchange", "strategy", strategy_of(row));
  if (strategy == "server.ranks") toml.set("exchange.server", "ranks", 1);
  // Runs stop after three steps, and the end of a run exchanges too, so the period must be as short.
  const std::string name = strategy_of(row);
  for (const std::string& key : test::period_keys(name)) toml.set("exchange." + name, key, 3);
  if (strategy == "averaging.synchronous_epochs") toml.set("exchange.averaging", "synchronous_epochs", 1);
  if (strategy == "asynchronous.states") toml.text("exchange.asynchronous", "states", "server");
  if (strategy == "strom.rounds") toml.text("exchange.strom", "rounds", "asynchronous");
  const bool inside = row["algorithm"] == "inner";
  if (inside) toml.text("exchange", "inner", "shared");
  if (row["algorithm"] != "ring") toml.text("exchange", "algorithm", inside ? "hierarchical" : row["algorithm"]);
  if (row["reduction"] != "sum") toml.text("exchange", "reduction", row["reduction"]);
  if (row["codec"] != "none") toml.text("exchange", "codec", row["codec"]);
  if (row["overlap"] != "default") toml.text("exchange", "overlap", row["overlap"]);
  if (row["algorithm"] != "auto") toml.set("exchange", "bucket_mb", 0.002);
}

void put_optimiser(Toml& toml, const Choices& row) {
  const std::string& rule = row["optimiser"];
  toml.text("optimizer", "rule", rule == "plain_sgd" ? "sgd" : rule);
  if (rule == "plain_sgd") toml.set("optimizer", "momentum", "0.0");
  if (row["clip"] == "on") toml.set("optimizer", "clip_norm", "0.5");
  if (row["embedding"] == "lazy") toml.set("optimizer", "lazy", "true");
}

void put_recipe(Toml& toml, const Choices& row) {
  if (row["augment"] == "changed") {
    toml.set("data.augment", "crop_scale", "[0.5, 1]");
    toml.set("data.augment", "cutout", 2);
  } else if (row["augment"] == "mixed") {
    toml.set("data.augment", "mixup", "0.3");
    toml.set("data.augment", "cutmix", "1.0");
  }
  if (row["recipe"] == "averaged") toml.set("optimizer", "average_decay", "0.9");
  // The cycle has a fixed length, so that a run of more steps is the same run.
  if (row["recipe"] == "one_cycle")
    toml.text("optimizer", "schedule", "one_cycle"), toml.set("optimizer", "schedule_epochs", "2");
  if (row["recipe"] == "orthogonal") toml.text("model", "init", "orthogonal");
}

// Sets the row's split and returns the number of ranks per replica.
int put_split(Toml& toml, const Choices& row) {
  const std::string& split = row["split"];
  if (split == "none") return 1;
  if (row["hosts"] == "two") toml.set("parallel", "allow_across_nodes", "true");
  if (split == "auto") {
    toml.text("parallel", "split", "auto");
    return 1;
  }
  toml.set("parallel", split == "time_chunks" ? "pipeline" : split, 2);
  if (split == "time_chunks") toml.set("parallel", "time_chunks", 2);
  if (split == "tensor") toml.set("parallel", "recurrent_from", 0);
  return 2;
}

void put_batch(Toml& toml, const Choices& row, int replicas) {
  toml.set("batch", "global", 8);
  if (row["batch"] == "accumulation") toml.set("batch", "accumulation", 2);
  if (row["batch"] == "unequal") toml.set("batch", "shares", replicas == 2 ? "[3, 1]" : "[1]");
  if (row["batch"] != "reproducible") return;
  toml.set("train", "reproducible", "true");
  toml.set("train", "micro_shards", 4);
}

}  // namespace

std::vector<Axis> config_axes() {
  std::vector<std::string> rules = axis_of("rule");
  rules.emplace_back("plain_sgd");
  std::vector<std::string> algorithms = axis_of("algorithm");
  std::erase_if(algorithms, [](const std::string& name) { return algorithm_traits(name).on_devices; });
  algorithms.emplace_back("inner");  // "inner" stands for hierarchical with inner = "shared"
  return {{"data", {"images", "text", "stream", "sequences", "buckets"}},
          {"strategy", axis_of("strategy")},
          {"algorithm", algorithms},
          {"reduction", axis_of("reduction")},
          {"codec", axis_of("codec")},
          {"optimiser", rules},
          {"clip", {"off", "on"}},
          {"split", {"none", "pipeline", "tensor", "space", "time_chunks", "auto"}},
          {"replicas", {"2", "1"}},
          {"hosts", {"one", "two"}},
          {"network", {"real", "shaped"}},
          {"batch", {"equal", "accumulation", "unequal", "reproducible"}},
          {"precision", {"onednn:f32", "reference:f64", "reference:f32", "onednn:bf16"}},
          {"norm", {"none", "local", "synchronised", "groups", "renorm"}},
          {"embedding", {"dense", "sparse", "lazy", "tied"}},
          {"sharding", {"auto", "file", "record", "replicated", "queue"}},
          {"ragged", {"wrap", "drop", "zero_weight"}},
          {"overlap", {"default", "none", "buckets", "layers"}},
          {"evaluate", {"epochs", "end", "never"}},
          {"memory", {"none", "64_mb"}},
          {"checkpoint", {"epochs", "steps"}},
          {"augment", {"none", "changed", "mixed"}},
          {"recipe", {"plain", "averaged", "one_cycle", "orthogonal"}}};
}

std::vector<int> Experiment::hosts_of_ranks() const { return groups_of_ranks(ranks, ranks_a_host()); }

Experiment experiment_of(const std::vector<Axis>& axes, const PairwiseRow& values, const std::string& folder) {
  const Choices row(axes, values);
  Toml toml;
  toml.text("", "name", "row");
  put_model(toml, row);
  put_data(toml, row, folder);
  put_exchange(toml, row);
  put_optimiser(toml, row);
  put_recipe(toml, row);
  const int group = put_split(toml, row), replicas = row["replicas"] == "2" ? 2 : 1;
  put_batch(toml, row, replicas);
  const std::string precision = row["precision"];
  toml.text("device", "kind", precision.substr(0, precision.find(':')));
  toml.text("device", "dtype", precision.substr(precision.find(':') + 1));
  if (precision == "onednn:bf16") toml.set("device", "emulate_halves", "true");
  toml.set("device", "threads", 1);
  if (row["memory"] == "64_mb") toml.set("device", "memory_limit_mb", 64);
  toml.set("train", "epochs", 2);
  if (row["evaluate"] == "end") {
    toml.set("evaluate", "every_epochs", 0);
    toml.set("evaluate", "train_fraction", 0.5);
  }
  const bool sums_whole =
      strategy_traits(strategy_of(row)).sums_gradients() && row["split"] == "none" && row["reduction"] == "sum";
  if (sums_whole) toml.set("monitor", "noise_scale", "true");
  if (row["checkpoint"] == "steps") toml.set("checkpoint", "every_steps", 2);
  toml.text("run", "progress", "none");
  toml.set("run", "hang_timeout_s", 20 * patience());

  Experiment experiment;
  experiment.ranks = replicas * group + (row["strategy"] == "server.ranks" ? 1 : 0);
  experiment.hosts = row["hosts"] == "two" && experiment.ranks > 1 ? 2 : 1;
  if (row["network"] == "shaped") {  // on the same hosts
    toml.text("network", "rate", "1gbit");
    toml.set("network", "ranks_per_host", experiment.ranks_a_host());
  }
  experiment.config = toml.str();
  const bool chosen = row["algorithm"] == "auto" || row["split"] == "auto";  // by times, which differ between runs
  // The updates of asynchronous workers arrive in another order each time, and other workers are late.
  const StrategyTraits strategy = strategy_traits(strategy_of(row));
  const bool any_order = strategy.own_pace || strategy.skips_steps || row["strategy"] == "strom.rounds";
  experiment.same_bits = !chosen && (replicas == 1 || !any_order);
  experiment.formula = !chosen && !algorithm_traits(row["algorithm"]).library;
  return experiment;
}

std::string plan_refusal(const Experiment& experiment) {
  return refusal<Error>([&] {
    Config config = parse_config(experiment.config, "row.toml");
    check_combinations(config);
    resolve_recurrent_from(config);
    const RunInputs inputs = open_inputs(config);
    const Mesh mesh =
        mesh_of_workers(config, roles_of(config, experiment.ranks), experiment.hosts_of_ranks(), {"a", "b"});
    for (int rank = 0; rank < mesh.group_size(); ++rank) (void)plan_run(config, mesh, mesh.coord(rank), inputs);
  });
}

}  // namespace echelon::test

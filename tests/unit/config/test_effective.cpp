// SPDX-License-Identifier: Apache-2.0
// A run's effective config is accepted again as it is: random configs over every key that `check` accepts.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "base/error.hpp"
#include "config/check_combinations.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "config/traits/layers.hpp"
#include "config/traits/rules.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

// Draws settings as `--set` takes them from the tables of keys.
class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : random_(seed) {}

  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, std::max(low, high))(random_);
  }
  bool chance(double p) { return std::uniform_real_distribution<double>()(random_) < p; }

  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

  KeyValue value(const KeyValue& like, const KeyLimits& limits) {
    switch (like.index()) {
      case 0: return chance(0.5);
      case 1: return integer(limits);
      case 2: return real(limits);
      case 3: return limits.words.empty() ? text(limits) : one_of(limits.words);
      case 4: return list<std::int64_t>(limits, [&] { return integer(limits); });
      case 5: return list<double>(limits, [&] { return real(limits); });
      default:
        return list<std::string>(limits, [&] { return limits.words.empty() ? text(limits) : one_of(limits.words); });
    }
  }

 private:
  // Mostly small values, so that batches sometimes divide and lists sometimes rise.
  std::int64_t integer(const KeyLimits& limits) {
    const bool free = limits.low >= limits.high;
    const auto low = free ? -1000 : static_cast<std::int64_t>(limits.low);
    const auto high = free ? 1000 : static_cast<std::int64_t>(limits.high);
    if (chance(0.1)) return chance(0.5) ? low : high;
    const std::int64_t power = std::int64_t{1} << whole(0, 8);
    return std::clamp<std::int64_t>(chance(0.7) ? power : whole(low, low + 100), low, high);
  }
  double real(const KeyLimits& limits) {
    const bool free = limits.low >= limits.high;
    const double low = free ? 0 : limits.low, high = free ? 1e6 : limits.high;
    if (chance(0.1)) return chance(0.5) ? low : high;
    const double part = std::uniform_real_distribution<double>()(random_);
    return std::clamp(chance(0.5) ? low + part * (high - low) : std::ldexp(part, static_cast<int>(whole(-40, 20))), low,
                      high);
  }
  std::string text(const KeyLimits& limits) {
    if (limits.plain_name) return fmt::format("n{}-x_{}.y", whole(0, 99), whole(0, 99));
    static const std::vector<std::string> parts = {"a", "/", "\"", "\\",  " ", "é", "漢",
                                                   "#", "=", "'",  ".h5", "*", "["};
    std::string out = "t";
    for (std::int64_t n = whole(0, 6); n > 0; --n) out += one_of(parts);
    return out;
  }
  template <class T, class Draw>
  std::vector<T> list(const KeyLimits& limits, const Draw& draw) {
    std::vector<T> out;
    for (std::int64_t n = whole(limits.most == 2 ? 1 : 0, limits.most == 2 ? 2 : 3); n > 0; --n) out.push_back(draw());
    std::sort(out.begin(), out.end());
    return out;
  }

  std::mt19937_64 random_;
};

// Draws a few layers with every key that their types have, or a model of the zoo.
std::string model_text(Drawer& draw) {
  if (draw.chance(0.5)) return "[model]\nzoo = \"lenet\"\n";
  std::string text;
  for (std::int64_t n = draw.whole(1, 3); n > 0; --n) {
    const LayerTraits& type = kLayers[draw.whole(0, std::ssize(kLayers) - 1)];
    if (type.needs.contains("inputs")) continue;
    text += fmt::format("[[model.layers]]\ntype = \"{}\"\n", type.name);
    std::vector<std::string> takes(type.takes.begin(), type.takes.end());
    takes.insert(takes.end(), {"stage", "name"});
    for (const auto& key : layer_keys()) {
      const bool needed = type.needs.contains(key.name);
      if (std::find(takes.begin(), takes.end(), key.name) == takes.end() || !(needed || draw.chance(0.3))) continue;
      text += fmt::format("{} = {}\n", key.name, value_toml(draw.value(key.get(LayerConfig()), key.limits)));
    }
  }
  return text.empty() ? "[[model.layers]]\ntype = \"relu\"\n" : text;
}

KeyValue drawn(Drawer& draw, const Key<Config>& key) {
  if (key.path() == "network.rate") return fmt::format("{}mbit", draw.whole(1, 20000));
  if (key.path() == "fault.inject") return std::vector<std::string>{"cut rank 1"};
  if (key.path() == "data.hdf5.axes") return draw.one_of(std::vector<std::string>{"NHWC", "NTF", "HW", "NF"});
  if (key.path() == "data.hdf5.labels_file") return std::vector<std::string>{"_x.h5", "_y.h5"};
  if (key.path() == "optimizer.points") return std::vector<double>{0, static_cast<double>(draw.whole(1, 100))};
  for (const char* range : {"crop_scale", "crop_ratio", "erase_scale", "erase_ratio"})
    if (key.path() == std::string("data.augment.") + range)
      return std::vector<double>{0.5, 0.5 + 0.1 * static_cast<double>(draw.whole(0, 5))};
  if (key.path() == "data.image_size") return std::vector<std::int64_t>(static_cast<std::size_t>(draw.whole(1, 2)), 32);
  if (key.path() == "data.hdf5.statistics_of") return std::vector<std::string>{"mean", "std"};
  if (key.path() != "run.trace") return draw.value(key.get(Config()), key.limits);
  return fmt::format("steps {}..{}", draw.whole(1, 30), draw.whole(30, 40));
}

bool selects(const Key<Config>& key) { return key.get(Config()).index() == 0 || !key.limits.words.empty(); }

// Returns the choice of the first optimiser rule or schedule that reads a key of [optimizer]; empty: all do.
std::vector<std::string> reader_of(std::string_view key) {
  for (const auto& rule : kRules)
    if (rule.reads.contains(key)) return {fmt::format("optimizer.rule={}", rule.name)};
  for (const auto& schedule : kSchedules)
    if (schedule.reads.contains(key)) return {fmt::format("optimizer.schedule={}", schedule.name)};
  return {};
}

// Returns settings that the key needs, and that chance alone would hardly draw.
std::vector<std::string> company_of(const std::string& path) {
  if (path == "train.reproducible" || path == "train.micro_shards")
    return {"train.reproducible=true", "data.sharding=record",         "device.kind=onednn",
            "device.threads=1",        "exchange.algorithm=butterfly", "batch.global=64"};
  for (const char* key : {"tf32", "cuda_graphs", "allow_fallback", "workspace_mb"})
    if (path == std::string("device.") + key) return {"device.kind=cuda"};
  if (path.starts_with("device.paced_")) return {"device.kind=paced"};
  if (path.starts_with("device.pace_")) return {"device.kind=onednn", "device.pace_ms=20"};
  if (path.starts_with("monitor.plateau_")) return {"monitor.plateau=warn"};
  if (path.starts_with("evaluate.")) return {"data.test=x"};
  if (path.starts_with("goal.") && path != "goal.greatest_cost")
    return {"data.test=x", "goal.metric=test_loss", "goal.target=1"};
  if (path.starts_with("network.")) return {"network.rate=1gbit"};
  if (path == "model.widths") return {"model.zoo=unet"};
  if (path.starts_with("data.hdf5.statistics"))
    return {"data.hdf5.samples=x", "data.hdf5.statistics=s.h5", "data.hdf5.statistics_of=[\"a\", \"b\"]"};
  if (path == "data.hdf5.label_mean" || path == "data.hdf5.label_std")
    return {"data.hdf5.samples=x", "data.hdf5.labels=y"};
  if (path == "data.hdf5.lengths")
    return {"data.hdf5.samples=x", "data.hdf5.labels=y", "data.hdf5.classes=3", "data.hdf5.encoded=grey"};
  if (path == "data.hdf5.label_column")
    return {"data.hdf5.samples=x", "data.hdf5.labels=y", "data.hdf5.label_form=column"};
  if (path.starts_with("data.hdf5.")) return {"data.hdf5.samples=x", "data.hdf5.labels=y", "data.hdf5.classes=3"};
  static const std::map<std::string, std::vector<std::string>> company = {
      {"model.focal_gamma", {"model.loss=focal"}},
      {"model.batch_norm_group", {"model.zoo=resnet20", "model.synchronised_batch_norm=true"}},
      {"optimizer.momentum_before_coding", {"exchange.codec=topk", "optimizer.momentum=0.9"}},
      {"optimizer.base_batch", {"optimizer.scaling=linear"}},
      {"optimizer.scaling", {"optimizer.base_batch=8"}},
      {"parallel.recurrent_from", {"parallel.tensor=2"}},
      {"parallel.allow_across_nodes", {"parallel.tensor=2"}},
      {"parallel.costs", {"parallel.pipeline=2"}},
      {"parallel.schedule", {"parallel.pipeline=2"}},
      {"exchange.error_feedback", {"exchange.codec=topk"}},
      {"exchange.averaging.outer_step", {"exchange.strategy=averaging", "exchange.averaging.outer_momentum=0.9"}},
      {"run.on_lost_worker", {"exchange.strategy=asynchronous"}},
      {"exchange.codec_warmup_steps", {"exchange.codec=topk"}},
      {"exchange.servers", {"exchange.strategy=asynchronous"}},
      {"exchange.warmup_replicas", {"exchange.strategy=asynchronous", "exchange.warmup_steps=3"}},
      {"exchange.warmup_steps", {"exchange.strategy=asynchronous", "exchange.warmup_replicas=1"}},
      {"exchange.warmup_epochs", {"exchange.strategy=asynchronous", "exchange.warmup_replicas=1"}},
      {"exchange.warmup_each_epoch",
       {"exchange.strategy=asynchronous", "exchange.warmup_replicas=1", "exchange.warmup_steps=3"}},
      {"run.replay", {"exchange.strategy=asynchronous"}},
      {"optimizer.decay_factor", {"optimizer.schedule=step", "optimizer.decay_at_epochs=[1, 2.5]"}},
      {"optimizer.points", {"optimizer.schedule=piecewise_constant", "optimizer.factors=[1, 0.5]"}},
      {"optimizer.factors", {"optimizer.schedule=piecewise_linear", "optimizer.points=[0]"}},
      {"optimizer.points_in",
       {"optimizer.schedule=piecewise_constant", "optimizer.points=[0, 2]", "optimizer.factors=[1, 0.5]"}},
      {"exchange.density", {"exchange.codec=topk"}},
      {"exchange.tau", {"exchange.codec=threshold"}},
      {"exchange.index_coding", {"exchange.codec=topk"}},
      {"exchange.inner", {"exchange.algorithm=hierarchical"}},
      {"exchange.outer", {"exchange.algorithm=hierarchical"}},
      {"exchange.asynchronous.compensation_decay",
       {"exchange.strategy=asynchronous", "exchange.asynchronous.delay_compensation=0.1"}},
      {"exchange.gossip.push_sum", {"exchange.strategy=gossip", "exchange.gossip.topology=ring"}},
      {"exchange.strom.density", {"exchange.strategy=strom", "exchange.strom.tau=0"}},
      {"data.augment.crop_ratio", {"data.augment.crop_scale=[0.5, 1]"}},
      {"data.augment.erase_scale", {"data.augment.erase=0.5"}},
      {"data.augment.erase_ratio", {"data.augment.erase=0.5"}},
      {"data.evaluation_resize", {"data.image_size=1"}},
      {"data.stage_limit_gb", {"data.stage=/tmp"}},
      {"device.emulate_halves", {"device.kind=onednn", "device.dtype=bf16"}},
      {"data.balance", {"exchange.strategy=asynchronous"}},
      {"exchange.code_sums", {"exchange.codec=onebit"}},
      {"checkpoint.keep_best", {"data.test=x"}},
      {"goal.greatest_cost", {"cost.node_hour=1"}},
      {"model.weights_partial", {"model.weights=w.safetensors"}},
      {"model.init_range", {"model.init=uniform"}},
      {"run.resume_weights_only", {"run.resume_from=results/other"}},
      {"fault.inject", {"run.allow_faults=true"}},
      {"fault.seed", {"run.allow_faults=true", "fault.inject=[\"cut rank 1\"]"}},
  };
  const auto found = company.find(path);
  if (found != company.end()) return found->second;
  if (path.starts_with("optimizer.")) return reader_of(path.substr(path.find('.') + 1));
  const std::string tables = "exchange.";
  const std::size_t dot = path.find('.', std::min(tables.size(), path.size()));
  if (!path.starts_with(tables) || dot == std::string::npos) return {};
  return {"exchange.strategy=" + path.substr(tables.size(), dot - tables.size())};
}

// Draws a value for `wanted` and for up to five other keys, half of which are keys that choose between alternatives.
std::vector<std::string> draw_sets(Drawer& draw, const Key<Config>& wanted) {
  std::vector<const Key<Config>*> keys = {&wanted};
  for (std::int64_t n = draw.whole(0, 5); n > 0; --n) {
    const Key<Config>& key = draw.one_of(config_keys());
    if (key.path() != "model.zoo" && (selects(key) || draw.chance(0.5))) keys.push_back(&key);
  }
  std::vector<std::string> sets = company_of(wanted.path());
  for (const Key<Config>* key : keys)
    if (key->path() != "model.zoo") sets.push_back(key->path() + "=" + value_toml(drawn(draw, *key)));
  return sets;
}

// Parses and checks as load_config does with a file; returns nothing where it is refused.
std::optional<Config> accepted(const std::string& text, const std::vector<std::string>& sets) {
  try {
    Config config = parse_config(text, "drawn.toml", sets);
    check_combinations(config);
    return config;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

void check_runs_again(const Config& config) {
  const std::string echo = echo_config(config);
  INFO(echo);
  Config back;
  std::vector<std::string> notes;
  REQUIRE_NOTHROW(back = parse_config(echo, "config.toml", {}, {}, &notes));
  REQUIRE_NOTHROW(check_combinations(back));
  std::string lost;
  for (const auto& key : config_keys())
    if (key.get(back) != key.get(config) || !back.origins.contains(key.path())) lost += " " + key.path();
  REQUIRE(back.model.layers.size() == config.model.layers.size());
  for (std::size_t i = 0; i < config.model.layers.size(); ++i)
    for (const auto& key : layer_keys())
      if (key.get(back.model.layers[i]) != key.get(config.model.layers[i])) lost += fmt::format(" {} {}", i, key.name);
  CHECK(lost == "");
  CHECK(config_hash(back) == config_hash(config));
  CHECK(notes.empty());
}

}  // namespace

TEST_CASE("the effective config of random valid configs is accepted again, equal and of the same hash", "[config]") {
  constexpr int kTries = 8000, kEach = 2;
  Drawer draw(test::test_seed());
  std::string never, rare;
  int checked = 0;
  for (const auto& key : config_keys()) {
    int found = 0, tries = 0;
    while (found < kEach && tries++ < kTries) {
      const std::string text = model_text(draw) + "[data]\ntrain = \"x\"\n";
      const std::optional<Config> config = accepted(text, draw_sets(draw, key));
      if (!config || (key.path() != "model.zoo" && key.get(*config) == key.get(Config()))) continue;
      check_runs_again(*config);
      ++found, ++checked;
    }
    if (tries > kTries / 8) rare += fmt::format(" {} ({} tries)", key.path(), tries);
    if (found == 0) never += " " + key.path();
  }
  INFO("seed " << test::test_seed());
  CHECK(never == "");
  CHECK(rare == "");  // A key that chance alone hardly draws belongs in company_of().
  CHECK(checked >= 180);
}

TEST_CASE("what other keys make of a default is in the effective config", "[config]") {
  const auto effective = [](const std::vector<std::string>& sets) {
    return parse_config("[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\n", "a.toml", sets);
  };
  CHECK(effective({}).exchange.overlap == Overlap::layers);
  for (const char* set : {"optimizer.clip_norm=1", "device.loss_scale=64"})
    CHECK(effective({set}).exchange.overlap == Overlap::buckets);
  CHECK(effective({"optimizer.clip_norm=1", "exchange.overlap=none"}).exchange.overlap == Overlap::none);
  CHECK_FALSE(effective({"exchange.algorithm=mpi"}).exchange.priority);
  CHECK(effective({"exchange.algorithm=ring"}).exchange.priority);
  CHECK_THROWS_WITH(check_combinations(effective({"optimizer.clip_norm=1", "exchange.overlap=layers"})),
                    Catch::Contains("nearest valid: \"buckets\""));
}

TEST_CASE("an override leaves out keys of the file that it makes useless, and says so", "[config]") {
  const std::string file =
      "[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\n[exchange]\ncodec = \"topk\"\ndensity = 0.003\n";
  std::vector<std::string> notes;
  const auto with = [&](const std::string& text, const std::vector<std::string>& sets) {
    notes.clear();
    return parse_config(text, "a.toml", sets, {}, &notes);
  };
  const Config plain = with(file, {"exchange.codec=none"});
  CHECK_NOTHROW(check_combinations(plain));
  CHECK(plain.exchange.density == Config().exchange.density);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0],
             Catch::Contains("a.toml:7:1: exchange.density = 0.003 is left out") && Catch::Contains("\"topk\""));
  // Settings that an override itself names, and those that never fitted in the file, are refused as before.
  CHECK_THROWS_AS(check_combinations(with(file, {"exchange.codec=none", "exchange.density=0.1"})), ConfigError);
  CHECK_THROWS_AS(check_combinations(with(file + "tau = 2\n", {"seed=2"})), ConfigError);
  (void)with(file, {"exchange.density=0.1"});
  CHECK(notes.empty());
  // A run's stored config, which has every key, takes overrides too.
  const Config stored = with(echo_config(parse_config(file, "a.toml")),
                             {"exchange.codec=none", "exchange.algorithm=mpi", "optimizer.clip_norm=1"});
  CHECK_NOTHROW(check_combinations(stored));
  CHECK(stored.exchange.overlap == Overlap::buckets);
  CHECK(notes.size() == 3);
}

TEST_CASE("a misspelt variable is answered with those of its section", "[config]") {
  const auto with = [](const char* name) { parse_config("seed = 1", "a.toml", {}, {{name, "1"}}); };
  CHECK_THROWS_WITH(with("ECHELON_DATA_TRIAN"), Catch::Contains("did you mean 'ECHELON_DATA_TRAIN'") &&
                                                    Catch::Contains("ECHELON_DATA_PREFETCH") &&
                                                    !Catch::Contains("ECHELON_BATCH_GLOBAL"));
}

TEST_CASE("the list of keys tells the inputs of layers that take other than one", "[config]") {
  CHECK_THAT(keys_text(), Catch::Contains("heads causal; 3 inputs: queries, keys, values") &&
                              Catch::Contains("add         2 or more inputs") && Catch::Contains("--set section.key="));
}

TEST_CASE("lists of many numbers with fractions are not deep", "[config]") {
  std::string list = "[0.5";
  for (int i = 0; i < 1000; ++i) list += fmt::format(", {}.5", i + 1);
  const Config config = parse_config("[optimizer]\ndecay_at_epochs = " + list + "]\n", "a.toml");
  CHECK(config.optimiser.decay_at_epochs.size() == 1001);
}

TEST_CASE("no two keys share a variable of the environment", "[config]") {
  std::set<std::string> names;
  for (const auto& key : config_keys()) CHECK(names.insert(environment_name(key.section, key.name)).second);
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "config/batch_plan.hpp"
#include "config/check_combinations.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "config/traits/layers.hpp"
#include "config/unfit.hpp"
#include "tests/support/bad_configs.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

template <class Owner>
bool same(const std::vector<Key<Owner>>& keys, const Owner& a, const Owner& b) {
  return std::all_of(keys.begin(), keys.end(), [&](const auto& key) { return key.get(a) == key.get(b); });
}

// Returns another value that the key permits.
KeyValue changed(const KeyValue& value, const KeyLimits& limits) {
  struct Change {
    const KeyLimits& limits;
    KeyValue operator()(bool v) const { return !v; }
    KeyValue operator()(std::int64_t v) const { return static_cast<double>(v) < limits.high ? v + 1 : v - 1; }
    KeyValue operator()(double v) const { return v + 0.3 <= limits.high ? v + 0.3 : v / 3; }
    KeyValue operator()(const std::string& v) const {
      for (const std::string& word : limits.words)
        if (word != v) return word;
      return limits.words.empty() ? v + "-x_1.y" : v;
    }
    KeyValue operator()(const std::vector<std::int64_t>&) const { return std::vector<std::int64_t>{3, 1}; }
    KeyValue operator()(const std::vector<double>&) const {
      const double most = limits.low < limits.high ? limits.high : 3.0;
      return std::vector<double>{0.1, std::min(2.0, most), 1e300 < limits.high ? 1e300 : std::min(3.0, most)};
    }
    KeyValue operator()(const std::vector<std::string>&) const {
      if (limits.words.empty()) return std::vector<std::string>{"a", "b"};
      return std::vector<std::string>{std::string(limits.words.back()), std::string(limits.words.front())};
    }
  };
  return std::visit(Change{limits}, value);
}

Config with_layers() {
  return parse_config(
      "[[model.layers]]\ntype = \"conv\"\nchannels = 8\nkernel = [3, 5]\npadding = 1\ngroups = 2\nbias = false\n"
      "[[model.layers]]\ntype = \"batch_norm\"\nepsilon = 1e-3\n[[model.layers]]\ntype = \"relu\"\nname = \"r\"\n"
      "[[model.layers]]\ntype = \"add\"\ninputs = [\"r\", \"conv1\"]\n",
      "layers.toml");
}

}  // namespace

TEST_CASE("the echo of a default config is read back as an equal config", "[config]") {
  const Config config;
  const Config back = parse_config(echo_config(config), "echo.toml");
  CHECK(same(config_keys(), config, back));
  CHECK(echo_config(back) == echo_config(config));
}

TEST_CASE("every key changed by --set, by the environment or in the file survives the echo", "[config]") {
  for (const auto& key : config_keys()) {
    INFO(key.path());
    const KeyValue before = key.get(Config());
    const KeyValue wanted = changed(before, key.limits);
    if (key.limits.words.size() != 1) CHECK(wanted != before);
    const Config set = parse_config("seed = 1", "a.toml", {key.path() + "=" + value_toml(wanted)});
    CHECK(key.get(set) == wanted);
    const Config env =
        parse_config("seed = 1", "a.toml", {}, {{environment_name(key.section, key.name), value_toml(wanted)}});
    CHECK(key.get(env) == wanted);
    const Config back = parse_config(echo_config(set), "echo.toml");
    CHECK(same(config_keys(), set, back));
    CHECK(key.get(back) == wanted);
    // Nothing else may change, except defaults that give way.
    Config expected;
    key.set(expected, wanted);
    settle_defaults(expected);
    for (const auto& other : config_keys())
      if (other.path() != key.path() && other.path() != "seed") CHECK(other.get(set) == other.get(expected));
  }
}

TEST_CASE("layers survive the echo", "[config]") {
  const Config config = with_layers();
  const Config back = parse_config(echo_config(config), "echo.toml");
  REQUIRE(back.model.layers.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(same(layer_keys(), config.model.layers[i], back.model.layers[i]));
  CHECK(config.model.layers[1].where == "layers.toml:8");
  CHECK(config.model.layers[0].padding == std::vector<std::int64_t>{1});
}

TEST_CASE("a flag wins over the environment, that over the file, that over the default", "[config]") {
  const std::string text = "[batch]\nglobal = 32\naccumulation = 2\n[train]\nepochs = 3\n";
  const Config config = parse_config(
      text, "a.toml", {"batch.global=128", "name=fresh", "data.train=data/*.h5"},
      {{"ECHELON_BATCH_GLOBAL", "96"}, {"ECHELON_TRAIN_EPOCHS", "5"}, {"ECHELON_LOG", "debug"}, {"PATH", "/bin"}});
  CHECK(config.batch.global == 128);
  CHECK(config.train.epochs == 5);
  CHECK(config.batch.accumulation == 2);
  CHECK(config.name == "fresh");
  CHECK(config.data.train == "data/*.h5");
  CHECK(config.data.prefetch == 2);
  CHECK(config.origins.at("batch.global") == "--set batch.global=128");
}

TEST_CASE("text keys take what looks like other TOML, numbers take underscores", "[config]") {
  const Config config =
      parse_config("seed = 1_000", "a.toml", {"name=2024-01-01", "data.train=42", "batch.global=1_024"});
  CHECK(config.seed == 1000);
  CHECK(config.name == "2024-01-01");
  CHECK(config.data.train == "42");
  CHECK(config.batch.global == 1024);
}

TEST_CASE("the ends of every range are allowed and what lies beyond is refused with the nearest end", "[config]") {
  for (const auto& key : config_keys()) {
    const KeyValue like = key.get(Config());
    if (key.limits.low >= key.limits.high || like.index() == 0 || like.index() == 3) continue;
    INFO(key.path());
    const bool whole = like.index() == 1 || like.index() == 4;
    const auto text = [&](double value) {
      return whole ? value_toml(static_cast<std::int64_t>(value)) : value_toml(value);
    };
    const auto set = [&](double value) { parse_config("seed = 1", "a.toml", {key.path() + "=" + text(value)}); };
    CHECK_NOTHROW(set(key.limits.low));
    CHECK_NOTHROW(set(key.limits.high));
    CHECK_THROWS_WITH(set(key.limits.low - 1), Catch::Contains("nearest valid"));
    CHECK_THROWS_WITH(set(key.limits.high + 1), Catch::Contains("nearest valid"));
  }
}

TEST_CASE("the hash follows what makes runs differ and nothing else", "[config]") {
  for (const auto& key : config_keys()) {
    INFO(key.path());
    if (key.limits.words.size() == 1) continue;
    Config config;
    key.set(config, changed(key.get(config), key.limits));
    CHECK((config_hash(config) == config_hash(Config())) == key.neutral);
  }
  // The folder of runs, the checkpoint intervals and the length of training do not change a run's hash; the data does.
  const auto same_run = [](const std::string& set) {
    return config_hash(parse_config("seed = 1", "a.toml", {set})) == config_hash(parse_config("seed = 1", "a.toml"));
  };
  for (const char* set : {"name=other", "train.epochs=7", "train.steps=70", "checkpoint.keep=9", "run.restart=never"})
    CHECK(same_run(set));
  for (const char* set : {"seed=2", "data.train=x", "batch.global=32", "device.dtype=f64", "exchange.algorithm=mpi",
                          "run.resume_from=results/a"})
    CHECK_FALSE(same_run(set));
  Config shorter, longer;
  shorter.optimiser.schedule = longer.optimiser.schedule = "cosine";
  longer.train.epochs = 9;
  CHECK(config_hash(shorter) != config_hash(longer));
  shorter.optimiser.schedule_epochs = longer.optimiser.schedule_epochs = 9;
  CHECK(config_hash(shorter) == config_hash(longer));
  Config layers = with_layers();
  const std::uint64_t before = config_hash(layers);
  layers.model.layers[0].channels = 16;
  CHECK(config_hash(layers) != before);
}

TEST_CASE("batch arithmetic gives whole micro-batches that sum to the step", "[config]") {
  const Config equal = parse_config("[batch]\nglobal = 64\naccumulation = 2\n", "a.toml");
  CHECK(derive_batch(equal, 4, 1000).per_replica == std::vector<std::int64_t>{16, 16, 16, 16});
  CHECK(derive_batch(equal, 4, 1000).micro == std::vector<std::int64_t>{8, 8, 8, 8});
  const Config shares = parse_config("[batch]\nglobal = 60\nshares = [1, 3, 2]\n", "a.toml");
  CHECK(derive_batch(shares, 3, 1000).per_replica == std::vector<std::int64_t>{10, 30, 20});
  const Config weak = parse_config("[batch]\nglobal = 64\nscale_with_replicas = true\n", "a.toml");
  Config fewer = equal;  // fewer replicas than it was written for
  fewer.batch.nearly_equal = true;
  CHECK(derive_batch(fewer, 3, 1000).per_replica == std::vector<std::int64_t>{22, 22, 20});
  CHECK(derive_batch(fewer, 3, 1000).micro == std::vector<std::int64_t>{11, 11, 10});
  CHECK(derive_batch(fewer, 1, 1000).per_replica == std::vector<std::int64_t>{64});
  CHECK(derive_batch(weak, 3, 1000).global == 192);
  CHECK(derive_batch(weak, 3, 1000).per_replica == std::vector<std::int64_t>{64, 64, 64});
  const Config as = parse_config("[batch]\nglobal = 64\n[data]\nas_replicas = 4\n", "a.toml");
  CHECK(derive_batch(as, 1, 1000).per_replica == std::vector<std::int64_t>{64});
  CHECK_THROWS_WITH(derive_batch(parse_config("[batch]\nglobal = 66\n[data]\nas_replicas = 4\n", "a.toml"), 1, 1000),
                    Catch::Contains("64 or 68"));
}

TEST_CASE("batch.global = 0 takes every sample in a step", "[config]") {
  const std::string head = "[batch]\nglobal = 0\n[data]\nsharding = \"record\"\n";
  const Config exact = parse_config(head, "a.toml"),
               filled = parse_config(head + "ragged = \"zero_weight\"\n", "a.toml");
  CHECK(derive_batch(exact, 1, 297).per_replica == std::vector<std::int64_t>{297});
  CHECK(derive_batch(exact, 3, 297).per_replica == std::vector<std::int64_t>{99, 99, 99});
  CHECK(derive_batch(filled, 4, 297).per_replica == std::vector<std::int64_t>{75, 75, 75, 75});
  CHECK_THROWS_WITH(derive_batch(exact, 4, 297), Catch::Contains("all 297 samples") && Catch::Contains("zero_weight"));
}

TEST_CASE("the nearest valid batches are valid, and nothing lies between", "[config]") {
  for (int round = 0; round < 60; ++round) {
    const auto draw = test::random_integers(5, 1, 6, "batch" + std::to_string(round));
    Config config;
    config.file = "a.toml";
    config.batch.accumulation = draw[0];
    config.batch.global = draw[1] * draw[2] * draw[3];
    config.batch.shares = std::vector<std::int64_t>(draw.begin() + 2, draw.begin() + 5);
    const auto fits = [&](std::int64_t global) {
      Config other = config;
      other.batch.global = global;
      try {
        const BatchPlan plan = derive_batch(other, 3, 1'000'000);
        CHECK(std::accumulate(plan.per_replica.begin(), plan.per_replica.end(), std::int64_t{0}) == global);
        for (std::size_t i = 0; i < 3; ++i) {
          CHECK(plan.micro[i] * plan.accumulation == plan.per_replica[i]);
          CHECK(plan.per_replica[i] * config.batch.shares[0] == plan.per_replica[0] * config.batch.shares[i]);
        }
        return std::string();
      } catch (const ConfigError& error) {
        return std::string(error.what());
      }
    };
    const std::string text = fits(config.batch.global);
    if (text.empty()) continue;
    INFO(text);
    std::int64_t below = config.batch.global - 1, above = config.batch.global + 1;
    while (below > 0 && !fits(below).empty()) --below;
    while (!fits(above).empty()) ++above;
    CHECK(text.find("nearest valid: " + (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(above)) !=
          std::string::npos);
  }
}

TEST_CASE("random edits of a good config are read or refused, never worse", "[config]") {
  const std::string good = echo_config(with_layers());
  int read = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto draw = test::random_integers(13, 0, 1 << 20, "edit" + std::to_string(round));
    std::string text = good;
    for (std::size_t edit = 0; edit < static_cast<std::size_t>(1 + draw[12] % 4); ++edit) {
      const std::size_t at = static_cast<std::size_t>(draw[3 * edit]) % text.size();
      const char byte = draw[3 * edit + 1] % 3 ? good[static_cast<std::size_t>(draw[3 * edit + 2]) % good.size()]
                                               : static_cast<char>(draw[3 * edit + 2] % 256);
      if (draw[3 * edit + 1] % 7 == 0)
        text.erase(at, static_cast<std::size_t>(draw[3 * edit + 2] % 9));
      else if (draw[3 * edit + 1] % 7 == 1)
        text.insert(at, 1, byte);
      else
        text[at] = byte;
    }
    try {
      const Config config = parse_config(text, "edited.toml");
      ++read;
      // A value that was read is within limits, so it can be read again.
      CHECK_NOTHROW(parse_config(echo_config(config), "again.toml"));
      try {
        check_combinations(config);
        derive_batch(config, 3, 1000);
      } catch (const ConfigError&) {
      }
    } catch (const ConfigError& error) {
      ++refused;
      CHECK(std::string(error.what()).find("edited.toml:") == 0);
    }
  }
  CHECK(read > 0);
  CHECK(refused > 0);
}

TEST_CASE("the list of keys names every key", "[config]") {
  const std::string text = keys_text();
  for (const auto& key : config_keys()) CHECK(text.find("\n" + key.name + " ") != std::string::npos);
  for (const LayerTraits& type : kLayers) CHECK(text.find(type.name) != std::string::npos);
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
#include "tests/run/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/atomic_file.hpp"
#include "base/hash_rng.hpp"
#include "h5/file.hpp"

namespace echelon::test {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kClasses = 10;

constexpr const char* kConfig = R"(name = "trial"
seed = 7
[model]
zoo = "digits_cnn"
[data]
train = "train"
test = "test"
sharding = "record"
[batch]
global = 48
[train]
epochs = 3
[optimizer]
learning_rate = 0.05
momentum = 0.9
[device]
kind = "onednn"
threads = 1
[checkpoint]
every_steps = 5
[run]
progress = "lines"
)";

std::string quoted(const std::string& word) { return "'" + word + "'"; }

std::vector<std::string> verb_with(const std::string& verb, const Sets& sets) {
  std::vector<std::string> words = {verb, "trial.toml"};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  return words;
}

}  // namespace

Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

void write_shard(const std::string& path, std::int64_t samples, const std::string& name,
                 std::vector<std::uint8_t> labels, int deflate) {
  const HashRng patterns(1, "patterns"), draws(1, name);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(samples) * 64);
  if (labels.empty())
    for (std::int64_t i = 0; i < samples; ++i)
      labels.push_back(static_cast<std::uint8_t>(draws.at(0).below(static_cast<std::uint64_t>(i), kClasses)));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const double pattern = 16 * patterns.uniform((labels[i / 64] % kClasses) * 64 + i % 64);
    pixels[i] = static_cast<std::uint8_t>(std::clamp(pattern + 4 * hash_normal(draws.at(1), i), 0.0, 16.0));
  }
  h5::Writer writer(path);
  writer.attribute("format", std::string("echelon-samples"));
  writer.attribute("version", std::int64_t{1});
  writer.attribute("classes", kClasses);
  writer.attribute("scale", 1.0 / 16);
  writer.write_all("samples", DType::u8, {samples, 1, 8, 8}, pixels.data(), {.chunk_rows = 64, .deflate = deflate});
  writer.write_all("labels", DType::u8, {samples}, labels.data(), {.chunk_rows = 64});
  writer.publish();
}

Trial::Trial(const std::string& config) { std::ofstream(folder_ / "trial.toml") << config; }

Trial::Trial() : Trial(kConfig) {
  fs::create_directories(folder_ / "train");
  fs::create_directories(folder_ / "test");
  write_train(0);
  write_shard(folder_ / "test/shard-0.h5", 201, "test");
}

void Trial::write_train(int deflate) const {
  int file = 0;
  for (const std::int64_t samples : {300, 170, 90, 240}) {
    const std::string name = "shard-" + std::to_string(file++);
    write_shard(folder_ / ("train/" + name + ".h5"), samples, name, {}, deflate);
  }
}

std::vector<std::string> Trial::words(int ranks, const Sets& sets) const {
  std::vector<std::string> args = verb_with("train", sets);
  if (ranks > 0) return mpirun(ranks, args).argv;
  args.insert(args.begin(), echelon_binary());
  return args;
}

Outcome Trial::train(int ranks, const Sets& sets, const Environment& env) const {
  return run_echelon(verb_with("train", sets), {.ranks = ranks, .cwd = folder_.path(), .env = env});
}

Outcome Trial::check(const Sets& sets, const std::vector<std::string>& more) const {
  return echelon(with(verb_with("check", sets), more));
}

Outcome Trial::echelon(const std::vector<std::string>& words, int ranks) const {
  return run_echelon(words, {.ranks = ranks, .cwd = folder_.path()});
}

std::string Trial::make_data(std::vector<std::string> words) const {
  words.insert(words.begin(), "data");
  const Outcome outcome = echelon(words);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.out;
}

Outcome Trial::train_and(int ranks, const Sets& sets, const std::string& script, double limit_s) const {
  std::string command;
  for (const std::string& word : words(ranks, sets)) command += quoted(word) + " ";
  return in_background(command, script, limit_s);
}

Outcome Trial::in_background(const std::string& command, const std::string& script, double limit_s) const {
  const std::string shell = R"(set -u
patience=${ECHELON_TEST_PATIENCE:-1}
newest() { ls -d results/trial/run-*/[0-9]* 2>/dev/null | tail -1; }
before=$(newest)
running() {
  for i in $(seq $((3000 * patience))); do
    now=$(newest)
    [ "$now" != "$before" ] && grep -qs running "$now/status.json" && [ -s "$now/metrics.jsonl" ] && return 0
    kill -0 $pid 2>/dev/null || return 1
    sleep 0.02
  done
  return 1
}
rank() {
  children=$(pgrep -P $pid)  # of Hydra, the launcher of MPICH, ranks are grandchildren
  for child in $children $(for one in $children; do pgrep -P $one; done); do
    tr '\0' '\n' < /proc/$child/environ | grep -qxE "(OMPI_COMM_WORLD|PMI)_RANK=$1" && echo $child
  done
}
reached() {
  for i in $(seq $((6000 * patience))); do
    last=$(ls results/trial/run-*/checkpoints 2>/dev/null | grep ^step | tail -1)
    [[ $last > $(printf 'step-%08d' $1) ]] && return 0
    kill -0 $pid 2>/dev/null || return 1
    sleep 0.01
  done
  return 1
}
)" + command + "&\npid=$!\n" +
                            script;
  return run_process({.argv = {"bash", "-c", shell}, .cwd = folder_.path(), .env = {}, .limit_s = limit_s});
}

std::string Trial::run(const std::string& name) const {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder_ / ("results/" + name)))
    found.push_back(entry.path().string());
  if (found.size() != 1) throw std::runtime_error(name + " has " + std::to_string(found.size()) + " runs");
  return found[0];
}

int Trial::attempts(const std::string& name) const {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(run(name)))
    count += entry.path().filename().string().find_first_not_of("0123456789") == std::string::npos;
  return count;
}

std::string Trial::attempt(const std::string& name) const {
  const int count = attempts(name);
  return run(name) + (count < 10 ? "/0" : "/") + std::to_string(count);
}

nlohmann::json Trial::summary(const std::string& name) const {
  return nlohmann::json::parse(read_file_whole(attempt(name) + "/summary.json"));
}

nlohmann::json Trial::status(const std::string& name) const {
  return nlohmann::json::parse(read_file_whole(attempt(name) + "/status.json"));
}

std::vector<nlohmann::json> Trial::metrics(const std::string& name) const {
  std::vector<nlohmann::json> rows = all_metrics(name);
  std::erase_if(rows, [](const nlohmann::json& row) { return row["type"] == "checkpoint"; });
  return rows;
}

std::vector<nlohmann::json> Trial::all_metrics(const std::string& name) const {
  std::vector<nlohmann::json> rows;
  for (int number = 1; number <= attempts(name); ++number) {
    std::ifstream file(run(name) + (number < 10 ? "/0" : "/") + std::to_string(number) + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::json::parse(line));
  }
  return rows;
}

std::vector<std::string> Trial::leftovers() const {
  std::vector<std::string> found;
  if (!fs::exists(folder_ / "results")) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "results"))
    if (entry.path().filename().string().find(".tmp") != std::string::npos) found.push_back(entry.path().string());
  return found;
}

std::vector<double> checkpoint_values(const std::string& path, const std::string& prefix) {
  const h5::Reader reader(path);
  std::vector<double> all;
  for (const h5::DatasetInfo& info : reader.datasets()) {
    if (!info.name.starts_with(prefix)) continue;
    std::vector<double> values(static_cast<std::size_t>(info.shape.elems()));
    reader.read_all(info.name, values.data(), DType::f64);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<double> last_values(const Trial& trial, const std::string& prefix, const std::string& name) {
  const std::int64_t step = trial.summary(name)["steps"];
  return checkpoint_values(fmt::format("{}/checkpoints/step-{:08}.h5", trial.run(name), step), prefix);
}

}  // namespace echelon::test

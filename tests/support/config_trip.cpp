// SPDX-License-Identifier: Apache-2.0
// Takes a row of the config space through the verbs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "cli/options.hpp"
#include "config/parse.hpp"
#include "h5/file.hpp"
#include "tests/support/attempts.hpp"
#include "tests/support/config_rows.hpp"

namespace echelon::test {
namespace {

namespace fs = std::filesystem;

// Returns the bits of the weights, by name, in the newest checkpoint of a run.
std::map<std::string, std::vector<double>> weights_of(const std::string& run) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints"))
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  if (files.empty()) throw std::runtime_error("no checkpoint in " + run);
  const h5::Reader reader(*std::max_element(files.begin(), files.end()));
  std::map<std::string, std::vector<double>> all;
  for (const h5::DatasetInfo& info : reader.datasets()) {
    if (!info.name.starts_with("weights/")) continue;
    std::vector<double>& values = all[info.name];
    values.resize(static_cast<std::size_t>(info.shape.elems()));
    reader.read_all(info.name, values.data(), DType::f64);
  }
  return all;
}

// Takes one experiment through the verbs. Errors are std::runtime_error, and begin with the verb.
class Trip {
 public:
  Trip(const Experiment& experiment, std::string folder, const std::string& name)
      : experiment_(experiment), folder_(std::move(folder)), results_(folder_ + "/" + name) {
    fs::create_directories(results_);
    write_file_whole(config(), experiment.config);
  }

  std::string run() {
    const std::string why = check();
    if (!why.empty()) return "refused: " + why;
    const std::string stopped = train("resumed", 3);
    expect(summary(stopped)["steps"] == 3, "train: 3 steps", summary(stopped)["steps"].dump());
    const std::string taken = train("taken", 6, {"run.resume_from=" + stopped});
    const std::string resumed = train("resumed", 6), straight = train("straight", 6);
    expect(resumed == stopped, "resume: another run", resumed);
    expect(fs::exists(resumed + "/02"), "resume: no second attempt", resumed);
    expect(summary(taken)["steps"] == 6, "resume_from: 6 steps", summary(taken)["steps"].dump());
    if (experiment_.same_bits) {
      expect(weights_of(resumed) == weights_of(straight), "resume: other weights than of a run in one go", "");
      expect(weights_of(taken) == weights_of(straight), "resume_from: other weights than of a run in one go", "");
    }
    check_wire(summary(straight + "/01"));
    use(straight);
    return "ok";
  }

 private:
  static void expect(bool holds, const std::string& what, const std::string& found) {
    if (!holds) throw std::runtime_error(found.empty() ? what : what + ": " + found);
  }
  std::string config() const { return results_ + "/row.toml"; }
  static nlohmann::json summary(const std::string& folder) {
    const std::string attempt = fs::exists(folder + "/summary.json") ? folder : folder + "/01";
    return nlohmann::json::parse(read_file_whole(attempt + "/summary.json"));
  }

  // Returns the reason where `check` refuses; then train must refuse with the same code.
  std::string check() {
    std::string reason;
    int code = kExitOk;
    try {
      code = cli::run_check({.config = config(), .sets = {}, .ranks = experiment_.ranks, .hosts = experiment_.hosts});
    } catch (const Error& error) {
      code = error.code(), reason = error.what();
    }
    if (code == kExitOk) return "";
    expect(code == kExitConfig || code == kExitMemory, "check: exit " + std::to_string(code), reason);
    expect(!reason.empty(), "check: refused without a reason", "");
    const int trained = attempt("refused", 3);
    expect(trained == code, fmt::format("check refuses with {} ({}), train ends with", code, reason),
           std::to_string(trained));
    return reason;
  }

  int attempt(const std::string& results, int steps, std::vector<std::string> sets = {}) {
    sets.insert(sets.end(),
                {"run.results=\"" + results_ + "/" + results + "\"", "train.steps=" + std::to_string(steps)});
    return train_on_threads(config(), sets, experiment_.ranks, experiment_.hosts_of_ranks());
  }

  // Trains, and returns the run's folder.
  std::string train(const std::string& results, int steps, const std::vector<std::string>& sets = {}) {
    const int code = attempt(results, steps, sets);
    expect(code == kExitOk, fmt::format("train: {} steps: exit", steps), std::to_string(code));
    std::vector<std::string> runs;
    for (const auto& entry : fs::directory_iterator(results_ + "/" + results + "/row")) runs.push_back(entry.path());
    expect(runs.size() == 1, "train: run folders", std::to_string(runs.size()));
    return runs.front();
  }

  void check_wire(const nlohmann::json& summary) const {
    const auto& wire = summary["wire_bytes_per_step"];
    const auto& formula = summary["formula_bytes_per_step"];
    if (!experiment_.formula || formula.is_null()) return;
    const double sent = wire.get<double>(), predicted = formula.get<double>();
    expect(std::fabs(sent - predicted) <= 1e-9 * predicted, "wire: bytes and formula",
           fmt::format("{} and {}", sent, predicted));
  }

  void use(const std::string& run) {
    const auto verb = [](const char* name, auto&& body) {
      try {
        const int code = body();
        expect(code == kExitOk, std::string(name) + ": exit", std::to_string(code));
      } catch (const std::exception& error) {
        throw std::runtime_error(std::string(name) + ": " + error.what());
      }
    };
    const std::string test = fs::path(load_config(config()).data.train).parent_path().string() + "/test";
    cli::PredictOptions options{.model = run, .data = test, .out = results_ + "/p.h5", .batch = 5, .device = ""};
    options.threads = 1;
    verb("eval", [&] { return cli::run_eval(options); });
    verb("predict", [&] { return cli::run_predict(options); });
    verb("export", [&] { return cli::run_export({.model = run, .out = results_ + "/weights.safetensors"}); });
    verb("report", [&] { return cli::run_report({.runs = {run}, .out = results_ + "/report"}); });
  }

  const Experiment& experiment_;
  std::string folder_, results_;
};

}  // namespace

std::string run_experiment(const Experiment& experiment, const std::string& folder, const std::string& name) {
  try {
    return Trip(experiment, folder, name).run();
  } catch (const std::exception& error) {
    return std::string("failed: ") + error.what();
  }
}

}  // namespace echelon::test

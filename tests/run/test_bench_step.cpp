// SPDX-License-Identifier: Apache-2.0
// `echelon bench step` as a user runs it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/cores.hpp"
#include "tests/support/process.hpp"
#include "tests/support/skip.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// Writes a config whose model is in the zoo and whose data does not exist: the samples are random.
std::string write_config(const TempFolder& folder) {
  const std::string path = folder / "digits.toml";
  write_file_whole(path,
                   "name = \"bench-digits\"\n[model]\nzoo = \"digits_cnn\"\n[data]\ntrain = \"nowhere/train\"\n"
                   "[batch]\nglobal = 32\n[device]\nkind = \"onednn\"\n");
  return path;
}

Outcome bench(const TempFolder& folder, const std::string& config, std::vector<std::string> more) {
  std::vector<std::string> words = {"bench", "step", config};
  if (std::find(more.begin(), more.end(), "--steps") == more.end()) more.insert(more.end(), {"--steps", "10"});
  words.insert(words.end(), more.begin(), more.end());
  return run_echelon(words, {.cwd = folder.path()});
}

// Returns the number after `"key": ` in one line of JSON; NaN where there is none.
double number_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\":");
  return at == std::string::npos ? std::nan("") : std::strtod(json.c_str() + at + key.size() + 3, nullptr);
}

}  // namespace

TEST_CASE("bench step prints a line of JSON that peers can be set beside", "[bench]") {
  const TempFolder folder;
  const Outcome run = bench(folder, write_config(folder), {"--json", "--ops"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto json = nlohmann::json::parse(run.out);
  CHECK(json["peak_flops"] > 1e8);
  double share = 0, ops_s = 0;
  for (const auto& op : json["ops"]) {
    ops_s += op["seconds"].get<double>();
    if (op.contains("of_peak")) share = std::max(share, op["of_peak"].get<double>());
  }
  CHECK((share > 0.001 && share < 1.5));
  CHECK(ops_s > 0);
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 1);
  CHECK_THAT(run.out, Catch::Contains("\"model\":\"digits_cnn\"") && Catch::Contains("\"unit\":\"samples/s\""));
  CHECK(number_of(run.out, "threads") == 1);
  CHECK(number_of(run.out, "batch_per_rank") == 32);
  const double median_s = number_of(run.out, "step_s_median");
  CHECK(median_s > 0);
  CHECK(number_of(run.out, "step_s_min") <= median_s);
  CHECK(number_of(run.out, "rate") == Approx(32 / median_s).epsilon(0.01));
  CHECK(number_of(run.out, "step_cpu_s") > 0);
  CHECK(number_of(run.out, "parameters") == 38282);
  CHECK(number_of(run.out, "activation_bytes") > 32 * 4 * 64);
  CHECK(number_of(run.out, "device_bytes") > number_of(run.out, "activation_bytes"));
  CHECK(number_of(run.out, "process_peak_bytes") > number_of(run.out, "device_bytes"));
}

TEST_CASE("bench codec sets every codec beside memcpy", "[bench]") {
  const Outcome run = run_echelon({"bench", "codec", "--mb", "0.1", "--rounds", "2"}, {.cwd = "/"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  for (const char* codec : {"memcpy", "fp16", "bf16", "int8", "onebit", "topk", "threshold", "lossless"})
    CHECK_THAT(run.out, Catch::Contains(std::string("\n") + codec + " "));
  CHECK_THAT(run.out, Catch::Contains("0.5000"));
}

TEST_CASE("bench control counts the messages of ranks that were not started, and what their heaps hold", "[bench]") {
  const TempFolder folder;
  const Outcome run = run_echelon({"bench", "control", write_config(folder), "--ranks", "16,40", "--rounds", "1"},
                                  {.cwd = folder.path()});
  INFO(run.err << run.out);
  REQUIRE(run.code == 0);
  // 15 links of a tree each carry a sum of 80 bytes up and down.
  for (const char* part :
       {"16 ranks", "40 ranks", "control words", "4 / 1.9", "320 / 150", "halving_doubling", "direct"})
    CHECK_THAT(run.out, Catch::Contains(part));
  const Outcome refused = run_echelon({"bench", "control", "--ranks", "1"}, {.cwd = "/"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("--ranks 1: must be 2 to 65,536"));
}

TEST_CASE("bench update sets every rule beside SGD", "[bench]") {
  const TempFolder folder;
  const Outcome run = run_echelon({"bench", "update", write_config(folder), "--rounds", "5"}, {.cwd = folder.path()});
  INFO(run.err << run.out);
  REQUIRE(run.code == 0);
  for (const char* part :
       {"sgd", "adam", "adamw", "rmsprop", "lars", "lamb", "clipping", "38,282 values", "relative to sgd"})
    CHECK_THAT(run.out, Catch::Contains(part));
}

TEST_CASE("bench step shows layers, ops and their implementations, none of them a reference body", "[bench]") {
  if (test::skip_without(openmp_threads_at_most() >= 2, test::Lacks::setting,
                         "OMP_THREAD_LIMIT leaves a process one thread"))
    return;
  const TempFolder folder;
  const Outcome run = bench(folder, write_config(folder), {"--ops", "--threads", "2", "--batch", "16"});
  INFO(run.err << run.out);
  REQUIRE(run.code == 0);
  for (const char* part : {"samples/s", "conv2", "backward", "conv_backward_weights", "optimiser", "GFLOP/s",
                           "memory:", "threads:", "(Amdahl)"})
    CHECK_THAT(run.out, Catch::Contains(part));
  CHECK_THAT(run.out, Catch::Contains("N16 ") && !Catch::Contains("ref"));
}

TEST_CASE("bench step's table paces the paced device", "[bench]") {
  const TempFolder folder;
  const std::string config = write_config(folder), table = folder / "ops.json";
  const Outcome made = bench(folder, config, {"--json", "--table", table});
  INFO(made.err);
  REQUIRE(made.code == 0);
  // The second table has the same rows at 2 ms each, so long that a busy machine sleeps them right.
  std::ifstream lines(table);
  std::string slow;
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find("\": ");
    if (colon == std::string::npos) continue;
    CHECK(std::strtod(line.c_str() + colon + 3, nullptr) > 0);
    slow += (rows++ == 0 ? "{" : ",\n") + line.substr(0, colon) + "\": 0.002";
  }
  CHECK(rows >= 15);
  write_file_whole(table, slow + "}\n");

  const Outcome paced =
      bench(folder, config, {"--json", "--set", "device.kind=paced", "--set", "device.paced_table=" + table});
  INFO(paced.err);
  REQUIRE(paced.code == 0);
  CHECK(number_of(paced.out, "step_s_median") >= 0.5 * 0.002 * rows);
}

TEST_CASE("bench step times 50 steps of a fast model where nobody asks for a number", "[bench]") {
  const TempFolder folder;
  const Outcome run = bench(folder, write_config(folder), {"--steps", "0"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, Catch::Contains("(median of 50)"));
}

TEST_CASE("bench step refuses what it cannot run", "[bench]") {
  const TempFolder folder;
  const std::string config = write_config(folder);
  const Outcome none = bench(folder, config, {"--steps", "-1"});
  CHECK(none.code == 2);
  CHECK_THAT(none.err, Catch::Contains("--steps must be"));
  CHECK(bench(folder, config, {"--threads", "0"}).code == 2);
  CHECK(bench(folder, folder / "missing.toml", {}).code == 2);
  const Outcome f64 = bench(folder, config, {"--set", "device.dtype=f64"});
  CHECK(f64.code == 2);
  CHECK_THAT(f64.err, Catch::Contains("reference"));
}

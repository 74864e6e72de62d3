// SPDX-License-Identifier: Apache-2.0
// The whole program on the stand-in's GPUs: exit codes of errors, their messages, and what is left behind.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "tests/cuda_calls/fixture.hpp"
#include "tests/support/process.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

namespace fs = std::filesystem;

struct Run {
  Outcome outcome;
  std::string report;
};

// Runs the program in a separate process, in `folder`.
Run run_program(const TempFolder& folder, const std::string& words, std::vector<std::string> args) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string file = folder / "report";
  args.insert(args.begin(), here / "echelon");
  const Command command{.argv = std::move(args),
                        .cwd = folder.path(),
                        .env = {{"ECHELON_CUDA_CALLS", words + " report=" + file}, {"LD_LIBRARY_PATH", here.string()}},
                        .limit_s = 60};
  Run run{run_process(command), {}};
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  run.report = text.str();
  return run;
}

Run bench_step(const std::string& words) {
  return run_program(TempFolder(), words,
                     {"bench", "step", fs::current_path() / "configs/bench/lenet.toml", "--steps", "2", "--batch", "2",
                      "--set", "device.kind=cuda"});
}

}  // namespace

TEST_CASE("the program's exit code and words follow from the call that failed", "[cuda_calls][program]") {
  struct Row {
    const char* words;
    int code;
    const char* said;
  };
  for (const Row& row : {Row{"late", 0, ""}, Row{"fail=cudaMalloc:4 memory", 6, "cannot be allocated"},
                         Row{"fail=cublasCreate_v2:1 memory", 6, "CUBLAS_STATUS_ALLOC_FAILED"},
                         Row{"fail=cudaStreamSynchronize:5", 3, "cudaStreamSynchronize"},
                         Row{"fail=cublasGemmEx_64:2", 3, "CUBLAS_STATUS_EXECUTION_FAILED in cublasGemmEx_64"},
                         Row{"fail=cudnnConvolutionForward:2", 3, "CUDNN_STATUS_EXECUTION_FAILED"}}) {
    const Run run = bench_step(row.words);
    INFO(row.words << "\n" << run.outcome.err << run.report);
    CHECK(run.outcome.code == row.code);
    CHECK(run.outcome.err.find(row.said) != std::string::npos);
    CHECK(run.report.find("cudaSetDevice ") != std::string::npos);
    CHECK(run.report.find("broken:") == std::string::npos);
    CHECK(run.report.find("alive:") == std::string::npos);
  }
}

// Includes the last step, whose readings are not collected by a later step.
TEST_CASE("a trace of the program has the card's spans of the traced steps", "[cuda_calls][program]") {
  const TempFolder folder;
  const fs::path repository = fs::current_path();
  fs::create_directory_symlink(repository / "data", folder / "data");
  std::vector<std::string> args = {"train", repository / "configs/smoke/digits.toml"};
  for (const char* set : {"device.kind=cuda", "device.allow_fallback=true", "train.epochs=0", "train.steps=4",
                          "run.trace=\"steps 3..4\""})
    args.insert(args.end(), {"--set", set});
  const Run run = run_program(folder, "late", args);
  INFO(run.outcome.out << run.outcome.err << run.report);
  REQUIRE(run.outcome.code == 0);
  CHECK(run.report.find("broken:") == std::string::npos);
  std::string file;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    if (entry.path().filename() == "trace.json") file = entry.path();
  const auto trace = nlohmann::json::parse(read_file_whole(file));
  int row = -1;
  std::map<std::pair<int, std::string>, int> spans;  // by step and kind
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name" && event["args"]["name"] == "device") row = event["tid"];
    if (event["ph"] == "X" && event["tid"] == row) ++spans[{event["args"]["step"], event["name"]}];
  }
  for (const int step : {3, 4})
    for (const char* kind : {"forward", "backward", "optimizer"}) {
      INFO(step << " " << kind);
      CHECK(spans.contains({step, kind}));
    }
  for (const auto& [at, count] : spans) CHECK((at.first == 3 || at.first == 4));
}

// The whole program on the stand-in's GPUs: exit codes of errors, what is said of them, and what is left behind.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

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

// `echelon bench step` of LeNet in a process of its own.
Run bench_step(const std::string& words) {
  const TempFolder folder;
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string file = folder / "report";
  const Command command{.argv = {here / "echelon", "bench", "step", fs::current_path() / "configs/bench/lenet.toml",
                                 "--steps", "2", "--batch", "2", "--set", "device.kind=cuda"},
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

}  // namespace

TEST_CASE("the program's exit code and words follow from the call that failed", "[cuda_calls][program]") {
  struct Row {
    const char* words;
    int code;
    const char* said;
  };
  for (const Row& row : {Row{"late", 0, ""}, Row{"fail=cudaMalloc:4 memory", 6, "do not fit"},
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

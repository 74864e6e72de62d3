// SPDX-License-Identifier: Apache-2.0
// tests/tools/gpu.sh, which asks a machine with a GPU everything at once, run on this machine's processor.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "tests/support/process.hpp"

using namespace echelon;
using namespace echelon::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kStages[] = {"contract", "learn",   "exchange", "steps",  "models",
                                   "graphs",   "profile", "ranks",    "memory", "sanitizer"};

std::string script() {
  fs::path folder = fs::path(echelon_binary()).parent_path();
  while (!fs::exists(folder / "tests/tools/gpu.sh") && folder.has_relative_path()) folder = folder.parent_path();
  return folder / "tests/tools/gpu.sh";
}

void write_program(const std::string& path, const std::string& body) {
  write_file_whole(path, "#!/bin/sh\n" + body);
  fs::permissions(path, fs::perms::owner_all);
}

Outcome gpu_sh(const TempFolder& folder, std::vector<std::string> more = {}, std::vector<std::string> peer = {}) {
  std::vector<std::string> argv = {script(), "--out", folder / "out", "--device", "onednn", "--small"};
  argv.insert(argv.end(), more.begin(), more.end());
  argv.insert(argv.end(), {echelon_binary(), folder / "tests.sh"});
  argv.insert(argv.end(), peer.begin(), peer.end());
  return run_process({.argv = argv, .cwd = folder.path(), .env = {}, .limit_s = 120});
}

// Writes two tests of a device; the second ends with `code`, and a name has a comma.
void write_tests(const TempFolder& folder, int code) {
  write_program(folder / "tests.sh",
                "case $1 in\n--list-test-names-only) echo plain ops; echo 'halves, too' ;;\n'plain ops') "
                ";;\n'halves\\, too') echo 'it is asked' >&2; exit " +
                    std::to_string(code) + " ;;\n*) exit 9 ;;\nesac\n");
}

std::string file_of(const TempFolder& folder, const std::string& name) {
  return read_file_whole(folder / ("out/" + name));
}

}  // namespace

TEST_CASE("gpu.sh asks everything of a device, keeps what went well, and compares with a peer", "[bench]") {
  const TempFolder folder;
  write_tests(folder, 0);
  write_program(folder / "peer.sh", "echo '{\"rate\": 100.0}'\n");
  const Outcome all = gpu_sh(folder, {}, {folder / "peer.sh"});
  INFO(all.out << all.err);
  REQUIRE(all.code == 0);
  const std::string summary = file_of(folder, "summary.md");
  for (const std::string stage : kStages) {
    INFO(stage);
    CHECK(fs::exists(folder / ("out/" + stage + ".done")));
    CHECK_THAT(summary, Catch::Contains("## " + stage + " ("));
  }
  CHECK_THAT(summary, !Catch::Contains("FAILED") && Catch::Contains("tests: 2 passed, 0 failed"));
  CHECK_THAT(file_of(folder, "learn.txt"), Catch::Contains("lenet, loss after 12 steps on onednn and on reference: ") &&
                                               Catch::Contains("equal within 5 %"));
  CHECK_THAT(file_of(folder, "exchange.txt"),
             Catch::Contains("lenet trained on onednn, test loss by onednn and by reference: ") &&
                 Catch::Contains("lenet resumed from reference, loss on reference and on onednn: ") &&
                 !Catch::Contains("NOT EQUAL"));
  CHECK_THAT(file_of(folder, "ranks.txt"), Catch::Contains("on 2 ranks and on 1: ") && Catch::Contains("equal within"));
  CHECK_THAT(file_of(folder, "steps.txt"), Catch::Contains("| lenet | 8 | f32 | ") && Catch::Contains(" | 100 | "));
  CHECK_THAT(file_of(folder, "profile.txt"), Catch::Contains("optimiser") && Catch::Contains("conv_forward"));
  CHECK_THAT(file_of(folder, "memory.txt"), Catch::Contains("lenet:8: ") && Catch::Contains("MiB on the device"));
  CHECK_THAT(file_of(folder, "graphs.txt"), Catch::Contains("left out"));

  write_program(folder / "tests.sh", "exit 1\n");  // must not be called again
  const Outcome again = gpu_sh(folder, {}, {folder / "peer.sh"});
  CHECK(again.code == 0);
  CHECK_THAT(again.out, Catch::Contains("== contract: done before") && Catch::Contains("== sanitizer: done before"));
  CHECK(file_of(folder, "summary.md") == summary);

  const Outcome other = run_process(
      {.argv = {script(), "--out", folder / "out", "--device", "onednn", echelon_binary(), folder / "tests.sh"},
       .cwd = folder.path(),
       .env = {}});
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Catch::Contains("name another folder"));
}

TEST_CASE("gpu.sh goes on after a stage that fails, names it, and asks it again", "[bench]") {
  const TempFolder folder;
  write_tests(folder, 1);
  const Outcome first = gpu_sh(folder, {"--only", "contract,memory"});
  CHECK(first.code == 1);
  CHECK_THAT(first.out, Catch::Contains("failed: halves, too\ntests: 1 passed, 1 failed") &&
                            Catch::Contains("it is asked") && Catch::Contains("MiB on the device") &&
                            Catch::EndsWith("failed: contract\n"));
  CHECK_THAT(file_of(folder, "summary.md"), Catch::Contains("## contract (FAILED, see contract.log)"));
  write_tests(folder, 0);
  const Outcome second = gpu_sh(folder, {"--only", "contract,memory"});
  CHECK(second.code == 0);
  CHECK_THAT(second.out, Catch::Contains("tests: 2 passed, 0 failed") && Catch::Contains("== memory: done before"));
}

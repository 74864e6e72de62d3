// SPDX-License-Identifier: Apache-2.0
// The batch scripts of slurm/ and of studies under a bash whose Slurm is a few lines of sh.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <tuple>

#include "base/atomic_file.hpp"
#include "study/slurm.hpp"
#include "study/study.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

// Puts commands of Slurm beside the script: srun ends at once with `code`, the job is in `state`, scontrol notes that
// it was called.
void put_slurm(const test::TempFolder& folder, int code, const std::string& state) {
  const auto put = [&](const std::string& name, const std::string& body) {
    std::ofstream(folder / name) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  };
  put("srun", fmt::format("exit {}", code));
  put("squeue", "echo " + state);
  put("scontrol", "echo \"$@\" >> \"" + folder / "requeued" + "\"");
  put("scancel", "exit 1");
  put("echelon", "exit 0");
}

// Runs each script under such a Slurm, with `early` in its environment. check(outcome, whether it went back into the
// queue) is called for each.
void each_script(int code, const std::string& state, const std::string& early,
                 const std::function<void(const test::Outcome&, bool)>& check) {
  const test::TempFolder folder;
  put_slurm(folder, code, state);
  write_file_whole(folder / "s.toml",
                   "name = \"s\"\n[data]\ntrain = \"nowhere\"\n[model]\nzoo = \"lenet\"\n[study]\nranks = [1]\n");
  const std::string study = folder / "study.sbatch";
  write_file_whole(study, slurm_jobs(load_study(folder / "s.toml", {}), "echelon", folder.path()).front().text);
  for (const std::string& script : {std::filesystem::absolute("slurm/train.sbatch").string(),
                                    std::filesystem::absolute("slurm/scaling_array.sbatch").string(), study}) {
    std::filesystem::remove(folder / "requeued");
    const test::Outcome outcome = test::run_process({.argv = {"bash", script, "config.toml"},
                                                     .cwd = folder.path(),
                                                     .env = {{"PATH", folder.path() + ":" + std::getenv("PATH")},
                                                             {"early", early},
                                                             {"SLURM_NTASKS", "1"},
                                                             {"RANKS", "1"}},
                                                     .limit_s = 60});
    INFO(script << "\n" << outcome.out << outcome.err);
    check(outcome, std::filesystem::exists(folder / "requeued"));
  }
}

TEST_CASE("a variable `early` of the user's environment is no signal to a batch script", "[study]") {
  // A TERM would make 143 the loss of ranks, for which the job goes back into the queue.
  each_script(143, "RUNNING Job", "TERM", [](const test::Outcome& outcome, bool requeued) {
    CHECK(outcome.code == 143);
    CHECK_FALSE(requeued);
  });
}

TEST_CASE("a stopped run goes back into the queue, also when its time is over, but not when it was cancelled",
          "[study]") {
  const std::vector<std::tuple<std::string, int, bool>> cases = {
      {"RUNNING None", 75, true},    {"COMPLETING TimeLimit", 75, true}, {"COMPLETING None", 75, false},
      {"CANCELLED None", 75, false}, {"RUNNING TimeLimit", 0, false},    {"", 75, false}};
  for (const auto& [state, code, back] : cases)
    each_script(code, state, "", [&](const test::Outcome& outcome, bool requeued) {
      CAPTURE(state, code);
      CHECK(outcome.code == code);
      CHECK(requeued == back);
    });
}

}  // namespace
}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// The batch scripts of slurm/ and of studies under a bash whose Slurm is a few lines of sh.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.hpp"
#include "study/slurm.hpp"
#include "study/study.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

// Puts commands of Slurm beside the script: srun ends at once with 143, scontrol notes that it was called.
void put_slurm(const test::TempFolder& folder) {
  const auto put = [&](const std::string& name, const std::string& body) {
    std::ofstream(folder / name) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  };
  put("srun", "exit 143");
  put("squeue", "echo RUNNING");
  put("scontrol", "echo \"$@\" >> \"" + folder / "requeued" + "\"");
  put("scancel", "exit 1");
  put("echelon", "exit 0");
}

TEST_CASE("a variable `early` of the user's environment is no signal to a batch script", "[study]") {
  const test::TempFolder folder;
  put_slurm(folder);
  write_file_whole(folder / "s.toml",
                   "name = \"s\"\n[data]\ntrain = \"nowhere\"\n[model]\nzoo = \"lenet\"\n[study]\nranks = [1]\n");
  const std::string study = folder / "study.sbatch";
  write_file_whole(study, slurm_jobs(load_study(folder / "s.toml", {}), "echelon", folder.path()).front().text);
  for (const std::string& script : {std::filesystem::absolute("slurm/train.sbatch").string(),
                                    std::filesystem::absolute("slurm/scaling_array.sbatch").string(), study}) {
    const test::Outcome outcome = test::run_process({.argv = {"bash", script, "config.toml"},
                                                     .cwd = folder.path(),
                                                     .env = {{"PATH", folder.path() + ":" + std::getenv("PATH")},
                                                             {"early", "TERM"},
                                                             {"SLURM_NTASKS", "1"},
                                                             {"RANKS", "1"}},
                                                     .limit_s = 60});
    INFO(script << "\n" << outcome.out << outcome.err);
    // A TERM would make 143 the loss of ranks, for which the job goes back into the queue.
    CHECK(outcome.code == 143);
    CHECK(!std::filesystem::exists(folder / "requeued"));
  }
}

}  // namespace
}  // namespace echelon

#include "study/slurm.hpp"

#include <fmt/format.h>

namespace echelon::inline study {
namespace {

// In single quotes, for the shell.
std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string command_of(const StudyPlan& study, const std::string& echelon) {
  std::string command = fmt::format("{} scale {}", quoted(echelon), quoted(study.file));
  for (const std::string& set : study.sets) command += " --set " + quoted(set);
  return command;
}

std::string heading(const StudyPlan& study, const std::string& what, std::int64_t ranks, const std::string& log) {
  std::string text =
      fmt::format("#!/bin/bash\n#SBATCH --job-name={}-{}\n#SBATCH --ntasks={}\n", study.name, what, ranks);
  text += "#SBATCH --open-mode=append\n";
  text += fmt::format("#SBATCH --output={}\n", log);
  for (const std::string& option : study.slurm) text += fmt::format("#SBATCH {}\n", option);
  return text;
}

// The step in the background, signals passed on to it; back into the queue where it was stopped early.
constexpr const char* kRun = R"sh(&
step=$!
# A program that is only starting would be killed by a signal that it does not handle yet.
trap 'until [ $SECONDS -ge 10 ]; do sleep 1; done; kill -USR1 $step' USR1
trap 'kill -TERM $step' TERM
wait $step
code=$?
while kill -0 $step 2> /dev/null; do
  wait $step
  code=$?
done
# scancel, too, lets ranks leave with 75; its job is no longer running.
if [ $code -eq 75 ] && [ "$(squeue -h -j "$SLURM_JOB_ID" -o %T)" = RUNNING ]; then
  echo "stopped early; back into the queue"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
)sh";

}  // namespace

std::vector<SlurmJob> slurm_jobs(const StudyPlan& study, const std::string& echelon, const std::string& folder,
                                 int elements) {
  const std::string jobs = study.folder + "/jobs/", enter = fmt::format("cd {} || exit 3\n", quoted(folder));
  std::vector<SlurmJob> all;
  for (const std::int64_t ranks : study.ranks) {
    const std::string what = fmt::format("k{}", ranks);
    all.push_back({jobs + what + ".sbatch",
                   heading(study, what, ranks, jobs + what + (elements > 1 ? "-%a.log" : ".log")) +
                       (elements > 1 ? fmt::format("#SBATCH --array=1-{}\n", elements) : "") +
                       "#SBATCH --signal=B:USR1@120\n#SBATCH --requeue\nset -u\n" + enter +
                       fmt::format("srun --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 --ntasks={} {} --ranks {} ",
                                   ranks, command_of(study, echelon), ranks) +
                       kRun});
  }
  all.push_back({jobs + "report.sbatch",
                 heading(study, "report", 1, jobs + "report.log") + "set -u\n" + enter + command_of(study, echelon) +
                     " --report\n",
                 true});
  return all;
}

}  // namespace echelon::inline study

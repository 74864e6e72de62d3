// SPDX-License-Identifier: Apache-2.0
#include "study/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace echelon::inline study {
namespace {

// The word in single quotes for the shell.
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

bool asks_for_gpus(const std::string& option) {
  const auto has = [&](const char* word) { return option.find(word) != std::string::npos; };
  return option.starts_with("-G") || has("gpu") || has("gres");
}

// The study's own options come last, because Slurm uses the later of two values.
std::string heading(const StudyPlan& study, const std::string& what, std::int64_t ranks, const std::string& log,
                    const std::string& more = "") {
  std::string text =
      fmt::format("#!/bin/bash\n#SBATCH --job-name={}-{}\n#SBATCH --ntasks={}\n", study.name, what, ranks);
  text += "#SBATCH --open-mode=append\n";
  text += fmt::format("#SBATCH --output={}\n", log);
  text += more;
  for (const std::string& option : study.slurm) text += fmt::format("#SBATCH {}\n", option);
  return text;
}

// Runs the step in the background and forwards signals to it; requeues the job if the run can continue. The scripts in
// slurm/ end with the same lines (tests/unit/study).
constexpr const char* kRun = R"sh(&
step=$!
# In an array the job's number alone may mean every element.
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-${SLURM_JOB_ID:-none}}
asked=
# srun passes USR1 on to the ranks; TERM and HUP would make it kill them, INT would stay with it.
ask() {
  [ "$asked" = INT ] || asked=$1
  again=1
  # A program that is only starting would be killed by a signal that it does not handle yet.
  until [ $SECONDS -ge 10 ]; do sleep 1; done
  if [ "$1" = HUP ]; then scancel --signal=HUP "$job"; else kill -USR1 $step 2> /dev/null; fi
}
trap 'ask USR1' USR1 USR2
trap 'ask TERM' TERM
trap 'ask INT' INT
trap 'ask HUP' HUP
[ -z "$early" ] || ask "$early"

# A signal ends a wait early; the step's own end is what counts.
again=1
while [ $again ]; do
  again=
  wait $step
  code=$?
done

restarts=${ECHELON_RESTARTS:-10}
case $code:$asked in
  *:INT) back= ;;
  75:*) back="stopped early with a good checkpoint" ;;
  7:* | 137:* | 143:?* | 255:?*) back="ranks were lost" ;;
  *) back= ;;
esac
if [ "$back" ] && [ "$code" -ne 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -ge "$restarts" ]; then
  echo "$back, and Slurm has restarted this job $SLURM_RESTART_COUNT times (ECHELON_RESTARTS=$restarts): it ends" >&2
  back=
fi
# scancel, too, lets ranks leave with 75; its job is no longer running. A job is completing when its time is over.
if [ "$back" ] && [[ $(squeue -h -j "$job" -o '%T %r') =~ ^RUNNING|^COMPLETING\ TimeLimit ]]; then
  echo "$back; back into the queue"
  scontrol requeue "$job" || echo "the job cannot go back into the queue: submit the same command again" >&2
fi
exit "$code"
)sh";

}  // namespace

std::vector<SlurmJob> slurm_jobs(const StudyPlan& study, const std::string& echelon, const std::string& folder,
                                 int elements) {
  const std::string jobs = study.folder + "/jobs/", enter = fmt::format("cd {} || exit 3\n", quoted(folder));
  const bool gpus = study.on_gpus && std::none_of(study.slurm.begin(), study.slurm.end(), asks_for_gpus);
  std::vector<SlurmJob> all;
  for (const std::int64_t ranks : study.ranks) {
    const std::string what = fmt::format("k{}", ranks);
    const std::string array = elements > 1 ? fmt::format("#SBATCH --array=1-{}\n", elements) : "";
    all.push_back({jobs + what + ".sbatch",
                   heading(study, what, ranks, jobs + what + (elements > 1 ? "-%a.log" : ".log"),
                           array + (gpus ? "#SBATCH --gpus-per-task=1\n" : "") +
                               "#SBATCH --signal=B:USR1@120\n#SBATCH --requeue\n") +
                       "set -u\nearly=\n" + enter +
                       fmt::format("srun --mpi=\"${{ECHELON_MPI:-pmix}}\" --cpu-bind=none --kill-on-bad-exit=1 "
                                   "${{SLURM_CPUS_PER_TASK:+\"--cpus-per-task=$SLURM_CPUS_PER_TASK\"}} "
                                   "--ntasks={} {} --ranks {} ",
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

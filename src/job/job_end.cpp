// SPDX-License-Identifier: Apache-2.0
#include "job/job_end.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string_view>
#include <utility>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "job/launch.hpp"
#include "job/signals.hpp"

namespace echelon::inline job {
namespace {

constexpr const char* kOurs = "ECHELON_JOB_END_TIME";
constexpr const char* kSlurms = "SLURM_JOB_END_TIME";
constexpr const char* kMeaning = "seconds since 1970 (date +%s)";
constexpr double kUsualKillWait_s = 30;         // Slurm's own default
constexpr int kLate = 124;                      // exit code of timeout
constexpr std::int64_t kLatest = 253402300799;  // the last second of the year 9999

struct JobEnd {
  double at_s = 0;    // 0: not known
  double most_s = 0;  // half of the time left at the start
  double kill_wait_s = kUsualKillWait_s;
  std::string refusal, note;
};
JobEnd job_end;

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

double now() { return static_cast<double>(std::time(nullptr)); }

// The number of an array job alone would name all its elements.
std::string slurm_job() {
  const std::string array = value_of("SLURM_ARRAY_JOB_ID"), element = value_of("SLURM_ARRAY_TASK_ID");
  return array.empty() || element.empty() ? value_of("SLURM_JOB_ID") : array + "_" + element;
}

bool is_job_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789_") == std::string::npos;
}

// Returns the first characters that a shell command prints, and its status as from waitpid.
std::pair<std::string, int> answer_of(const std::string& command) {
  std::string answer;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe != nullptr)
    for (int c; (c = std::fgetc(pipe)) != EOF && answer.size() < 200;) answer += static_cast<char>(c);
  return {answer, pipe != nullptr ? ::pclose(pipe) : -1};
}

bool is_first_rank() {
  const char* rank = rank_in_environment();
  return rank == nullptr || std::string_view(rank) == "0";
}

// "KillWait                = 30 sec"
void ask_for_kill_wait() {
  const auto [answer, status] = answer_of("timeout 5 scontrol show config 2>/dev/null | grep -i '^ *KillWait *='");
  const std::size_t equals = answer.find('=');
  if (status != 0 || equals == std::string::npos) return;
  const double seconds = std::strtod(answer.c_str() + equals + 1, nullptr);
  if (seconds > 0) job_end.kill_wait_s = seconds;
}

// Parses "1795910000", or "NONE" and the like if the job has no limit.
void ask_slurm() {
  const std::string job = slurm_job();
  if (!is_job_number(job)) return;
  auto [answer, status] = answer_of(fmt::format("SLURM_TIME_FORMAT=%s timeout 5 squeue -h -j {} -o %e 2>&1", job));
  const bool late = status > 0 && WIFEXITED(status) && WEXITSTATUS(status) == kLate;
  answer = answer.substr(0, answer.find('\n'));
  if (status == 0 && !answer.empty() && answer.find_first_not_of("0123456789") == std::string::npos)
    job_end.at_s = std::strtod(answer.c_str(), nullptr);
  else if (status != 0 || answer.find(':') != std::string::npos)
    job_end.note = fmt::format(
        "the end of job {} is unknown, so that run.stop_before_end_s has no effect: squeue {}; {} can give it", job,
        late             ? "has not answered in 5 s"
        : answer.empty() ? "cannot be started"
                         : "says " + answer,
        kOurs);
}

}  // namespace

void find_job_end() try {
  job_end = {};
  if (const auto ours = whole_in_environment(kOurs, kMeaning, 1, kLatest)) {
    job_end.at_s = static_cast<double>(*ours);
    if (job_end.at_s <= now())
      job_end.refusal = fmt::format(
          "{}={}: this time passed {} ago, so that each start would stop after one step; set it again in each job, "
          "e.g. {}=$(($(date +%s) + 3600))",
          kOurs, *ours, seconds_text(now() - job_end.at_s), kOurs);
  } else if (const auto slurms = whole_in_environment(kSlurms, kMeaning, 0, kLatest))
    job_end.at_s = static_cast<double>(*slurms);
  else if (is_first_rank())
    ask_slurm();
  if (job_end.at_s > 0 && is_first_rank() && is_job_number(slurm_job())) ask_for_kill_wait();
  job_end.most_s = std::max(0.0, left_of_job_s() / 2);
} catch (const ConfigError& error) {
  job_end.refusal = error.what();
}

void require_job_end() {
  if (!job_end.refusal.empty()) throw ConfigError(job_end.refusal);
}

std::string job_end_note(double stop_before_end_s) {
  static std::atomic<bool> told{false};
  if (stop_before_end_s <= 0 || told.exchange(true)) return {};
  if (stop_before_end_s <= job_end.most_s || job_end.at_s <= 0) return job_end.note;
  return fmt::format("the job ends in {}: the run stops {} before, not run.stop_before_end_s = {:g}",
                     seconds_text(std::max(0.0, left_of_job_s())), seconds_text(job_end.most_s), stop_before_end_s);
}

double term_deadline_s() { return std::min(kTermDeadline_s, job_end.kill_wait_s * kTermDeadline_s / kUsualKillWait_s); }

double left_of_job_s() {
  if (job_end.at_s <= 0) return std::numeric_limits<double>::infinity();
  return job_end.at_s - now();
}

bool job_end_is_near(double margin_s) {
  return margin_s > 0 && job_end.at_s > 0 && left_of_job_s() <= std::min(margin_s, job_end.most_s);
}

}  // namespace echelon::inline job

// SPDX-License-Identifier: Apache-2.0
// Checks signals through the launcher of this verification, and a run that is killed and resumed.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/hash_rng.hpp"
#include "base/launchers.hpp"
#include "base/text.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "h5/file.hpp"
#include "job/launcher.hpp"
#include "job/signals.hpp"
#include "verify/check.hpp"

extern "C" char** environ;

namespace echelon::verify {
namespace {

namespace fs = std::filesystem;

constexpr int kControlChannel = 1;
constexpr double kPatience_s = 5;

std::string name_of_process(pid_t process) {
  try {
    std::string name = read_file_whole(fmt::format("/proc/{}/comm", process));
    return name.substr(0, name.find('\n'));
  } catch (const std::exception&) {
    return "?";
  }
}

// Sends USR1 to the launcher that started rank 0, which forwards it to all ranks. A process that was started alone
// sends it to itself, because any other parent might die of it.
std::string check_signals(VerifyContext& context) {
  Engine engine(context.transport());
  Group group(engine, kControlChannel);
  const std::string parent = group.of_first(name_of_process(::getppid()));
  const bool launcher = parent == "mpirun" || parent == "mpiexec" || parent == "orterun" || parent == "prterun";
  needs(context.ranks == 1 || launcher,
        fmt::format("the parent of rank 0 is {}, not mpirun; in a Slurm job try scancel --signal=USR1 JOBID", parent));
  ECHELON_CHECK(!take_signal_wishes().requeue, "USR1, USR2 or TERM came before this check");
  group.barrier();
  if (context.rank == 0) ::kill(launcher ? ::getppid() : ::getpid(), SIGUSR1);
  const double begin_s = now_s();
  while (!take_signal_wishes().requeue && now_s() - begin_s < kPatience_s) ::usleep(1000);
  ECHELON_CHECK(take_signal_wishes().requeue, "USR1 to {} did not reach rank {} on {} within {} s", parent,
                context.rank, context.hosts[static_cast<std::size_t>(context.rank)], kPatience_s);
  return fmt::format("USR1 by {} after {}", launcher ? parent : "itself", seconds_text(now_s() - begin_s));
}

// Writes a tiny experiment into a folder; each class has its own pattern.
void write_experiment(const std::string& folder) {
  constexpr std::int64_t kSamples = 256, kPixels = 64, kClasses = 10;
  fs::create_directories(folder + "/train");
  const HashRng patterns(1, "verify");
  std::vector<std::uint8_t> pixels, labels;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const auto label = static_cast<std::uint64_t>(i % kClasses);
    labels.push_back(static_cast<std::uint8_t>(label));
    for (std::int64_t p = 0; p < kPixels; ++p)
      pixels.push_back(
          static_cast<std::uint8_t>(12 * patterns.at(label).uniform(static_cast<std::uint64_t>(p)) +
                                    4 * patterns.at(kClasses).uniform(static_cast<std::uint64_t>(i * kPixels + p))));
  }
  h5::Writer writer(folder + "/train/shard-0.h5");
  writer.attribute("format", std::string("echelon-samples"));
  writer.attribute("version", std::int64_t{1});
  writer.attribute("classes", kClasses);
  writer.attribute("scale", 1.0 / 16);
  writer.write_all("samples", DType::u8, {kSamples, 1, 8, 8}, pixels.data(), {.chunk_rows = 64});
  writer.write_all("labels", DType::u8, {kSamples}, labels.data(), {.chunk_rows = 64});
  writer.publish();
  write_file_whole(folder + "/run.toml", fmt::format("[model]\nzoo = \"digits_cnn\"\n[data]\ntrain = \"{0}/train\"\n"
                                                     "sharding = \"record\"\n[batch]\nglobal = 32\n"
                                                     "[train]\nepochs = 0\nsteps = 60\n"
                                                     "[device]\nkind = \"onednn\"\nthreads = 1\n"
                                                     "[checkpoint]\nevery_steps = 5\n"
                                                     "[run]\nresults = \"{0}/results\"\nprogress = \"none\"\n",
                                                     folder));
}

// Runs `echelon train` with two ranks as threads of one process, which needs no launcher and is not told of one.
std::vector<std::string> command_of(const VerifyContext& context, const std::string& folder, const std::string& name,
                                    const std::string& set) {
  std::vector<std::string> words = {"env"};
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string entry = *at, variable = entry.substr(0, entry.find('='));
    if (is_left_by_launcher(variable) || variable.starts_with("SLURM_") || variable.starts_with("ECHELON_"))
      words.insert(words.end(), {"-u", variable});
  }
  const std::vector<std::string> rest = {"sh",
                                         "-c",
                                         "exec \"$0\" \"$@\" >> " + folder + "/log.txt 2>&1",
                                         context.program,
                                         "train",
                                         folder + "/run.toml",
                                         "--local-ranks",
                                         "2",
                                         "--set",
                                         "name=" + name,
                                         "--set",
                                         set};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

int end_of(Launcher& child, double limit_s, const std::string& log) {
  const double until_s = now_s() + limit_s;
  while (!child.poll() && now_s() < until_s) ::usleep(5000);
  ECHELON_CHECK(child.poll().has_value(), "a run of 60 steps has not ended after {} s; see {}", limit_s, log);
  return *child.poll();
}

std::string checkpoints_of(const std::string& results, const std::string& name) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(results + "/" + name, error))
    if (entry.is_directory()) return entry.path().string() + "/checkpoints";
  return {};
}

std::vector<double> weights_of(const std::string& checkpoint) {
  const h5::Reader reader(checkpoint);
  std::vector<double> all;
  for (const h5::DatasetInfo& data : reader.datasets()) {
    if (!data.name.starts_with("weights/")) continue;
    std::vector<double> values(static_cast<std::size_t>(data.shape.elems()));
    reader.read_all(data.name, values.data(), DType::f64);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::string kill_and_resume(const VerifyContext& context) {
  constexpr double kRun_s = 60;
  const std::string folder = context.folder + "/kill", log = folder + "/log.txt", results = folder + "/results";
  write_experiment(folder);
  Launcher whole(command_of(context, folder, "whole", "device.pace_ms=0"), {});
  ECHELON_CHECK_EQ(end_of(whole, kRun_s, log), 0, "a run of 60 steps failed; see {}", log);
  std::int64_t killed_at = 0;
  {
    Launcher child(command_of(context, folder, "killed", "device.pace_ms=10"), {});
    for (const double until_s = now_s() + kRun_s; killed_at < 10 && now_s() < until_s; ::usleep(2000)) {
      ECHELON_CHECK(!child.poll(), "the run ended before it could be killed; see {}", log);
      if (const auto newest = glance_at_newest(checkpoints_of(results, "killed"))) killed_at = newest->step;
    }
    child.signal(SIGKILL);
    ECHELON_CHECK_EQ(end_of(child, kRun_s, log), 128 + SIGKILL, "the exit code of the killed process");
  }
  Launcher again(command_of(context, folder, "killed", "device.pace_ms=10"), {});
  ECHELON_CHECK_EQ(end_of(again, kRun_s, log), 0, "the same command did not resume; see {}", log);
  ECHELON_CHECK(read_file_whole(log).find("resuming") != std::string::npos,
                "the run started over instead of resuming; see {}", log);
  const auto expected = find_checkpoint(checkpoints_of(results, "whole"));
  const auto resumed = find_checkpoint(checkpoints_of(results, "killed"));
  ECHELON_CHECK(expected && resumed && resumed->step == expected->step, "no checkpoint of step 60; see {}", log);
  ECHELON_CHECK(weights_of(resumed->path) == weights_of(expected->path),
                "the resumed run ends with different weights from one that was not killed; see {}", log);
  return fmt::format("killed after step {}, the same bits at step {}", killed_at, resumed->step);
}

// Runs on rank 0; the others wait for its result.
std::string check_kill(VerifyContext& context) {
  if (context.rank > 0) return "";
  return kill_and_resume(context);
}

}  // namespace

std::vector<VerifyCheck> process_checks() {
  return {{"process", "a signal through the launcher", check_signals},
          {"process", "killed, and resumed by the same command", check_kill, 200, true}};
}

}  // namespace echelon::verify

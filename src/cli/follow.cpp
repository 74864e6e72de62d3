// SPDX-License-Identifier: Apache-2.0
// echelon eval RUN --follow: evaluates the checkpoints of a run while another job trains it (report/aside.hpp).
//
// Ends once the run has ended and its newest checkpoint is evaluated. Checkpoints that the run removed
// (checkpoint.keep) before they were read are left out, with one line each.
#include "cli/follow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/trained_data.hpp"
#include "cli/opened_model.hpp"
#include "comm/group.hpp"
#include "data/dataset.hpp"
#include "h5/file.hpp"
#include "inference/inference.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"
#include "job/run_folder.hpp"
#include "report/aside.hpp"
#include "report/status.hpp"

namespace echelon::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kTurnsChannel = 2;  // besides the channels of `infer`

// The run as rank 0 sees it. All ranks do what rank 0 decides.
class Follower {
 public:
  explicit Follower(const FollowOptions& options) : options_(options), alive_at_s_(now_s()) {}

  // Returns the path of the next checkpoint to evaluate (its hash: `hash`), ":" if there is none now, "" if the run has
  // ended. Throws EnvironmentError if the run shows no sign of life for options.patience_s.
  std::string next() {
    const std::string run = run_in(options_.model);
    if (run.empty()) return wait("has no run yet");
    if (run_ != run) take_earlier(run);
    const std::optional<Status> status = newest_status();
    if (const std::string sign = status ? fmt::format("{} {} {}", attempt_, status->state, status->step) : "";
        sign != sign_)
      sign_ = sign, alive_at_s_ = now_s();
    for (const auto& [step, path] : checkpoints()) {
      hash_ = hash_of(path);
      if (!hash_.empty() && done_.insert(hash_).second) return path;
    }
    const bool ended = status && status->state != "running";
    if (!ended) return wait("shows no sign of life");
    return std::exchange(ended_, true) ? "" : ":";  // look twice: a run that lost workers continues in a new attempt
  }

  const std::string& run() const { return run_; }
  const std::string& hash() const { return hash_; }

 private:
  // "" if the run has just removed it.
  static std::string hash_of(const std::string& checkpoint) {
    try {
      return hex64(checksum64(read_file_whole(manifest_path(checkpoint))));
    } catch (const EnvironmentError&) {
      return {};
    }
  }

  std::string wait(const char* what) {
    ended_ = false;
    if (now_s() - alive_at_s_ > options_.patience_s)
      throw EnvironmentError(
          fmt::format("{}: {} for {} (--patience)", options_.model, what, seconds_text(options_.patience_s)));
    return ":";
  }

  void take_earlier(const std::string& run) {
    run_ = run;
    for (const AsideEvaluation& earlier : read_aside(run)) done_.insert(earlier.checkpoint);
  }

  std::optional<Status> newest_status() {
    const std::vector<std::string> attempts = attempts_of(run_);
    if (attempts.empty()) return {};
    attempt_ = attempts.back();
    return read_status(attempt_);
  }

  // Returns checkpoints by step; only those with a manifest count, because it is written last.
  std::map<std::int64_t, std::string> checkpoints() const {
    std::map<std::int64_t, std::string> found;
    std::error_code error;
    for (fs::directory_iterator entry(run_ + "/checkpoints", error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string path = entry->path().string();
      long long step = 0;
      if (std::sscanf(entry->path().filename().c_str(), "step-%lld.h5", &step) != 1 || !path.ends_with(".h5")) continue;
      if (is_part(path)) continue;
      std::error_code gone;
      if (fs::exists(manifest_path(path), gone)) found[step] = path;
    }
    return found;
  }

  FollowOptions options_;
  std::string run_, attempt_, sign_, hash_;
  std::set<std::string> done_;  // hashes of manifests
  double alive_at_s_;
  bool ended_ = false;
};

// Everything that is read from a checkpoint, which the run may remove at any time.
struct Opened : OpenedModel {
  std::int64_t epoch = 0;
};

Opened open(const FollowOptions& options, const std::string& path, const HostSlot& slot) {
  Opened opened{
      open_model({.model = path, .data = options.data, .device = options.device, .threads = options.threads}, slot)};
  opened.epoch = h5::Reader(path).attribute_int("epoch");
  return opened;
}

EpochFigures evaluate(Opened& opened, Engine* ranks) {
  const double start_s = now_s();
  const std::vector<std::string>& metrics = opened.saved.config.evaluate.metrics;
  const InferenceSummary summary = infer(opened.model, opened.data, opened.saved.config, {.ranks = ranks});
  EpochFigures f;
  f.step = opened.saved.step;
  f.epoch = opened.epoch;
  f.test_loss = summary.sums.loss / summary.sums.weight;
  if (!std::isfinite(f.test_loss)) throw NumericError(opened.saved.checkpoint + ": the loss is not a finite number");
  if (opened.model.graph().counts_correct()) f.test_accuracy = summary.accuracy;
  if (opened.data.predicts_tokens()) f.test_perplexity = std::exp(f.test_loss);
  if (summary.classes.any()) take_class_figures(chosen_figures(summary.classes.figures(), metrics), f);
  take_value_figures(chosen_figures(summary.values, metrics), f);
  f.seconds = now_s() - start_s;
  return f;
}

void print(const EpochFigures& f) {
  fmt::print("step {}  loss {:.5g}{}{}  {}\n", count_text(f.step), f.test_loss,
             std::isnan(f.test_accuracy) ? "" : fmt::format("  accuracy {:.2f} %", 100 * f.test_accuracy),
             std::isnan(f.test_perplexity) ? "" : fmt::format("  perplexity {:.4g}", f.test_perplexity),
             seconds_text(f.seconds));
  std::fflush(stdout);
}

}  // namespace

int follow(const FollowOptions& options, Engine* ranks) {
  HostSlot slot{};
  if (ranks != nullptr) slot = host_slot_of(ranks->transport());
  const auto together = [&](const std::function<void()>& body) {
    if (ranks == nullptr) return body();
    Group group(*ranks, kTurnsChannel);
    all_or_none(group, body);
  };
  Follower follower(options);
  for (;;) {
    std::string path;
    together([&] {
      if (slot.rank == 0) path = follower.next();
    });
    if (ranks != nullptr) path = Group(*ranks, kTurnsChannel).of_first(path);
    if (path.empty()) return kExitOk;
    if (path == ":") {
      std::this_thread::sleep_for(std::chrono::duration<double>(options.every_s));
      continue;
    }
    std::optional<Opened> opened;
    try {
      together([&] { opened.emplace(open(options, path, slot)); });
    } catch (const Error& error) {
      std::error_code ignored;  // files of a checkpoint are removed one by one
      const bool gone = !fs::exists(path, ignored) || !fs::exists(manifest_path(path), ignored);
      if (!(ranks == nullptr ? gone : Group(*ranks, kTurnsChannel).max(gone ? 1 : 0) > 0)) throw;
      if (slot.rank == 0) fmt::print("{}: removed by the run before it was read\n", path);
      continue;
    }
    const EpochFigures figures = evaluate(*opened, ranks);
    together([&] {
      if (slot.rank != 0) return;
      add_aside(follower.run(), {figures, follower.hash()});
      print(figures);
    });
  }
}

}  // namespace echelon::cli

#include "cli/study_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/foresee_launch.hpp"
#include "cli/search_text.hpp"
#include "config/parse.hpp"
#include "job/run_folder.hpp"
#include "report/status.hpp"
#include "study/placement.hpp"

namespace echelon::cli {
namespace {

constexpr double kBeat_s = 30;

int count_hosts(const std::vector<int>& hosts, const std::vector<int>& members) {
  std::vector<int> used;
  for (const int rank : members) used.push_back(hosts[static_cast<std::size_t>(rank)]);
  std::sort(used.begin(), used.end());
  return static_cast<int>(std::unique(used.begin(), used.end()) - used.begin());
}

}  // namespace

std::string folder_of(const StudyPlan& study, const StudyCell& cell) { return study.folder + "/" + cell.id; }

StudyLedger::StudyLedger(const StudyPlan& study, const GoalConfig& goal, std::vector<int> hosts)
    : study_(study), goal_(goal), hosts_(std::move(hosts)), progress_(cells_) {
  if (study_.search) {
    search_.emplace(study_);
    cells_ = replay_search(*search_, study_, goal_);
  } else {
    cells_ = cells_of(study_);
  }
  for (const StudyCell& cell : cells_) records_.push_back(read_cell(folder_of(study_, cell)));
}

void StudyLedger::begin() const {
  fmt::print("{}\n{}\n", progress_.begin_text(study_, records_), progress_.heading());
  std::fflush(stdout);
}

// Another cell of a search.
bool StudyLedger::propose() {
  if (!search_) return false;
  std::optional<StudyCell> cell = search_->propose();
  if (!cell) return false;
  records_.push_back(read_cell(folder_of(study_, *cell)));
  cells_.push_back(std::move(*cell));
  if (records_.back().over()) search_->learn(search_value(goal_, records_.back()));  // proposed a second time
  return true;
}

const StudyCell* StudyLedger::next() {
  for (current_ = 0; current_ < cells_.size() || propose(); ++current_) {
    CellRecord& record = records_[current_];
    if (record.over()) continue;
    if (study_.budget_hours > 0 && seconds() >= 3600 * study_.budget_hours) return nullptr;
    if (record.state == CellState::running && record.tries >= kTries) {
      close(current_, CellState::failed, kExitLostRank, fmt::format("its job ended with it {} times", kTries));
      continue;
    }
    if (!can_run(current_)) continue;
    record.state = CellState::running;
    ++record.tries;
    write_cell(folder_of(study_, cells_[current_]), record);
    return &cells_[current_];
  }
  return nullptr;
}

void StudyLedger::end(int code, double seconds) {
  const std::size_t i = current_;
  CellRecord& record = records_[i];
  record.seconds += seconds;
  const std::vector<std::string> attempts = attempts_of(run_path(load_config(study_.file, cells_[i].sets)));
  const auto status = attempts.empty() ? std::nullopt : read_status(attempts.back());
  if (!attempts.empty()) record.attempt = attempts.back();
  const std::string reason = status ? status->reason : "refused before its first step";
  if (code == kExitRequeue || code == kExitInterrupted) {
    record.state = CellState::waiting;
    --record.tries;
    write_cell(folder_of(study_, cells_[i]), record);
  } else if (code == kExitOk || code == kExitUnmet) {
    close(i, CellState::finished, code, reason);
  } else {
    close(i, code == kExitNumeric ? CellState::diverged : CellState::failed, code, reason);
  }
}

std::size_t StudyLedger::left() const {
  const auto over = static_cast<std::size_t>(
      std::count_if(records_.begin(), records_.end(), [](const CellRecord& record) { return record.over(); }));
  return progress_.total(study_) - over;
}

bool StudyLedger::any_failed() const {
  return std::any_of(records_.begin(), records_.end(),
                     [](const CellRecord& record) { return record.state == CellState::failed; });
}

double StudyLedger::seconds() const {
  double sum = 0;
  for (const CellRecord& record : records_) sum += record.seconds;
  return sum;
}

bool StudyLedger::can_run(std::size_t i) {
  const StudyCell& cell = cells_[i];
  CheckOptions launch;
  launch.config = study_.file;
  launch.sets = cell.sets;
  launch.ranks = cell.ranks;
  launch.hosts = count_hosts(hosts_, members_of(hosts_, cell.ranks, study_.placement));
  try {
    foresee_launch(launch);
    return true;
  } catch (const Error& error) {
    close(i, CellState::left_out, error.code(), error.what());
    return false;
  }
}

void StudyLedger::close(std::size_t i, CellState state, int code, const std::string& reason) {
  CellRecord& record = records_[i];
  record.state = state;
  record.exit_code = code;
  record.reason = reason;
  write_cell(folder_of(study_, cells_[i]), record);
  if (search_) search_->learn(search_value(goal_, record));
  const std::size_t total = progress_.total(study_);
  fmt::print("{}\n", progress_.line_text(total - left(), total, cells_[i], record, records_));
  std::fflush(stdout);
}

StudyHeartbeat::StudyHeartbeat(const StudyCell& cell) : cell_(cell), thread_([this] { beat(); }) {}

StudyHeartbeat::~StudyHeartbeat() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void StudyHeartbeat::beat() {
  const double start_s = now_s();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(kBeat_s), [this] { return over_; })) {
    fmt::print("{:>9}  {:>5}  {}: running for {}\n", "..", cell_.ranks, cell_.text, seconds_text(now_s() - start_s));
    std::fflush(stdout);
  }
}

}  // namespace echelon::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/study_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "cli/foresee_launch.hpp"
#include "cli/study_sharpness.hpp"
#include "cli/study_verbs.hpp"
#include "config/goal.hpp"
#include "config/parse.hpp"
#include "job/launch.hpp"
#include "job/run_folder.hpp"
#include "report/record.hpp"
#include "report/status.hpp"
#include "study/placement.hpp"

namespace echelon::cli {
namespace {

constexpr std::chrono::milliseconds kLook{20};

int count_hosts(const std::vector<int>& hosts, const std::vector<int>& members) {
  std::vector<int> used;
  for (const int rank : members) used.push_back(hosts[static_cast<std::size_t>(rank)]);
  std::sort(used.begin(), used.end());
  return static_cast<int>(std::unique(used.begin(), used.end()) - used.begin());
}

Config config_of(const StudyCell& cell) { return load_config(cell.file, cell.sets); }

// The file's modification time by the clock of the file system; 0 if there is no such file.
double modified_s(const std::string& path) {
  std::error_code error;
  const auto at = std::filesystem::last_write_time(path, error);
  return error ? 0 : std::chrono::duration<double>(at.time_since_epoch()).count();
}

}  // namespace

StudyLedger::StudyLedger(const StudyPlan& study, std::string launch, std::vector<int> hosts, int beside,
                         Decided decided)
    : study_(study),
      launch_(std::move(launch)),
      hosts_(std::move(hosts)),
      beside_(beside),
      decided_(std::move(decided)) {
  if (study_.search)
    search_.emplace(study_);
  else
    cells_ = cells_of(study_), order_ = run_order(study_, cells_);
  refresh();
}

void StudyLedger::refresh() {
  if (search_) search_->read();
  records_.resize(cells().size());
  for (std::size_t i = 0; i < records_.size(); ++i)
    if (!records_[i].over() || records_[i].state == CellState::stopped)
      records_[i] = read_cell(folder_of(study_, cells()[i]));
}

int StudyLedger::open_rounds() const {
  const std::vector<int> looks = looks_of(study_);
  for (const int look : looks) {
    for (std::size_t i = 0; i < cells_.size(); ++i)
      if (cells_[i].repeat <= look && !records_[i].over()) return look;
    if (look == looks.back()) break;
    if (!looked_.contains(look)) looked_[look] = decided_ && decided_(study_, cells_, records_);
    if (looked_[look]) return look;
  }
  return looks.back();
}

std::string StudyLedger::newest_attempt(std::size_t i) const {
  const StudyCell cell = cell_now(i);
  if (!leaves_a_run(study_, cell)) return "";
  const std::vector<std::string> attempts = attempts_of(run_path(config_of(cell)));
  return attempts.empty() ? "" : attempts.back();
}

std::int64_t StudyLedger::newest_step(std::size_t i) const {
  const StudyCell cell = cell_now(i);
  if (!leaves_a_run(study_, cell)) return 0;
  const auto saved = glance_at_newest(run_path(config_of(cell)) + "/checkpoints");
  return saved ? saved->step : 0;
}

void StudyLedger::save(std::size_t i) {
  const StudyCell& cell = cells()[i];
  CellRecord& record = records_[i];
  record.setting = cell.text;
  record.environment = fmt::format("{}", fmt::join(cell.environments, ", "));
  record.repeat = cell.repeat;
  record.seed = cell.seed;
  record.control = cell.control;
  write_cell(folder_of(study_, cell), record);
}

void StudyLedger::tidy() const {
  if (study_.keep == CellKeep::all) return;
  for (std::size_t i = 0; i < records_.size(); ++i)
    if (records_[i].over()) remove_checkpoints(folder_of(study_, cells()[i]));
}

void StudyLedger::begin() const {
  const StudyProgress progress(study_, cells());
  fmt::print("{}\n{}\n", progress.begin_text(records_), progress.heading());
  std::fflush(stdout);
}

StudyCell StudyLedger::cell_now(std::size_t i) const {
  if (!search_) return cells()[i];
  const std::size_t rung = trial_rungs(study_, records_[i]).figures.size();
  return at_rung(study_, cells()[i], std::min(rung, study_.rungs.size() - 1));
}

// Returns false if another process runs the cell. Otherwise the cell's record is the one its last process left.
bool StudyLedger::claim(std::size_t i) {
  const std::string folder = folder_of(study_, cells()[i]);
  make_folders(folder);
  auto lock = std::make_unique<RunLock>();
  try {
    lock->take(folder, job_id());
  } catch (const HeldError&) {
    return false;
  }
  records_[i] = read_cell(folder);
  claimed_ = std::move(lock);
  return true;
}

// Returns the circumstances of the death of a claimed cell.
CellDeath StudyLedger::death_of(std::size_t i) {
  CellRecord& record = records_[i];
  const std::string attempt = newest_attempt(i);
  const std::int64_t step = newest_step(i);
  CellDeath death{.launch = record.launch, .progressed = step > record.step};
  record.reason.clear();
  record.exit_code = kExitLostRank;
  if (attempt.empty() || attempt == record.before) return death;
  const auto status = read_status(attempt);
  if (!status || !status->exit_code) return death;
  if (status->state == "stopped") death.told = CellDeath::Told::stopped;
  if (status->state == "failed" && *status->exit_code != kExitLostRank) death.told = CellDeath::Told::error;
  death.told_s = modified_s(attempt + "/verdict.json");
  record.reason = status->reason;
  record.exit_code = *status->exit_code;
  return death;
}

// Settles the cells whose launches are gone. The caller holds the study's lock, so that no cell begins meanwhile.
void StudyLedger::settle_deaths() {
  std::vector<std::size_t> cells;
  std::vector<CellDeath> deaths;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (records_[i].state != CellState::running || records_[i].launch == launch_ || !claim(i)) continue;
    if (records_[i].state == CellState::running) {
      cells.push_back(i);
      deaths.push_back(death_of(i));
    }
    claimed_.reset();
  }
  const std::vector<Blame> blame = judge_deaths(deaths);
  for (std::size_t n = 0; n < cells.size(); ++n) {
    CellRecord& record = records_[cells[n]];
    if (blame[n] == Blame::cleared) record.deaths = 0;
    if (blame[n] == Blame::counted) ++record.deaths;
    record.state = CellState::waiting;
    save(cells[n]);
    if (record.deaths < kMostDeaths) continue;
    const std::string why = fmt::format("its job ended {} times while the cell ran{}{}", kMostDeaths,
                                        record.reason.empty() ? "" : "; the last time: ", record.reason);
    close(cells[n], CellState::failed, record.exit_code, why);
  }
}

// Begins a claimed cell. Returns false if it cannot run; it is then over.
bool StudyLedger::begin_cell(std::size_t i) {
  CellRecord& record = records_[i];
  if (!can_run(i)) {
    claimed_.reset();
    return false;
  }
  record.state = CellState::running;
  record.step = newest_step(i);
  record.before = newest_attempt(i);
  record.launch = launch_;
  save(i);
  current_ = i;
  return true;
}

// Begins a cell that is not over and that nobody runs. Of the cells whose launch has died, it begins one at a time in
// this launch, so that another death shows which cell caused it.
bool StudyLedger::begin_what_was_left() {
  const bool suspect_runs = std::any_of(records_.begin(), records_.end(), [this](const CellRecord& record) {
    return record.state == CellState::running && record.launch == launch_ && record.deaths > 0;
  });
  held_back_ = false;
  const int rounds = search_ ? 0 : open_rounds();
  for (std::size_t n = 0; n < records_.size(); ++n) {
    const std::size_t i = search_ ? n : order_[n];
    if (records_[i].over() || (!search_ && cells_[i].repeat > rounds)) continue;
    if (suspect_runs && records_[i].state == CellState::waiting && records_[i].deaths > 0) {
      held_back_ = true;
      continue;
    }
    if (!claim(i)) continue;
    if (!records_[i].over() && begin_cell(i)) return true;
    claimed_.reset();
  }
  return !search_ && open_rounds() > rounds && begin_what_was_left();
}

// The next move of a search, once each cell that is not over is in progress.
Promotion StudyLedger::promotion() const {
  std::vector<TrialRungs> trials;
  for (const CellRecord& record : records_) {
    trials.push_back(trial_rungs(study_, record));
    trials.back().under_way = !record.over();
  }
  const auto planned = static_cast<std::size_t>(study_.trials);
  if (study_.halving) return next_promotion(*study_.halving, study_.rungs.size(), trials, planned);
  return {records_.size() < planned ? Promotion::What::new_trial : Promotion::What::none};
}

StudyLedger::Next StudyLedger::next() {
  make_folders(study_.folder);
  RunLock deciding;
  while (!deciding.held()) try {
      deciding.take(study_.folder, job_id());
    } catch (const HeldError&) {
      std::this_thread::sleep_for(kLook);
    }
  for (;;) {
    refresh();
    settle_deaths();
    if (study_.budget_hours > 0 && seconds() >= 3600 * study_.budget_hours) return {};
    if (begin_what_was_left()) return {cell_now(current_)};
    if (!search_) return {.wait = held_back_};
    const Promotion promoted = promotion();
    if (promoted.what == Promotion::What::wait) return {.wait = true};
    if (promoted.what == Promotion::What::none) return {.wait = held_back_};
    if (promoted.what == Promotion::What::new_trial)
      search_->propose(records_);
    else if (claim(promoted.trial) && begin_cell(promoted.trial))
      return {cell_now(promoted.trial)};
    else
      std::this_thread::sleep_for(kLook);  // the process that ran its last rung releases it in a moment
  }
}

void StudyLedger::end(int code, double seconds) {
  const std::size_t i = current_;
  CellRecord& record = records_[i];
  const StudyCell cell = cell_now(i);
  record.seconds += seconds;
  record.attempt = newest_attempt(i);
  const auto status = record.attempt.empty() ? std::nullopt : read_status(record.attempt);
  const bool ran = code == kExitOk || code == kExitUnmet;
  const std::string reason = status                       ? status->reason
                             : leaves_a_run(study_, cell) ? "it was refused before its first step"
                             : ran                        ? ""
                                                          : failure_in(folder_of(study_, cell));
  if (code == kExitRequeue || code == kExitInterrupted) {
    record.state = CellState::waiting;
    record.deaths = 0;
    save(i);
  } else if (ran) {
    CellState state = CellState::finished;
    if (search_) {
      const Config config = config_of(cell);
      const RunRecord run = read_run(record.attempt);
      const bool at_goal = config.goal.stop && code == kExitOk;
      record.rungs.push_back({.epochs = at_goal ? study_.rungs.back() : config.train.epochs,
                              .figure = goal_figure(study_.goal.metric, test_figures(run))});
      if (record.rungs.back().epochs < study_.rungs.back()) state = CellState::stopped;
    }
    close(i, state, code, reason);
  } else {
    close(i, code == kExitNumeric ? CellState::diverged : CellState::failed, code, reason);
  }
  claimed_.reset();
}

std::size_t StudyLedger::left() const {
  std::size_t cells_left = search_ ? StudyProgress(study_, cells()).total() : cells_.size();
  for (std::size_t i = 0; i < records_.size(); ++i)
    if (records_[i].over() || !is_open(i)) --cells_left;
  const bool goes_on = study_.halving && promotion().what != Promotion::What::none;
  return std::max<std::size_t>(cells_left, goes_on ? 1 : 0);
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
  const StudyCell cell = cell_now(i);
  try {
    CheckOptions launch;
    launch.hosts = count_hosts(hosts_, members_of(hosts_, cell.ranks, cell.placement, cell.hosts));
    steps_ = 0;
    if (!leaves_a_run(study_, cell)) return true;
    launch.config = cell.file;
    launch.sets = cell.sets;
    launch.ranks = cell.ranks;
    const Foreseen foreseen = foresee_launch(launch, beside_);
    steps_ = foreseen.steps;
    records_[i].memory_bytes = foreseen.memory_bytes;
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
  if (study_.sharpness > 0 && state == CellState::finished && !record.attempt.empty())
    record.sharpness = sharpness_of(record.attempt, study_.sharpness);
  save(i);
  if (study_.keep == CellKeep::records && state != CellState::stopped)
    remove_checkpoints(folder_of(study_, cells()[i]));
  refresh();
  fmt::print("{}\n", StudyProgress(study_, cells()).line_text(cells()[i], records_[i], records_));
  std::fflush(stdout);
}

}  // namespace echelon::cli

#include "report/to_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/figures_json.hpp"

namespace echelon::inline report {
namespace {

namespace fs = std::filesystem;

// Attempts of the run, up to this one.
std::vector<std::string> attempts_up_to(const std::string& attempt) {
  std::vector<std::string> all;
  if (attempt.empty()) return all;
  const std::string last = fs::path(attempt).filename().string();
  for (const auto& entry : fs::directory_iterator(fs::path(attempt).parent_path())) {
    const std::string name = entry.path().filename().string();
    const bool number =
        !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number && name.size() == last.size() && name <= last && fs::exists(entry.path() / "metrics.jsonl"))
      all.push_back(entry.path().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Rows of an epoch count from the end of the one before; evaluations within an epoch have no time of their own, and
// take theirs by their step.
void place_in_time(std::vector<Evaluation>& within, double from_step, double from_s, const Evaluation& end) {
  for (Evaluation& evaluation : within)
    evaluation.seconds =
        from_s + (end.seconds - from_s) * (evaluation.step - from_step) / std::max(1.0, end.step - from_step);
}

void add_attempt(const std::string& attempt, double samples_a_step, std::vector<Evaluation>& all) {
  const std::string path = attempt + "/metrics.jsonl";
  double step = all.empty() ? 0 : all.back().step, seconds = all.empty() ? 0 : all.back().seconds;
  std::vector<Evaluation> within;
  std::istringstream lines(read_file_whole(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"type\":\"epoch\"") == std::string::npos && line.find("\"type\":\"test\"") == std::string::npos)
      continue;
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object()) continue;
    EpochFigures figures;
    try {
      take_figures(row, figures);
    } catch (const nlohmann::json::exception& error) {
      throw DataError(fmt::format("{}: a field has the wrong type: {}", path, error.what()));
    }
    Evaluation evaluation{.step = static_cast<double>(figures.step),
                          .samples = static_cast<double>(figures.step) * samples_a_step,
                          .seconds = seconds,
                          .test_loss = figures.test_loss,
                          .test_accuracy = figures.test_accuracy};
    if (row["type"] == "test") {
      within.push_back(evaluation);
      continue;
    }
    evaluation.seconds += figures.seconds;
    place_in_time(within, step, seconds, evaluation);
    all.insert(all.end(), within.begin(), within.end());
    within.clear();
    step = evaluation.step, seconds = evaluation.seconds;
    all.push_back(evaluation);
  }
}

}  // namespace

std::vector<Evaluation> evaluations_of(const RunRecord& run) {
  std::vector<Evaluation> all;
  for (const std::string& attempt : attempts_up_to(run.folder))
    add_attempt(attempt, static_cast<double>(run.global_batch), all);
  const double start_s = run.start_to_first_step_s - run.step_s.median;
  for (Evaluation& evaluation : all)
    if (start_s > 0) evaluation.seconds += start_s;
  std::erase_if(all, [](const Evaluation& e) { return std::isnan(e.test_loss) && std::isnan(e.test_accuracy); });
  return all;
}

Reach reach_of(const std::vector<Evaluation>& evaluations, const GoalConfig& goal) {
  const Evaluation* before = nullptr;
  for (const Evaluation& now : evaluations) {
    const double figure = goal_figure(goal.metric, now.test_loss, now.test_accuracy);
    if (!goal_met(goal, now.test_loss, now.test_accuracy)) {
      if (std::isfinite(figure)) before = &now;
      continue;
    }
    if (before == nullptr) return {now.samples, now.seconds};
    const double last = goal_figure(goal.metric, before->test_loss, before->test_accuracy);
    const double part = (goal.target - last) / (figure - last);
    return {before->samples + part * (now.samples - before->samples),
            before->seconds + part * (now.seconds - before->seconds)};
  }
  return {};
}

}  // namespace echelon::inline report

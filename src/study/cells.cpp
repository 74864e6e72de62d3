#include <fmt/format.h>

#include <cctype>

#include "base/check.hpp"
#include "base/checksum.hpp"
#include "config/parse.hpp"
#include "config/traits/rules.hpp"
#include "study/study.hpp"

namespace echelon::inline study {
namespace {

constexpr char kSeparator = '\x1f';  // between parts of a line; no key or value has it

// What a value adds to a cell.
struct Choice {
  std::string text;
  std::vector<std::string> sets;
};

// Letters and digits, everything else one hyphen.
std::string slug(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

// Every variant with every combination of values, in the order of the file; the last axis changes fastest.
std::vector<Choice> choices_of(const StudyPlan& study) {
  std::vector<Choice> all;
  for (const StudyVariant& variant : study.variants) all.push_back({variant.name, variant.sets});
  if (all.empty()) all.emplace_back();
  for (const StudyAxis& axis : study.axes) {
    std::vector<Choice> wider;
    for (const Choice& choice : all)
      for (const std::string& value : axis.values) {
        Choice next = choice;
        next.text += fmt::format("{}{} = {}", next.text.empty() ? "" : ", ", axis.key, value);
        next.sets.push_back(axis.key + "=" + value);
        wider.push_back(std::move(next));
      }
    all = std::move(wider);
  }
  return all;
}

// A cell that has finished is not run again for how it is run, or judged.
bool changes_training(const std::string& set) {
  const auto is = [&](std::string_view section) { return set.starts_with(section); };
  if (is("goal.")) return is("goal.metric=") || is("goal.target=") || is("goal.stop=");
  return !is("run.") && !is("cost.");
}

std::vector<std::string> mode_sets(StudyMode mode) {
  if (mode == StudyMode::weak) return {"batch.scale_with_replicas=true"};
  if (mode == StudyMode::to_target) return {"goal.stop=true"};
  return {};
}

}  // namespace

StudyCell make_cell(const StudyPlan& study, const std::string& text, const std::vector<std::string>& sets, int ranks,
                    int repeat) {
  constexpr std::size_t kSlug = 80;
  StudyCell cell;
  cell.ranks = ranks;
  cell.repeat = repeat;
  cell.text = text;
  cell.sets = study.sets;
  for (const std::string& set : mode_sets(study.mode)) cell.sets.push_back(set);
  cell.sets.insert(cell.sets.end(), sets.begin(), sets.end());
  std::string all;
  for (std::size_t i = 0; i < cell.sets.size(); ++i)
    if (i >= study.sets.size() || changes_training(cell.sets[i])) all += cell.sets[i] + "\n";
  if (study.warmup_steps > 1) all += fmt::format("study.warmup_steps={}\n", study.warmup_steps);
  const std::string words = slug(text).substr(0, kSlug);
  cell.id =
      fmt::format("k{}_{}{}r{}-{:06x}", ranks, words, words.empty() ? "" : "_", repeat, checksum64(all) & 0xffffff);
  const std::string peak = fmt::format("run.measure_peak={}", !study.search);
  cell.sets.insert(cell.sets.begin(), peak);  // a study's --set may unset it
  if (study.repeats > 1)
    cell.sets.push_back(fmt::format("seed={}", study.seed + static_cast<std::uint64_t>(repeat) - 1));
  cell.sets.push_back("run.results=" + study.folder);
  cell.sets.push_back("name=" + cell.id);
  return cell;
}

StudyCell at_rung(const StudyPlan& study, const StudyCell& trial, std::size_t rung) {
  if (!study.halving) return trial;
  StudyCell cell = trial;
  cell.sets.push_back(fmt::format("train.epochs={}", study.rungs[rung]));
  const OptimiserConfig optimiser = load_config(study.file, trial.sets).optimiser;
  const ScheduleTraits* schedule = find_traits(kSchedules, optimiser.schedule);
  if (schedule && schedule->spans_the_run && optimiser.schedule_epochs == 0)
    cell.sets.push_back(fmt::format("optimizer.schedule_epochs={}", study.rungs.back()));
  return cell;
}

std::string folder_of(const StudyPlan& study, const StudyCell& cell) { return study.folder + "/" + cell.id; }

std::string to_line(const StudyCell& cell) {
  std::string line = fmt::format("{0}{4}{1}{4}{2}{4}{3}", cell.id, cell.text, cell.ranks, cell.repeat, kSeparator);
  for (const std::string& set : cell.sets) line += kSeparator + set;
  return line;
}

StudyCell cell_of_line(const std::string& line) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == kSeparator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  ECHELON_CHECK_GE(parts.size(), 4u);
  return {.id = parts[0],
          .text = parts[1],
          .ranks = std::stoi(parts[2]),
          .repeat = std::stoi(parts[3]),
          .sets = {parts.begin() + 4, parts.end()}};
}

std::vector<StudyCell> cells_of(const StudyPlan& study) {
  const std::vector<Choice> choices = choices_of(study);
  std::vector<StudyCell> cells;
  for (int repeat = 1; repeat <= static_cast<int>(study.repeats); ++repeat)
    for (const std::int64_t ranks : study.ranks)
      for (const Choice& choice : choices)
        cells.push_back(make_cell(study, choice.text, choice.sets, static_cast<int>(ranks), repeat));
  return cells;
}

}  // namespace echelon::inline study

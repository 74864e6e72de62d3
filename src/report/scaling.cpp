// SPDX-License-Identifier: Apache-2.0
#include "report/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/strategies.hpp"
#include "report/codec_accuracy.hpp"
#include "report/separate_groups.hpp"

namespace echelon::inline report {
namespace {

using Runs = std::vector<const RunRecord*>;

// Whether a library sends the run's messages without counting them.
bool by_library(const RunFigures& run) { return algorithm_traits(run.algorithm).library && run.ranks > 1; }

template <class Get>
std::vector<double> values_of(const Runs& runs, const Get& get) {
  std::vector<double> values;
  for (const RunRecord* run : runs) values.push_back(get(*run));
  return values;
}

std::string batches_text(const RunRecord& run) {
  const auto& list = run.batch_per_replica;
  if (list.empty()) return "-";
  if (std::all_of(list.begin(), list.end(), [&](auto b) { return b == list.front(); }))
    return fmt::format("{}", list.front());
  std::string out;
  for (const std::int64_t b : list) out += fmt::format("{}{}", out.empty() ? "" : "+", b);
  return out;
}

// The batch of each replica if it is the same for all; else 0.
std::int64_t even_batch(const RunRecord& run) {
  const auto& list = run.batch_per_replica;
  const bool even = !list.empty() && std::all_of(list.begin(), list.end(), [&](auto b) { return b == list.front(); });
  return even ? list.front() : 0;
}

std::string hash_text(const Runs& runs) {
  constexpr std::size_t kDigits = 8;
  std::set<std::string> hashes;
  for (const RunRecord* run : runs) hashes.insert(run->config_hash);
  const std::string first = runs.front()->config_hash.substr(0, kDigits);
  return hashes.size() == 1 ? first : fmt::format("{} + {}", first, hashes.size() - 1);
}

// The keys by which rows differ, in their sort order.
using Cell =
    std::tuple<int, int, int, int, std::string, std::string, std::string, std::string, std::string, std::string>;
Cell cell_of(const RunRecord& run) {
  return {run.ranks,    run.servers,   run.hosts,      run.mesh.parts(),  run.mesh_text,
          run.strategy, run.algorithm, run.codec_text, batches_text(run), run.shaped};
}

std::string list_text(const std::set<std::string>& words, const char* between = ", ") {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

// The facts that all rows share. Those in which they differ are columns of the tables.
std::string facts_of(const Runs& runs) {
  const RunRecord& run = *runs.front();
  std::set<std::string> exchanges, codecs;
  for (const RunRecord* one : runs) {
    exchanges.insert(exchange_name(*one));
    codecs.insert(one->codec_text);
  }
  std::string facts = fmt::format("{} with {} parameters, {} on {}, {}", run.model.empty() ? "model" : run.model,
                                  count_text(run.parameters), run.dtype, run.device,
                                  run.device_text.empty() ? "device unknown" : run.device_text);
  if (exchanges.size() == 1) facts += fmt::format(", exchange: {}", *exchanges.begin());
  if (codecs.size() == 1 && *codecs.begin() != "none") facts += ", coded as " + *codecs.begin();
  return facts;
}

// Adds notes on how to read the rows.
void add_notes(Study& study, const Runs& runs) {
  if (study.paced)
    study.notes.emplace_back(
        "paced: ops slept for tabulated times, but the exchange was real. The rates show the exchange and the "
        "schedule, not the arithmetic of this machine; losses and accuracies are meaningless and left out.");
  std::set<std::string> networks;
  for (const RunRecord* run : runs) networks.insert(run->shaped);
  networks.erase("");
  if (!networks.empty())
    study.notes.push_back(fmt::format(
        "shaped: messages between groups of ranks were slowed down to cards of {} ([network]); times of the exchange "
        "are those of that network.",
        list_text(networks, "; ")));
  for (const RunRecord* run : runs)
    if (by_library(*run)) {
      study.notes.push_back(
          fmt::format("exchange.algorithm = \"{}\" leaves the exchange to the {} library, whose bytes and messages are "
                      "not counted; the formula is that of a ring.",
                      run->algorithm, run->algorithm == "mpi" ? "MPI" : "NCCL"));
      break;
    }
  if (study.kind == StudyKind::single) return;
  if (study.baseline_ranks != 1)
    study.notes.push_back(fmt::format(
        "There is no run on 1 rank: speed-up and efficiency are relative to the run on {0} ranks (1.00x, 100 %).",
        study.baseline_ranks));
  const ScalingRow* best = &study.rows.front();
  const auto add_once = [&](std::string note) {
    if (std::find(study.notes.begin(), study.notes.end(), note) == study.notes.end())
      study.notes.push_back(std::move(note));
  };
  for (const ScalingRow& row : study.rows) {
    if (row.rate.median < best->rate.median && row.ranks > best->ranks)
      add_once(fmt::format("{} ranks are slower than {}: {}.", row.ranks, best->ranks,
                           row.speed_up < 1 ? "distribution costs more than it gains"
                                            : "there are too many for this step or this machine"));
    if (row.rate.median > best->rate.median) best = &row;
    const double ratio = row.wire_bytes_per_step / row.formula_bytes_per_step;
    if (!by_library(row) && std::fabs(ratio - 1) > 0.005)
      study.notes.push_back(fmt::format("On {} ({}), {:.1f} % of the formula's bytes were sent.",
                                        counted(row.ranks, "rank"), row.mesh_text, 100 * ratio));
  }
  std::set<std::string> commits, devices, threads;
  for (const RunRecord* run : runs) {
    commits.insert(run->provenance.git_hash);
    devices.insert(run->device_text);
    threads.insert(fmt::format("{}", run->threads));
  }
  if (commits.size() > 1) study.notes.push_back("The rows come from different builds: " + list_text(commits) + ".");
  if (devices.size() > 1)
    study.notes.push_back("The rows come from different devices: " + list_text(devices, "; ") + ".");
  if (threads.size() > 1)
    study.notes.push_back("Ranks had different numbers of threads (" + list_text(threads) +
                          "): the speed-up is not due to the ranks alone; set device.threads.");
}

// " (paced)", " (shaped)", " (paced, shaped)"; "" for a run that is neither.
std::string marks_of(const RunRecord& run) {
  if (run.shaped.empty()) return run.paced ? " (paced)" : "";
  return run.paced ? " (paced, shaped)" : " (shaped)";
}

std::string title_of(StudyKind kind, const RunRecord& run) {
  const std::string paced = marks_of(run);
  if (kind == StudyKind::strong)
    return fmt::format("Strong scaling{}: {}, global batch {}", paced, run.model, run.global_batch);
  return fmt::format("Weak scaling{}: {}, batch {} a rank", paced, run.model, even_batch(run));
}

Study make_study(StudyKind kind, const Runs& runs) {
  std::map<Cell, Runs> cells;
  for (const RunRecord* run : runs) cells[cell_of(*run)].push_back(run);
  Study study;
  study.kind = kind;
  study.title = title_of(kind, *runs.front());
  study.facts = facts_of(runs);
  study.paced = runs.front()->paced;
  for (const auto& [cell, repeats] : cells) study.rows.push_back(make_row(repeats));
  const ScalingRow base = study.rows.front();
  study.baseline_ranks = base.ranks;
  for (ScalingRow& row : study.rows) {
    row.speed_up = row.rate.median / base.rate.median;
    row.efficiency = row.speed_up * base.ranks / row.ranks;
  }
  add_notes(study, runs);
  return study;
}

int rank_counts(const Runs& runs) {
  std::set<int> counts;
  for (const RunRecord* run : runs) counts.insert(run->ranks);
  return static_cast<int>(counts.size());
}

// Splits one group of runs into studies; runs that are in no study go to `alone`.
void split_group(const Runs& runs, std::vector<Study>& studies, Runs& alone) {
  std::map<std::int64_t, Runs> by_global, by_even;
  for (const RunRecord* run : runs) {
    by_global[run->global_batch].push_back(run);
    if (even_batch(*run) > 0) by_even[even_batch(*run)].push_back(run);
  }
  std::set<const RunRecord*> placed;
  const auto add = [&](StudyKind kind, const Runs& part) {
    if (rank_counts(part) < 2) return;
    studies.push_back(make_study(kind, part));
    placed.insert(part.begin(), part.end());
  };
  for (const auto& [batch, part] : by_global) add(StudyKind::strong, part);
  for (const auto& [batch, part] : by_even)  // ranks that only split the model do not change the global batch
    if (std::any_of(part.begin(), part.end(),
                    [&first = *part[0]](auto* run) { return run->global_batch != first.global_batch; }))
      add(StudyKind::weak, part);
  for (const RunRecord* run : runs)
    if (!placed.contains(run)) alone.push_back(run);
}

void add_single_runs(ScalingReport& report, const Runs& alone) {
  for (const bool paced : {false, true}) {
    std::map<std::tuple<std::string, Cell, std::int64_t>, Runs> cells;
    for (const RunRecord* run : alone)
      if (run->paced == paced) cells[{run->group, cell_of(*run), run->global_batch}].push_back(run);
    if (cells.empty()) continue;
    Study study;
    study.title = paced ? "Single runs (paced)" : "Single runs";
    study.facts = "These runs cannot be compared: a study needs the same experiment on at least two numbers of ranks.";
    study.paced = paced;
    Runs all;
    for (const auto& [cell, repeats] : cells) {
      study.rows.push_back(make_row(repeats));
      all.insert(all.end(), repeats.begin(), repeats.end());
    }
    add_notes(study, all);
    report.studies.push_back(std::move(study));
  }
}

}  // namespace

std::string exchange_name(const RunFigures& run) {
  const StrategyTraits* strategy = find_traits(kStrategies, run.strategy);
  return run.strategy + (strategy == nullptr || strategy->all_reduces() ? ", " + run.algorithm : "");
}

Spread range_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), *low, *high};
}

ScalingRow make_row(const Runs& runs) {
  const RunRecord& first = *runs.front();
  ScalingRow row;
  static_cast<RunFigures&>(row) = combine_runs({runs.begin(), runs.end()});
  row.attempts = static_cast<int>(runs.size());
  row.mesh_text = first.mesh_text;
  row.codec_text = first.codec_text;
  row.hash = hash_text(runs);
  row.batch_text = batches_text(first);
  row.rate = range_of(values_of(runs, [](auto& run) { return run.samples_per_s.median; }));
  if (runs.size() == 1 && first.steps_together()) row.rate.low = first.samples_per_s.p25;
  if (runs.size() == 1 && first.steps_together()) row.rate.high = first.samples_per_s.p75;
  row.percent = time_percent(row.time_split_s);
  row.has_split = std::accumulate(row.percent.begin(), row.percent.end(), 0.0) > 0;
  if (by_library(row)) row.wire_bytes_per_step = row.messages_per_step = kUnknown;
  if (row.paced)  // losses are meaningless
    row.train_loss = row.test_loss = row.test_accuracy = kUnknown;
  else
    row.accuracy = range_of(values_of(runs, [](auto& run) { return run.test_accuracy; }));
  return row;
}

double ScalingRow::flops_per_s(double flops_of_sample, double seconds) const {
  const double samples = counted_samples() / std::max(1, ranks);
  return seconds > 0 ? flops_of_sample * samples / seconds : kUnknown;
}

double ScalingRow::hidden_share() const {
  const double whole = exchange_exposed_s + exchange_hidden_s;
  return whole > 0 ? exchange_hidden_s / whole : kUnknown;
}

ScalingReport make_scaling(const std::vector<RunRecord>& runs) {
  ScalingReport report;
  std::map<std::string, Runs> groups;
  for (const RunRecord& run : runs) {
    const std::string why = why_uncounted(run);
    if (why.empty()) {
      groups[run.group].push_back(&run);
      report.counted.push_back(run);
    } else {
      report.left_out.push_back({run.folder, run.state.empty() ? "unknown" : run.state, why});
    }
  }
  Runs alone;
  for (const auto& [group, members] : groups) split_group(members, report.studies, alone);
  std::stable_sort(report.studies.begin(), report.studies.end(),
                   [](const Study& a, const Study& b) { return a.kind < b.kind; });
  add_single_runs(report, alone);
  report.warnings = codec_warnings(report.counted);
  for (const RunRecord& run : report.counted)
    for (const std::string& finding : run.findings)
      report.warnings.push_back(fmt::format("{}: {}", run.folder, finding));
  for (std::string& sentence : separation_warnings(report.counted)) report.warnings.push_back(std::move(sentence));
  return report;
}

}  // namespace echelon::inline report

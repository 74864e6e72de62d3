#include "report/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "report/codec_accuracy.hpp"

namespace echelon {
namespace {

using Runs = std::vector<const RunRecord*>;

// Whose messages a library sends that counts none.
bool by_library(const RunRecord& run) { return (run.algorithm == "mpi" || run.algorithm == "nccl") && run.ranks > 1; }

double median(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (values.empty()) return kUnknown;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

template <class Get>
std::vector<double> values_of(const Runs& runs, const Get& get) {
  std::vector<double> values;
  for (const RunRecord* run : runs) values.push_back(get(*run));
  return values;
}

template <class Get>
double median_of(const Runs& runs, const Get& get) {
  return median(values_of(runs, get));
}

template <class Get>
double largest_of(const Runs& runs, const Get& get) {
  double largest = kUnknown;
  for (const double value : values_of(runs, get)) largest = std::fmax(largest, value);
  return largest;
}

Spread range_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), *low, *high};
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

// The batch of each replica, where it is the same for all; else 0.
std::int64_t even_batch(const RunRecord& run) {
  const auto& list = run.batch_per_replica;
  const bool even = !list.empty() && std::all_of(list.begin(), list.end(), [&](auto b) { return b == list.front(); });
  return even ? list.front() : 0;
}

TimeSplit sum_of_splits(const Runs& runs) {
  TimeSplit sum;
  for (const RunRecord* run : runs) {
    const TimeSplit& split = run->time_split;
    sum.data += split.data;
    sum.forward += split.forward;
    sum.backward += split.backward;
    sum.split += split.split;
    sum.exchange += split.exchange;
    sum.optimizer += split.optimizer;
    sum.hooks += split.hooks;
    sum.other += split.other;
    sum.total += split.total;
  }
  return sum;
}

// One row from repetitions of the same run.
ScalingRow make_row(const Runs& runs) {
  const RunRecord& first = *runs.front();
  ScalingRow row;
  row.ranks = first.ranks;
  row.servers = first.servers;
  row.hosts = first.hosts;
  row.threads = first.threads;
  row.attempts = static_cast<int>(runs.size());
  row.device = first.device;
  row.paced = first.paced;
  row.name = first.name;
  row.global_batch = first.global_batch;
  row.batch_per_replica = batches_text(first);
  row.samples_per_s = range_of(values_of(runs, [](auto& run) { return run.samples_per_s.median; }));
  if (runs.size() == 1) {
    row.samples_per_s.low = first.samples_per_s.p25;
    row.samples_per_s.high = first.samples_per_s.p75;
  }
  row.step_s = median_of(runs, [](auto& run) { return run.step_s.median; });
  const TimeSplit split = sum_of_splits(runs);
  row.percent = time_percent(split);
  row.has_split = std::accumulate(row.percent.begin(), row.percent.end(), 0.0) > 0;
  row.wire_bytes_per_step = median_of(runs, [](auto& run) { return run.wire_bytes_per_step; });
  row.formula_bytes_per_step = median_of(runs, [](auto& run) { return run.formula_bytes_per_step; });
  row.messages_per_step = median_of(runs, [](auto& run) { return run.messages_per_step; });
  if (by_library(first)) row.wire_bytes_per_step = row.messages_per_step = kUnknown;
  row.peak_rss_mb = largest_of(runs, [](auto& run) { return run.peak_rss_mb; });
  row.device_peak_mb = largest_of(runs, [](auto& run) { return run.device_peak_mb; });
  row.start_to_first_step_s = median_of(runs, [](auto& run) { return run.start_to_first_step_s; });
  if (!row.paced) {  // a paced run learns nothing
    row.train_loss = median_of(runs, [](auto& run) { return run.train_loss; });
    row.test_accuracy = range_of(values_of(runs, [](auto& run) { return run.test_accuracy; }));
  }
  return row;
}

std::string facts_of(const RunRecord& run) {
  return fmt::format("{} with {} parameters, {} on {}, {}, {} exchange by {}{}",
                     run.model.empty() ? "model" : run.model, count_text(run.parameters), run.dtype, run.device,
                     run.device_text.empty() ? "device unknown" : run.device_text, run.strategy, run.algorithm,
                     run.codec == "none" ? "" : " coded as " + run.codec_text);
}

std::string list_text(const std::set<std::string>& words, const char* between = ", ") {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

// What a reader must know before believing the rows.
void add_notes(Study& study, const Runs& runs) {
  if (study.paced)
    study.notes.push_back(
        "paced: ops slept for the time their table gives them, the exchange was real. The rates show the exchange and "
        "the schedule, not this machine's arithmetic; losses and accuracies mean nothing and are left out.");
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
        "There is no run on 1 rank: speed-up and efficiency are against the run on {0} ranks (1.00x, 100 %).",
        study.baseline_ranks));
  const ScalingRow* best = &study.rows.front();
  for (const ScalingRow& row : study.rows) {
    if (row.samples_per_s.median < best->samples_per_s.median && row.ranks > best->ranks)
      study.notes.push_back(
          fmt::format("{} ranks are slower than {}: {}.", row.ranks, best->ranks,
                      row.speed_up < 1 ? "worse than not distributing" : "too many for this step or this machine"));
    if (row.samples_per_s.median > best->samples_per_s.median) best = &row;
    const double ratio = row.wire_bytes_per_step / row.formula_bytes_per_step;
    if (!by_library(*runs.front()) && std::fabs(ratio - 1) > 0.005)
      study.notes.push_back(
          fmt::format("On {} ranks {:.1f} % of the formula's bytes were sent.", row.ranks, 100 * ratio));
  }
  std::set<std::string> commits, devices, threads;
  for (const RunRecord* run : runs) {
    commits.insert(run->commit);
    devices.insert(run->device_text);
    threads.insert(fmt::format("{}", run->threads));
  }
  if (commits.size() > 1) study.notes.push_back("The rows come from different builds: " + list_text(commits) + ".");
  if (devices.size() > 1)
    study.notes.push_back("The rows come from different devices: " + list_text(devices, "; ") + ".");
  if (threads.size() > 1)
    study.notes.push_back("Ranks had different numbers of threads (" + list_text(threads) +
                          "): the speed-up is not that of the ranks alone; set device.threads.");
}

std::string title_of(StudyKind kind, const RunRecord& run) {
  const std::string paced = run.paced ? " (paced)" : "";
  if (kind == StudyKind::strong)
    return fmt::format("Strong scaling{}: {}, global batch {}", paced, run.model, run.global_batch);
  return fmt::format("Weak scaling{}: {}, batch {} a rank", paced, run.model, even_batch(run));
}

Study make_study(StudyKind kind, const Runs& runs) {
  std::map<std::array<int, 3>, Runs> cells;  // (ranks, servers, hosts)
  for (const RunRecord* run : runs) cells[{run->ranks, run->servers, run->hosts}].push_back(run);
  Study study;
  study.kind = kind;
  study.title = title_of(kind, *runs.front());
  study.facts = facts_of(*runs.front());
  study.paced = runs.front()->paced;
  for (const auto& [cell, repeats] : cells) study.rows.push_back(make_row(repeats));
  const ScalingRow base = study.rows.front();
  study.baseline_ranks = base.ranks;
  for (ScalingRow& row : study.rows) {
    row.speed_up = row.samples_per_s.median / base.samples_per_s.median;
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

// Studies of one group of runs; runs that are in none go to `alone`.
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
  for (const auto& [batch, part] : by_even) add(StudyKind::weak, part);
  for (const RunRecord* run : runs)
    if (!placed.contains(run)) alone.push_back(run);
}

// Why an attempt does not count; "" where it does.
std::string uncounted(const RunRecord& run) {
  if (!run.has_summary) return run.reason.empty() ? "it left no summary" : run.reason;
  if (run.state != "finished") return run.reason.empty() ? "it did not finish" : run.reason;
  if (std::isnan(run.samples_per_s.median) || run.samples_per_s.median <= 0) return "no step of this attempt was timed";
  return {};
}

void add_single_runs(ScalingReport& report, const Runs& alone) {
  for (const bool paced : {false, true}) {
    std::map<std::tuple<std::string, int, int, int, std::int64_t>, Runs> cells;
    for (const RunRecord* run : alone)
      if (run->paced == paced)
        cells[{run->group, run->ranks, run->servers, run->hosts, run->global_batch}].push_back(run);
    if (cells.empty()) continue;
    Study study;
    study.title = paced ? "Single runs (paced)" : "Single runs";
    study.facts = "Nothing to compare them with: a study needs the same experiment on at least two numbers of ranks.";
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

TimePercent time_percent(const TimeSplit& split) {
  TimePercent parts = {split.data,     split.forward,   split.backward, split.split,
                       split.exchange, split.optimizer, split.hooks,    split.other};
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  const double whole = std::max(sum, split.total);
  if (!(whole > 0)) return {};
  parts.back() += whole - sum;
  // Tenths of a percent, the largest remainders rounded up.
  TimePercent remainder{};
  int left = 1000;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double exact = parts[i] / whole * 1000;
    parts[i] = std::floor(exact);
    remainder[i] = exact - parts[i];
    left -= static_cast<int>(parts[i]);
  }
  for (; left > 0; --left) {
    const auto largest = std::max_element(remainder.begin(), remainder.end());
    parts[static_cast<std::size_t>(largest - remainder.begin())] += 1;
    *largest = -1;
  }
  for (double& part : parts) part /= 10;
  return parts;
}

ScalingReport make_scaling(const std::vector<RunRecord>& runs) {
  ScalingReport report;
  std::map<std::string, Runs> groups;
  for (const RunRecord& run : runs) {
    const std::string why = uncounted(run);
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
  return report;
}

}  // namespace echelon

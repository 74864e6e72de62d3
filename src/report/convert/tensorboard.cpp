// SPDX-License-Identifier: Apache-2.0
#include "report/convert/tensorboard.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "report/convert/timeline.hpp"
#include "report/figures_list.hpp"

namespace echelon::inline report {
namespace {

namespace fs = std::filesystem;

// Integers and floats as little-endian bytes, as this host has them.
template <class T>
void put_fixed(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The wire format of protobuf: a key (field number and wire type), then the value.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}
void put_text(std::string& out, int field, std::string_view text) {
  put_key(out, field, Wire::bytes);
  put_varint(out, text.size());
  out += text;
}
void put_double(std::string& out, int field, double value) {
  put_key(out, field, Wire::fixed64);
  put_fixed(out, value);
}
void put_float(std::string& out, int field, float value) {
  put_key(out, field, Wire::fixed32);
  put_fixed(out, value);
}

void put_record(std::string& out, const std::string& data) {
  const auto masked = [](std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8U; };
  std::string length;
  put_fixed(length, static_cast<std::uint64_t>(data.size()));
  out += length;
  put_fixed(out, masked(length));
  out += data;
  put_fixed(out, masked(data));
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event(double wall_s, std::int64_t step) {
  std::string out;
  put_double(out, 1, wall_s);
  put_key(out, 2, Wire::varint);
  put_varint(out, static_cast<std::uint64_t>(step));
  return out;
}

// Summary: repeated value = 1 {tag = 1, simple_value = 2}.
void add_scalar(std::string& summary, const std::string& tag, double value) {
  if (std::isnan(value)) return;
  std::string one;
  put_text(one, 1, tag);
  put_float(one, 2, static_cast<float>(value));
  put_text(summary, 1, one);
}

// Adds every known number of a row except its position.
template <class Figures>
std::string scalars(const Figures& row, const std::string& prefix, bool with_rates = true) {
  std::string summary;
  each(row, [&]<class T>(const Figure& figure, T& value) {
    if (!with_rates && std::string_view(figure.unit) == "1/s") return;
    const std::string tag = prefix + figure.name;
    if constexpr (figures::Is<T, double>) add_scalar(summary, tag, value);
    if constexpr (figures::Is<T, StepTimes>) {
      for (const TimePart& part : kClaimedTimes)
        add_scalar(summary, fmt::format("time/{}", part.name), value.*part.seconds);
      add_scalar(summary, "time/other", value.other_s());
      add_scalar(summary, "time/total", value.total_s);
    }
    if constexpr (figures::Is<T, std::optional<CodecFigures>>) {
      if (!value) return;
      add_scalar(summary, tag + "/bytes_after", value->bytes_after);
      add_scalar(summary, tag + "/residual_norm", value->residual_norm);
      add_scalar(summary, tag + "/density", value->density);
      add_scalar(summary, tag + "/tau", value->tau);
    }
  });
  return summary;
}

}  // namespace

std::string tensorboard_events(const RunRecord& run, const MetricsRows& rows) {
  const Timeline timeline(run, rows);
  std::string out, head;
  put_double(head, 1, timeline.start_s());
  put_text(head, 3, "brain.Event:2");
  put_record(out, head);
  std::multimap<std::int64_t, std::string> summaries;  // by step: TensorBoard takes a step that goes back for a restart
  // If replicas take steps of their own, a row is that of one replica, whose rate is not the run's.
  for (const StepFigures& step : rows.steps) summaries.emplace(step.step, scalars(step, "step/", run.steps_together()));
  for (const EpochFigures& epoch : rows.epochs) summaries.emplace(epoch.step, scalars(epoch, "epoch/"));
  for (const auto* tests : {&rows.tests, &rows.snapshots})
    for (const EpochFigures& test : *tests) summaries.emplace(test.step, scalars(test, "test/"));
  if (std::string rate; run.has_summary) {
    add_scalar(rate, "run/samples_per_s", run.samples_per_s.median);
    if (run.tokens_per_s) add_scalar(rate, "run/tokens_per_s", run.tokens_per_s->median);
    summaries.emplace(run.steps, rate);
  }
  for (const auto& [step, summary] : summaries) {
    if (summary.empty()) continue;
    std::string one = event(timeline.at_step(step), step);
    put_text(one, 5, summary);
    put_record(out, one);
  }
  return out;
}

std::vector<std::string> write_tensorboard(const std::vector<RunRecord>& runs, const std::string& folder) {
  std::vector<std::string> paths;
  for (const RunRecord& run : runs) {
    if (!fs::exists(run.folder + "/metrics.jsonl")) continue;
    const MetricsRows rows = read_metrics(run.folder);
    const fs::path attempt = fs::weakly_canonical(run.folder), of_run = attempt.parent_path();
    const fs::path to = fs::path(folder) / of_run.parent_path().filename() / of_run.filename() / attempt.filename();
    make_folders(to.string());
    paths.push_back((to / fmt::format("events.out.tfevents.{:.0f}.echelon", Timeline(run, rows).start_s())).string());
    write_file_whole(paths.back(), tensorboard_events(run, rows));
  }
  return paths;
}

}  // namespace echelon::inline report

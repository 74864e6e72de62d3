#include "train/hooks/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "train/codec_record.hpp"

namespace echelon {

using nlohmann::ordered_json;

namespace {

constexpr double kFlushEvery_s = 1;

ordered_json number_or_null(double value, bool known) {
  return known && std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

// Of the step before, by rank.
ordered_json ranks_json(const std::vector<RankStep>& ranks) {
  ordered_json json = {{"skew", arrival_skew_s(ranks)}};
  for (const RankStep& rank : ranks) {
    json["compute"].push_back(rank.compute_s);
    json["exposed"].push_back(rank.exposed_s);
    json["exchange"].push_back(rank.exchange_s);
    json["wire_bytes"].push_back(rank.wire_bytes);
  }
  return json;
}

}  // namespace

MetricsHook::MetricsHook(const std::string& path, std::int64_t every_steps)
    : path_(path), every_steps_(every_steps), file_(std::fopen(path.c_str(), "ae"), &std::fclose) {
  if (!file_) throw EnvironmentError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
}

void MetricsHook::write(const std::string& row, bool flush) {
  std::FILE* file = file_.get();
  bool good = std::fwrite(row.data(), 1, row.size(), file) == row.size() && std::fputc('\n', file) != EOF;
  if (flush || now_s() - last_flush_s_ > kFlushEvery_s) {
    good = std::fflush(file) == 0 && good;
    last_flush_s_ = now_s();
  }
  if (!good) throw EnvironmentError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

void MetricsHook::epoch_end(EpochRecord& record) {
  const ordered_json row = {{"type", "epoch"},
                            {"epoch", record.epoch},
                            {"step", record.step},
                            {"train_loss", number_or_null(record.train_loss, true)},
                            {"test_loss", number_or_null(record.test_loss, record.tested())},
                            {"test_accuracy", number_or_null(record.test_accuracy, record.test_accuracy >= 0)},
                            {"seconds", record.seconds}};
  epoch_row_ = row.dump();
}

void MetricsHook::step_recorded(const StepRecord& record) {
  const StepTimes& t = record.times;
  if (every_steps_ > 0 && record.step % every_steps_ == 0) {
    const double busy_s = t.total_s - t.hooks_s;
    ordered_json row = {{"type", "step"},
                        {"step", record.step},
                        {"epoch", record.epoch},
                        {"lr", record.learning_rate},
                        {"loss", number_or_null(record.loss, true)},
                        {"samples", record.samples},
                        {"samples_per_s", busy_s > 0 ? record.samples / busy_s : 0.0},
                        {"time",
                         {{"total", t.total_s},
                          {"data", t.data_wait_s},
                          {"forward", t.forward_s},
                          {"backward", t.backward_s},
                          {"split", t.split_s},
                          {"exchange", t.exchange_s},
                          {"optimizer", t.optimiser_s},
                          {"hooks", t.hooks_s},
                          {"other", t.other_s()}}}};
    if (record.outcome.exchange_busy_s > 0) {
      row["exchange"] = {{"exposed", record.outcome.exchange_wait_s},
                         {"hidden", std::max(0.0, record.outcome.exchange_busy_s - record.outcome.exchange_wait_s)},
                         {"wire_bytes", record.outcome.wire.bytes_sent}};
    }
    if (!record.ranks.empty()) row["ranks_before"] = ranks_json(record.ranks);
    if (record.tokens > 0) {
      row["tokens"] = record.tokens;
      row["tokens_per_s"] = busy_s > 0 ? record.tokens / busy_s : 0.0;
    }
    if (record.outcome.gradient_norm >= 0 || std::isnan(record.outcome.gradient_norm))
      row["gradient_norm"] = number_or_null(record.outcome.gradient_norm, true);
    if (record.outcome.loss_scale != 1 || record.outcome.skipped) {
      row["loss_scale"] = record.outcome.loss_scale;
      row["skipped"] = record.outcome.skipped;
    }
    if (const CodecRecord& codec = record.outcome.codec; codec.bytes_before > 0) row["codec"] = json_of(codec);
    write(row.dump(), false);
  }
  if (!epoch_row_.empty()) write(epoch_row_, true);
  epoch_row_.clear();
}

void MetricsHook::run_end(bool) {
  if (!epoch_row_.empty()) write(epoch_row_, true);
  epoch_row_.clear();
  if (std::fflush(file_.get()) != 0)
    throw EnvironmentError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

}  // namespace echelon

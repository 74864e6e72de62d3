// SPDX-License-Identifier: Apache-2.0
#include "cli/served_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "exchange/asynchronous/served.hpp"
#include "exchange/buckets.hpp"
#include "optim/rules.hpp"

namespace echelon::cli {
namespace {

constexpr int kWorkers = 4;
constexpr double kBucketBytes = 4 << 20;
constexpr double kRate = 1e-6;  // small, so that weights stay finite over any number of rounds

double median_seconds(int rounds, const std::function<void(int)>& pass) {
  std::vector<double> times;
  for (int round = -3; round < rounds; ++round) {
    const double start = now_s();
    pass(round + 3);
    if (round >= 0) times.push_back(now_s() - start);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

// Messages of all workers, so that none is still in a cache when it is applied.
class Messages {
 public:
  explicit Messages(std::size_t bytes) : bytes_(bytes), all_(kWorkers, std::vector<std::byte>(bytes)) {}
  std::byte* of(int worker) { return all_[static_cast<std::size_t>(worker)].data(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::vector<std::vector<std::byte>> all_;
};

}  // namespace

std::string served_table(const OptimiserConfig& optimiser, const ParameterSet& parameters, DType dtype, int rounds) {
  const std::vector<ArenaRange> own = make_buckets(parameters, size_of(dtype), kBucketBytes);
  Messages messages(static_cast<std::size_t>(parameters.elems()) * size_of(dtype));
  std::vector<std::byte> weights(messages.bytes());
  const double gigabytes = static_cast<double>(messages.bytes()) / 1e9;
  const double copy_s = median_seconds(rounds, [&](int round) {
    std::memcpy(messages.of(round % kWorkers), messages.of((round + 1) % kWorkers), messages.bytes());
  });
  Table table({"updates on a server", "update and answer", "updates GB/s", "memory GB/s", "relative to memcpy"});
  // `arenas`: number of arenas that one update and its answer read or write.
  const auto row = [&](const std::string& name, AsyncServing serving, int soft, double arenas) {
    serving.workers = kWorkers;
    serving.adds_up = soft > 1;
    AsyncServed served(open_device("reference", {.only_counts = true}), parameters, dtype, own, serving);
    served.begin(weights.data());
    const double seconds = median_seconds(rounds, [&](int round) {
      const int worker = round % kWorkers;
      for (std::size_t i = 0; i < own.size(); ++i) {
        const int b = static_cast<int>(i);
        const std::size_t at = static_cast<std::size_t>(own[i].begin) * size_of(dtype);
        const AsyncUpdate update{.factor = kRate, .new_version = round % soft == soft - 1};
        served.apply(b, worker, update, kRate, messages.of(worker) + at);
        served.answer(b, worker, messages.of(worker) + at);
      }
    });
    table.row({name, seconds_text(seconds), fmt::format("{:.2f}", gigabytes / seconds),
               fmt::format("{:.1f}", arenas * gigabytes / seconds),
               fmt::format("{:.2f}", arenas / 2 * copy_s / seconds)});
  };
  constexpr double kAdded = 3, kAnswered = 2;  // W += u; W to the message
  row("change of weights added", {}, 1, kAdded + kAnswered);
  row("scaled change, 4 per version", {}, 4, kAdded + kAnswered + 1.0 / 4 * (kAdded + 1));
  // u, W and the pulled weights are read and u is written; W is copied to the pulled weights.
  row("compensated change", {.compensation = {.lambda = 0.04}}, 1, 4 + kAdded + kAnswered + 2);
  for (const char* rule : {"sgd", "adam"}) {
    OptimiserConfig with = optimiser;
    with.rule = rule, with.clip_norm = 0;
    row(fmt::format("{} with states on the server", rule), {.optimiser = with}, 1,
        5 + 2 * static_cast<double>(rule_of(with).arenas()) + kAnswered);
  }
  return fmt::format("memcpy: {:.1f} GB/s read and written, on one core\n{}", 2 * gigabytes / copy_s, table.text());
}

}  // namespace echelon::cli

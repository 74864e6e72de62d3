// SPDX-License-Identifier: Apache-2.0
#include "train/trained_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "train/run_plan.hpp"

namespace echelon::inline train {

void TrainedBatches::add(const StepRecord& record) {
  if (record.epoch != epoch_ || record.entered_samples == 0) return;
  if (!runs_.empty() && runs_.back().second + 1 == record.batch)
    runs_.back().second = record.batch;
  else
    runs_.emplace_back(record.batch, record.batch);
}

std::string TrainedBatches::text() const {
  std::string out;
  for (const auto& [first, last] : runs_) out += fmt::format("{}{}-{}", out.empty() ? "" : " ", first, last);
  return out;
}

std::vector<std::int64_t> batches_in(const std::string& text) {
  std::vector<std::int64_t> batches;
  std::istringstream runs(text);
  std::int64_t first = 0, last = 0;
  for (char dash = 0; runs >> first >> dash >> last;)
    for (std::int64_t batch = first; batch <= last; ++batch) batches.push_back(batch);
  return batches;
}

namespace {

// Times that each sample was trained in an epoch; 255 stands for more.
class Seen {
 public:
  explicit Seen(std::int64_t samples) : times_(static_cast<std::size_t>(samples)) {}
  void add(const std::vector<SampleSlot>& slots) {
    for (const SampleSlot& slot : slots) add(slot.id, slot.counts);
  }
  void add(std::int64_t id, bool counts = true) {
    std::uint8_t& times = times_[static_cast<std::size_t>(id)];
    if (counts && times < 255) ++times;
  }
  SamplePlan::Coverage coverage() const {
    SamplePlan::Coverage coverage;
    for (const std::uint8_t times : times_) {
      ++(times == 0 ? coverage.never : times == 1 ? coverage.once : coverage.more);
      coverage.most = std::max<int>(coverage.most, times);
    }
    return coverage;
  }

 private:
  std::vector<std::uint8_t> times_;
};

// Positions of the epoch's order that earlier attempts have trained.
std::vector<std::int64_t> closed_positions(const DrawPlan& draws, std::int64_t epoch) {
  std::vector<bool> open(static_cast<std::size_t>(draws.samples()));
  for (const OpenSamples& run : draws.open_after(0, {}))
    if (run.epoch == epoch) std::fill(open.begin() + run.first, open.begin() + run.end, true);
  std::vector<std::int64_t> closed;
  for (std::int64_t position = 0; position < draws.samples(); ++position)
    if (!open[static_cast<std::size_t>(position)]) closed.push_back(position);
  return closed;
}

}  // namespace

SamplePlan::Coverage trained_coverage(const RunPlan& plan, const DrawPlan* draws, std::int64_t epoch,
                                      const std::vector<std::string>& by_replica) {
  Seen seen(plan.shards.ids_end());
  if (draws != nullptr)
    for (const std::int64_t id : plan.shards.ids_at(epoch, closed_positions(*draws, epoch))) seen.add(id);
  for (std::size_t replica = 0; replica < by_replica.size(); ++replica)
    for (const std::int64_t batch : batches_in(by_replica[replica])) {
      if (draws != nullptr) {
        seen.add(draws->ids(draws->at(batch)));
        continue;
      }
      for (const int source : plan.sources(static_cast<int>(replica))) seen.add(plan.shards.ids(epoch, batch, source));
    }
  SamplePlan::Coverage coverage = seen.coverage();
  coverage.never -= plan.shards.ids_end() - plan.shards.samples();  // what data.fraction leaves out
  return coverage;
}

}  // namespace echelon::inline train

// SPDX-License-Identifier: Apache-2.0
// data.balance = "queue": replicas that do not step together draw their batches from one queue, each as often as it
// can. An epoch's order of all records (Sharding::record) is cut into batches of equal size, which are numbered through
// all epochs of an attempt. The batch behind a number is a pure function of plain numbers, so ranks only need to send
// the number (train/control/draws.hpp).
//
// Each sample is in one batch of an epoch. If the batch size does not divide the number of samples, the last batch of
// an epoch is incomplete and treated as data.ragged says; `wrap` repeats the first samples of the epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/sample_plan.hpp"

namespace echelon::inline data {

// Positions [first, end) of an epoch's order whose samples have not been trained yet.
struct OpenSamples {
  std::int64_t epoch = 0, first = 0, end = 0;
  std::int64_t count() const { return end - first; }
  friend bool operator==(const OpenSamples&, const OpenSamples&) = default;
};

// The batch that a number stands for.
struct Draw {
  std::int64_t number = 0;  // number within the attempt
  std::int64_t epoch = 0;
  std::int64_t batch = 0;          // index among the epoch's batches in this attempt, from 0
  std::int64_t step_in_epoch = 0;  // the step at which replicas in lockstep would be
};

class DrawPlan {
 public:
  // `plan`: sharding `record` with equal batches; copied, which is cheap. `open`: the samples that an earlier attempt
  // left, by epoch and position, without overlap; later epochs are open entirely. Empty: everything is open.
  explicit DrawPlan(SamplePlan plan, const std::vector<OpenSamples>& open = {});

  // Accepts any number from 0 on, because the plan has no end.
  Draw at(std::int64_t number) const;
  // Returns plan.batch(0) slots. Thread-safe.
  std::vector<SampleSlot> ids(const Draw& draw) const;
  // The number of samples that count in a batch, and the number of their labels.
  std::int64_t counting(const Draw& draw) const;
  double weight(const Draw& draw) const;
  // The weight of all batches of an epoch that this attempt has yet to train.
  double weight_of_epoch(std::int64_t epoch) const;
  std::int64_t first_epoch() const { return parts_.empty() ? 0 : parts_.front().epoch; }

  // Returns what is open once all numbers below `next` are trained except those in `held` (increasing). A later attempt
  // passes it as `open`.
  std::vector<OpenSamples> open_after(std::int64_t next, const std::vector<std::int64_t>& held) const;

  int replicas() const { return plan_.replicas(); }
  std::int64_t batch() const { return plan_.batch(0); }
  std::int64_t samples() const { return plan_.samples(); }
  std::int64_t global_batch() const { return plan_.global_batch(); }

 private:
  // An epoch that is partly open.
  struct Part {
    std::int64_t epoch = 0;
    std::vector<OpenSamples> open;
    std::int64_t samples = 0;  // in `open`
    std::int64_t first = 0;    // number of its first batch
    std::int64_t batches = 0;
  };
  std::int64_t batches_of(std::int64_t samples) const;
  const Part* part_of(std::int64_t epoch) const;
  std::int64_t open_samples(std::int64_t epoch) const;
  // Returns the runs of positions that indices [from, to) of an epoch's open samples stand for.
  std::vector<OpenSamples> runs_of(std::int64_t epoch, std::int64_t from, std::int64_t to) const;

  SamplePlan plan_;
  std::vector<Part> parts_;
  std::int64_t whole_epoch_ = 0, whole_first_ = 0;  // the first entirely open epoch, and its first number
};

// Provides the numbers to draw.
class DrawSource {
 public:
  virtual ~DrawSource() = default;
  virtual const DrawPlan& plan() const = 0;
  // Waits for this replica's next number; none: nothing is left. Throws the error that ended the queue. One thread.
  virtual std::optional<std::int64_t> next() = 0;
  // Makes `next` return none from now on. Callable from any thread.
  virtual void stop() = 0;
};

}  // namespace echelon::inline data

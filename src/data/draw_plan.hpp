// data.balance = "queue": replicas that do not step together draw their batches from one queue, each as often as it
// can. An epoch's order of all records (Sharding::record) is cut into batches of one size; these are numbered through
// all epochs of an attempt. What a number stands for is a pure function of plain numbers, so that a number is all that
// ranks send (train/control/draws.hpp).
//
// Each sample is in one batch of an epoch. The last batch of an epoch is incomplete where the batch size does not
// divide the samples: data.ragged says what becomes of it; `wrap` repeats the first samples of the epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/sample_plan.hpp"

namespace echelon::inline data {

// Positions [first, end) of an epoch's order, whose samples are still to be trained.
struct OpenSamples {
  std::int64_t epoch = 0, first = 0, end = 0;
  std::int64_t count() const { return end - first; }
  friend bool operator==(const OpenSamples&, const OpenSamples&) = default;
};

// The batch behind a number.
struct Draw {
  std::int64_t number = 0;  // of the attempt
  std::int64_t epoch = 0;
  std::int64_t batch = 0;          // of the epoch in this attempt, from 0
  std::int64_t step_in_epoch = 0;  // where replicas in step would be
};

class DrawPlan {
 public:
  // `plan`: sharding `record`, equal batches; copied, which is cheap. `open`: what an earlier attempt has left, by
  // epoch, then position, without overlap; of the epochs after the last entry's everything is open. None: all is.
  explicit DrawPlan(SamplePlan plan, const std::vector<OpenSamples>& open = {});

  // Any number from 0 on: the plan has no end.
  Draw at(std::int64_t number) const;
  // plan.batch(0) slots. Thread-safe.
  std::vector<SampleSlot> ids(const Draw& draw) const;
  // The number of samples that count in a batch, and of their labels.
  std::int64_t counting(const Draw& draw) const;
  double weight(const Draw& draw) const;
  // Of all batches of an epoch that this attempt has still to train.
  double weight_of_epoch(std::int64_t epoch) const;
  std::int64_t first_epoch() const { return parts_.empty() ? 0 : parts_.front().epoch; }

  // What is open once all numbers below `next` are trained but those in `held`, which increase: `open` of a later
  // attempt.
  std::vector<OpenSamples> open_after(std::int64_t next, const std::vector<std::int64_t>& held) const;

  int replicas() const { return plan_.replicas(); }
  std::int64_t batch() const { return plan_.batch(0); }
  std::int64_t samples() const { return plan_.samples(); }
  std::int64_t global_batch() const { return plan_.global_batch(); }

 private:
  // An epoch of which a part is open.
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
  // The runs of positions that places [from, to) of an epoch's open samples are.
  std::vector<OpenSamples> places(std::int64_t epoch, std::int64_t from, std::int64_t to) const;

  SamplePlan plan_;
  std::vector<Part> parts_;
  std::int64_t whole_epoch_ = 0, whole_first_ = 0;  // the first epoch that is open altogether, its first number
};

// Where the numbers come from.
class DrawSource {
 public:
  virtual ~DrawSource() = default;
  virtual const DrawPlan& plan() const = 0;
  // The next number for this replica; none: nothing is left. Waits for it. Throws what ended the queue. One thread.
  virtual std::optional<std::int64_t> next() = 0;
  // Any thread: `next` returns none from now on.
  virtual void stop() = 0;
};

}  // namespace echelon::inline data

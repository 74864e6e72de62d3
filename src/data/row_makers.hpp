// SPDX-License-Identifier: Apache-2.0
// Threads that decode, change and mix the samples of a batch, row by row. What a row holds does not depend on them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "data/collate.hpp"

namespace echelon::inline data {

class RowMakers {
 public:
  // The caller of finish() is one of the `threads`; with one, draw() and mix() do the work themselves.
  RowMakers(const Dataset& dataset, DType dtype, const Augmentation& augmentation, int threads);
  ~RowMakers();
  RowMakers(const RowMakers&) = delete;

  Collator& collator() { return collators_.front(); }
  // Do what Collator does under these names, before finish() returns. `record` need not outlive the call.
  void draw(BatchMemory& memory, std::int64_t row, const Record& record, const SampleSlot& slot);
  void mix(BatchMemory& memory, std::int64_t row, const SampleSlot& slot, const Record& record, std::int64_t other);
  // Throws the error of the first row that has one.
  void finish();

 private:
  struct Job {
    BatchMemory* memory = nullptr;
    std::int64_t row = 0, other = -1;  // other: -1: draw
    SampleSlot slot;
    Record record;
    std::vector<std::uint8_t> bytes;  // of the sample
  };
  void add(const Job& job);
  bool take(std::unique_lock<std::mutex>& lock, Collator& collator);  // returns false if no job is left
  static void run(Job& job, Collator& collator);

  std::vector<Collator> collators_;  // [thread]
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first `added_` are of this batch; the mutex guards this and all below
  std::size_t added_ = 0, taken_ = 0, done_ = 0, failed_ = 0;
  std::exception_ptr error_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace echelon::inline data

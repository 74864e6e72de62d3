// SPDX-License-Identifier: Apache-2.0
#include "data/row_makers.hpp"

#include <utility>

#include "base/check.hpp"

namespace echelon::inline data {

RowMakers::RowMakers(const Dataset& dataset, DType dtype, const Augmentation& augmentation, int threads) {
  const int used = dataset.kind == DataKind::samples ? threads : 1;
  for (int i = 0; i < used; ++i) collators_.emplace_back(dataset, dtype, augmentation);
  for (int i = 1; i < used; ++i)
    threads_.emplace_back([this, i, rank = thread_rank()] {
      set_thread_rank(rank);
      std::unique_lock lock(mutex_);
      for (;;) {
        changed_.wait(lock, [&] { return stopping_ || taken_ < added_; });
        if (stopping_) return;
        take(lock, collators_[static_cast<std::size_t>(i)]);
      }
    });
}

RowMakers::~RowMakers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RowMakers::draw(BatchMemory& memory, std::int64_t row, const Record& record, const SampleSlot& slot) {
  if (!collator().draws()) return;
  if (threads_.empty()) return collator().draw(memory, row, record, slot);
  add({.memory = &memory, .row = row, .slot = slot, .record = record, .bytes = {}});
}

void RowMakers::mix(BatchMemory& memory, std::int64_t row, const SampleSlot& slot, const Record& record,
                    std::int64_t other) {
  if (threads_.empty()) return collator().mix(memory, row, slot, record, other);
  add({.memory = &memory, .row = row, .other = other, .slot = slot, .record = record, .bytes = {}});
}

// Keeps the sample's bytes in memory that earlier jobs have left.
void RowMakers::add(const Job& job) {
  std::unique_lock lock(mutex_);
  if (added_ == jobs_.size()) jobs_.emplace_back();
  Job& kept = jobs_[added_];  // a deque's elements stay where they are
  lock.unlock();
  std::vector<std::uint8_t> bytes = std::move(kept.bytes);
  const bool placed = job.record.sample == collator().place_of(*job.memory, job.row);
  if (!placed) bytes.assign(job.record.sample, job.record.sample + collator().stored_bytes(job.record));
  kept = job;
  kept.bytes = std::move(bytes);
  if (!placed) kept.record.sample = kept.bytes.data();
  lock.lock();
  ++added_;
  lock.unlock();
  changed_.notify_one();
}

void RowMakers::run(Job& job, Collator& collator) {
  if (job.other < 0)
    collator.draw(*job.memory, job.row, job.record, job.slot);
  else
    collator.mix(*job.memory, job.row, job.slot, job.record, job.other);
}

bool RowMakers::take(std::unique_lock<std::mutex>& lock, Collator& collator) {
  if (taken_ == added_) return false;
  const std::size_t index = taken_++;
  Job& job = jobs_[index];
  lock.unlock();
  std::exception_ptr error;
  try {
    run(job, collator);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error && (!error_ || index < failed_)) error_ = error, failed_ = index;
  if (++done_ == added_) changed_.notify_all();
  return true;
}

void RowMakers::finish() {
  if (threads_.empty()) return;
  std::unique_lock lock(mutex_);
  while (take(lock, collator())) {
  }
  changed_.wait(lock, [&] { return done_ == added_; });
  added_ = taken_ = done_ = 0;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace echelon::inline data

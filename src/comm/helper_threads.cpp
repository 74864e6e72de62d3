// SPDX-License-Identifier: Apache-2.0
#include "comm/helper_threads.hpp"

#include <pthread.h>

#include "base/check.hpp"

namespace echelon::inline comm {

HelperThreads::HelperThreads(int count, int rank, std::function<void()> ended) : ended_(std::move(ended)) {
  free_ = count;
  for (int i = 0; i < count; ++i) threads_.emplace_back([this, rank] { run(rank); });
}

HelperThreads::~HelperThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HelperThreads::submit(HelperTask& task) {
  task.done_.store(false, std::memory_order_relaxed);
  task.error_ = nullptr;
  task.next_ = nullptr;
  free_.fetch_sub(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    (first_ ? last_->next_ : first_) = &task;
    last_ = &task;
  }
  wake_.notify_one();
}

void HelperThreads::settle() const {
  while (free_.load(std::memory_order_acquire) < size()) std::this_thread::yield();
}

void HelperThreads::run(int rank) {
  pthread_setname_np(pthread_self(), "echelon-help");
  set_thread_rank(rank);
  for (;;) {
    HelperTask* task = nullptr;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return first_ || stopped_; });
      if (!first_) return;
      task = first_;
      first_ = task->next_;
    }
    try {
      task->work();
    } catch (...) {
      task->error_ = std::current_exception();
    }
    task->done_.store(true, std::memory_order_release);
    free_.fetch_add(1, std::memory_order_release);
    ended_();
  }
}

}  // namespace echelon::inline comm

// SPDX-License-Identifier: Apache-2.0
// Threads that take work off the thread that drives an engine: sums and codecs of long ranges (exchange.helpers). The
// choice of the thread that runs a step does not change a bit of its result.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace echelon::inline comm {

// One piece of work at a time; the object is reused for the next.
class HelperTask {
 public:
  virtual ~HelperTask() = default;
  bool done() const { return done_.load(std::memory_order_acquire); }
  // To be called once the task is done: throws the exception of `work`.
  void check() const {
    if (error_) std::rethrow_exception(error_);
  }

 protected:
  virtual void work() = 0;

 private:
  friend class HelperThreads;
  std::atomic<bool> done_ = true;
  std::exception_ptr error_;
  HelperTask* next_ = nullptr;
};

class HelperThreads {
 public:
  // Starts `count` threads. `ended` is called on a helper thread after each task; it must not wait for a task.
  HelperThreads(int count, int rank, std::function<void()> ended);
  // Joins the threads after all submitted tasks have ended.
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }
  // Whether a thread is free. Only the thread that submits may call it.
  bool has_free() const { return free_.load(std::memory_order_acquire) > 0; }
  // Runs the task on the next free thread. The task must stay valid until it is done. Does not allocate.
  void submit(HelperTask& task);
  // Returns once all tasks are done. Called by the thread that submits, or while that thread does not submit.
  void settle() const;

 private:
  void run(int rank);

  std::function<void()> ended_;
  std::atomic<int> free_ = 0;
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  HelperTask *first_ = nullptr, *last_ = nullptr;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace echelon::inline comm

// Threads that take work over from the thread that drives an engine: sums and codecs of long ranges
// (exchange.helpers). Which thread runs a step changes no bit of its result.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace echelon::inline comm {

// One piece of work at a time; the object is used again for the next.
class HelperTask {
 public:
  virtual ~HelperTask() = default;
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Once done: throws what `work` has thrown.
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
  // Starts `count` threads. `ended` is called on a helper after each task, and must not wait for one.
  HelperThreads(int count, int rank, std::function<void()> ended);
  // Joins the threads, after the tasks that were submitted.
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }
  // Whether a thread is free. By the one thread that submits.
  bool has_free() const { return free_.load(std::memory_order_acquire) > 0; }
  // Runs the task on the next free thread; it stays until it is done. No allocation.
  void submit(HelperTask& task);
  // Returns once all tasks are done. By the thread that submits, or instead of it.
  void settle() const;

 private:
  void run(int rank);

  std::function<void()> ended_;
  std::atomic<int> free_ = 0;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  HelperTask *first_ = nullptr, *last_ = nullptr;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace echelon::inline comm

// Writes status.json: a thread of rank 0 while the attempt runs, and the first rank and thread that knows how it ended.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "job/run_folder.hpp"
#include "report/status.hpp"

namespace echelon::inline job {

class StatusBoard {
 public:
  StatusBoard() = default;
  ~StatusBoard();
  StatusBoard(const StatusBoard&) = delete;

  // From now on there is a folder to write into; before, `conclude` does nothing.
  void open(const RunFolder& folder, const Provenance& provenance);
  // Writes "running", and again every kBeat_s seconds where something has changed, from a thread of its own. Rank 0.
  // Throws EnvironmentError where the file cannot be written now; later failures are not errors.
  void start_beating();

  void at_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }  // updates done
  void set_checkpoint(const std::string& newest);
  std::string checkpoint() const;
  bool is_open() const;

  // How the attempt ended, unless another rank has recorded it already: then false, and nothing changes. `step` < 0:
  // that of `at_step`. Throws EnvironmentError where the file cannot be written. Any thread.
  bool conclude(const std::string& state, int exit_code, const std::string& reason, std::int64_t step = -1);
  // Error text of one rank, beside it: rank-0003.err. Rank 0 has run.log and writes none.
  void write_rank_error(int rank, const std::string& text);

 private:
  static constexpr double kBeat_s = 2;

  Status running_now() const;
  void beat();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string attempt_;
  Provenance provenance_;
  std::string checkpoint_;
  std::atomic<std::int64_t> step_{0};
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace echelon::inline job

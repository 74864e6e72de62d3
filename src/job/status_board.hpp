// SPDX-License-Identifier: Apache-2.0
// Writes status.json: by a thread of rank 0 while the attempt runs, then by the first rank and thread that reports its
// end. After `open` has returned, any thread may call any function.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "job/run_folder.hpp"
#include "report/status.hpp"

namespace echelon::inline job {

class StatusBoard {
 public:
  StatusBoard() = default;
  ~StatusBoard();
  StatusBoard(const StatusBoard&) = delete;

  // Sets the folder. Before that, `conclude` and `write_rank_error` have no effect. Called on every rank.
  void open(const RunFolder& folder, const Provenance& provenance);
  // Writes "running", and again every kBeat_s seconds if something has changed, from a thread of its own. Called on
  // rank 0. Throws EnvironmentError if the file cannot be written now; later failures are not errors.
  void start_beating();

  void at_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }  // updates done
  void set_checkpoint(const std::string& newest);
  void set_best(const std::string& best);
  void set_damaged(const std::vector<std::string>& damaged);
  std::string checkpoint() const;
  RunFolder folder() const;
  Provenance provenance() const;
  bool is_open() const;
  // The run continues under a new rank 0 with this process_id_text, because the last one was lost. `writes`: this rank
  // writes it into status.json. Throws EnvironmentError.
  void pass_to(const std::string& process, bool writes);

  // Records the end of the attempt (verdict.json, status.json). If a rank has recorded it already, returns false and
  // changes nothing. `step` < 0: that of `at_step`. Throws EnvironmentError if the file cannot be written.
  bool conclude(const std::string& state, int exit_code, const std::string& reason, std::int64_t step = -1);
  // Writes the error text of one rank to rank-0003.err in the attempt's folder; rank 0 has run.log and writes none.
  // Throws EnvironmentError.
  void write_rank_error(int rank, const std::string& text);

 private:
  static constexpr double kBeat_s = 2;

  Status running_now() const;
  void beat();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string attempt_;  // attempt of folder_
  RunFolder folder_;
  Provenance provenance_;
  std::string checkpoint_, best_;
  std::vector<std::string> damaged_;
  std::atomic<std::int64_t> step_{0};
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace echelon::inline job

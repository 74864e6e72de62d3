// SPDX-License-Identifier: Apache-2.0
// The state of gradients that workers push to one piece on its server: which are kept for the open step and which are
// dropped. At most one push of each worker is in flight or kept.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline exchange {

class BackupPiece {
 public:
  BackupPiece(int workers, std::int64_t first_step);

  // A push of this worker has arrived. Returns true if its buffer is kept; false if it was late and its buffer is free.
  bool arrived(int worker);
  // Whether the pushes of all these workers for the open step have arrived.
  bool has(const std::vector<int>& entered) const;
  // Closes the step: the workers that entered it now have the weights of the next one. Requires has(entered). Returns
  // the workers whose buffers are free again.
  std::vector<int> close(const std::vector<int>& entered);
  // This worker, which has completed its older step, now has the weights of the open step.
  void join(int worker);

  std::int64_t step() const { return step_; }  // the open step
  // Whether all workers have weights of this step or a later one, and no push for an older one is in flight. Once true
  // it stays true.
  bool is_past(std::int64_t step) const;

 private:
  enum class Push : std::uint8_t { expected, here, dropped };
  struct Worker {
    std::int64_t step = 0;
    Push push = Push::expected;  // for that step
    std::int64_t old_step = -1;  // older step of a push that is still in flight and arrives first; -1: none
  };

  std::int64_t step_;
  std::vector<Worker> workers_;
};

}  // namespace echelon::inline exchange

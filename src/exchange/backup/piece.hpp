// Gradients that workers push to one part of the weights on its server, as pure state: which of them lie there for the
// open step, and which are dropped. Of each worker one push is on its way or there at most.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline exchange {

class BackupPiece {
 public:
  BackupPiece(int workers, std::int64_t first_step);

  // A push of this worker has come. True: it stays in its room; false: it came too late, and its room is free.
  bool arrived(int worker);
  // Whether the pushes of all these workers for the open step are there.
  bool has(const std::vector<int>& entered) const;
  // The step is over: its weights are those of the next one, which the workers that entered it have now. Returns the
  // workers whose rooms are free again. has(entered) must hold.
  std::vector<int> close(const std::vector<int>& entered);
  // This worker, which has pushed all that it will for older steps, has the weights of the open step now.
  void join(int worker);

  std::int64_t step() const { return step_; }  // that is open
  // Whether all workers have weights of this step or a later one, and no push for an older one is on its way. Once true
  // it stays true.
  bool is_past(std::int64_t step) const;

 private:
  enum class Push : std::uint8_t { expected, here, dropped };
  struct Worker {
    std::int64_t step = 0;
    Push push = Push::expected;  // of that step
    std::int64_t old_step = -1;  // of an older step that it pushed for; that push comes first; -1: none
  };

  std::int64_t step_;
  std::vector<Worker> workers_;
};

}  // namespace echelon::inline exchange

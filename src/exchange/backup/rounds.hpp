// SPDX-License-Identifier: Apache-2.0
// The coordinator's decision which gradients enter a step, one for all pieces, as pure state (Chen et al., "Revisiting
// distributed synchronous SGD", ICLR workshop 2016).
//
// The first `needed` of `workers` replicas that complete a step enter it. The step is then closed and the next one
// opens. A replica that completes a closed step is late: its gradient is dropped, and it joins the open step. Replicas
// without samples in a step complete it first; so that every step has samples, at least one that enters has some if any
// replica has.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline exchange {

// From a worker: all its gradients of the step are sent. Used as a message, in the machine's byte order.
struct BackupComplete {
  std::int64_t step = 0;
  double weight = 0;  // number of the worker's samples
  double whole = 0;   // number of samples of all workers, by which gradients are divided
  double learning_rate = 0;
};

// To a worker that has completed a step. Used as a message.
struct BackupVerdict {
  std::int64_t next_step = 0;  // the step that it takes next
  std::int64_t entered = 0;    // 1: its gradient entered; 0: it was dropped
};

// To servers, which carry out commands in order.
struct BackupCommand {
  std::int64_t step = 0;     // the step that is closed, or that `joins` joins with its weights
  int joins = -1;            // the joining worker; -1: a step is closed
  double factor = 1;         // closed: multiplies the sum of the gradients that entered
  double learning_rate = 0;  // closed
  std::vector<int> entered;  // closed: workers that entered, ascending
};

class BackupRounds {
 public:
  // Receives the decisions at once: the command for all servers, then the verdicts that follow from it.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void decided(const BackupCommand& command) = 0;
    virtual void decided(int worker, const BackupVerdict& verdict) = 0;
  };
  // Counts of one worker since `first_step`.
  struct Count {
    std::int64_t entered = 0, dropped = 0;  // numbers of gradients
  };

  // Requires 1 <= needed <= workers. All workers begin with `first_step`. `owner` must outlive this object.
  BackupRounds(int workers, int needed, std::int64_t first_step, Owner& owner);

  // A check fails if this worker cannot be at this step.
  void completed(int worker, const BackupComplete& complete);

  std::int64_t step() const { return step_; }  // the open step
  const std::vector<Count>& counts() const { return counts_; }

 private:
  struct Arrival {
    int worker;
    BackupComplete complete;
  };
  bool is_full() const;
  void close();
  void join(int worker);

  int workers_, needed_;
  std::int64_t step_;
  Owner& owner_;
  std::vector<Arrival> arrivals_;   // for the open step
  std::vector<std::int64_t> next_;  // by worker: the step that it completes next; -1: it waits for a verdict
  std::vector<Count> counts_;
};

}  // namespace echelon::inline exchange

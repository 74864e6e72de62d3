// Which gradients enter a step where a step takes the first ones alone: the decision of the coordinator, one for all
// parts of the weights, as pure state (Chen et al., "Revisiting distributed synchronous SGD", ICLR workshop 2016).
//
// Of `workers` replicas the first `needed` that complete a step enter it. The step is then closed: the next one opens,
// and a replica that completes a closed step is late. Its gradient is dropped, and it joins the step that is open then.
// Replicas without samples in a step complete it first; so that no step is without samples, one of those that enter has
// some wherever any replica has.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline exchange {

// From a worker: all its gradients of the step have left it. Also the message, in the byte order of the machine.
struct BackupComplete {
  std::int64_t step = 0;
  double weight = 0;  // of the worker's samples
  double whole = 0;   // of the samples of all workers, by which its gradients are divided
  double learning_rate = 0;
};

// To a worker that has completed a step. Also the message.
struct BackupVerdict {
  std::int64_t next_step = 0;  // that it is to take
  std::int64_t entered = 0;    // 1: its gradient entered; 0: it was dropped
};

// To servers, which follow commands in their order.
struct BackupCommand {
  std::int64_t step = 0;     // a step is closed; or the one that `joins` joins, whose weights it needs
  int joins = -1;            // the worker; -1: a step is closed
  double factor = 1;         // closed: of the sum of the gradients that entered
  double learning_rate = 0;  // closed
  std::vector<int> entered;  // closed: workers, ascending
};

class BackupRounds {
 public:
  // What is decided, at once: the command for all servers, then the verdicts that follow from it.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void decided(const BackupCommand& command) = 0;
    virtual void decided(int worker, const BackupVerdict& verdict) = 0;
  };
  // Of one worker, since `first_step`.
  struct Count {
    std::int64_t entered = 0, dropped = 0;  // gradients
  };

  // 1 <= needed <= workers. All workers begin with `first_step`. `owner` outlives this.
  BackupRounds(int workers, int needed, std::int64_t first_step, Owner& owner);

  // A failed check where the step is not one that this worker may be at.
  void completed(int worker, const BackupComplete& complete);

  std::int64_t step() const { return step_; }  // that is open
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
  std::vector<Arrival> arrivals_;   // of the open step
  std::vector<std::int64_t> next_;  // by worker: the step that it completes next
  std::vector<Count> counts_;
};

}  // namespace echelon::inline exchange

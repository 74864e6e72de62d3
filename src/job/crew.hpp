// The ranks of a launch that are left, and the engine between them, for runs that go on without lost workers
// (run.on_lost_worker = "continue").
//
// Once `watch` was called, ranks are watched: by beats between them and by the processes of this host (loss_watch.hpp).
// After a loss the engine breaks off with a LostRankError on all ranks that are left, and `without` gives the crew of
// those. A rank that the others have given up ends by _exit(7); processes of this host that were given up but still
// exist are killed, so that the launcher sees the end of the job.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "comm/engine.hpp"
#include "job/loss_watch.hpp"

namespace echelon::inline job {

// Exit 7. What ends all waits of an engine after a loss.
struct LostRankError : Error {
  LostRankError(std::vector<int> ranks, bool may_go_on, const std::string& what)
      : Error(kExitLostRank, what), lost(std::move(ranks)), goes_on(may_go_on) {}
  std::vector<int> lost;  // ranks of the engine
  bool goes_on;           // false: those that are left may be the ones that are cut off
};

class Crew final : private ProtocolHost {
 public:
  // Of all ranks of the transport. Sends nothing.
  explicit Crew(std::shared_ptr<Transport> launch);
  ~Crew() override;
  Crew(const Crew&) = delete;

  Engine& engine() { return *engine_; }
  int size() const { return static_cast<int>(members_.size()); }
  int ranks_of_launch() const { return launch_->size(); }
  // Of a rank of the engine: its number in the launch; "rank 3 on n2" by that number.
  int in_launch(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  std::string name(int rank) const;
  // Collective, once, before anything depends on it: from here on ranks are watched. `timeout_s` of silence is a loss.
  void watch(double timeout_s);
  bool watched() const { return loss_watch_.has_value(); }
  // The crew of those that are left, which are watched; sends nothing. This engine was broken off by a loss of `lost`,
  // and has settled on return. The destructor of this crew may come at any time afterwards.
  std::unique_ptr<Crew> without(const std::vector<int>& lost);
  // Collective, at the end of a run: nobody is watched any more, and no rank returns before the others have come to
  // this point, or after limit_s: its end is no loss.
  void leave(double limit_s = 5);
  // Collective over the crew, at the start of one: returns once no message to one of its ranks is on its way into
  // memory of earlier crews, or after limit_s. False: such memory must be kept, on this rank.
  bool let_messages_end(double limit_s = 10);

 private:
  struct Process {
    int rank = 0;    // of the engine
    std::string id;  // base/process.hpp
    std::uint64_t started_ticks = 0;
  };

  Crew(std::shared_ptr<Transport> launch, std::vector<int> members, int generation);
  void attach();
  void look();
  void stop_looking();
  void on_notified(Token token, double now_s) override;
  void failed(std::exception_ptr error) override;

  std::shared_ptr<Transport> launch_;
  std::vector<int> members_;
  int generation_;
  double timeout_s_ = 0;
  std::unique_ptr<Engine> engine_;
  std::vector<Process> processes_;  // of this host, in the order of ranks
  std::optional<LossWatch> loss_watch_;
  std::unique_ptr<Attachment> attachment_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;  // looks at processes
};

}  // namespace echelon::inline job

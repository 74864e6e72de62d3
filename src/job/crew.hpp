// SPDX-License-Identifier: Apache-2.0
// The remaining ranks of a launch, and the engine between them, for runs that continue without lost workers
// (run.on_lost_worker = "continue").
//
// After `watch`, ranks are watched: by beats between them and by the processes of this host (loss_watch.hpp). After a
// loss the engine stops with a LostRankError on all remaining ranks, and `without` returns the crew of these. A rank
// that the others have given up exits by _exit(7). Processes of this host that were given up but still exist are
// killed, so that the launcher notices the end of the job.
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

// Ends all waits of an engine after a loss (exit 7).
struct LostRankError : Error {
  LostRankError(std::vector<int> ranks, bool may_go_on, const std::string& what)
      : Error(kExitLostRank, what), lost(std::move(ranks)), goes_on(may_go_on) {}
  std::vector<int> lost;  // ranks of the engine
  bool goes_on;           // false: the remaining ranks may be the ones that are cut off
};

class Crew final : private ProtocolHost {
 public:
  // The crew of all ranks of the transport. Sends nothing.
  explicit Crew(std::shared_ptr<Transport> launch);
  ~Crew() override;
  Crew(const Crew&) = delete;

  Engine& engine() { return *engine_; }
  int size() const { return static_cast<int>(members_.size()); }
  int ranks_of_launch() const { return launch_->size(); }
  // in_launch: number in the launch of a rank of the engine. name: "rank 3 on n2", by that number.
  int in_launch(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  std::string name(int rank) const;
  // Collective; called once, before anything needs it. Ranks are watched from then on: `timeout_s` of silence is a
  // loss.
  void watch(double timeout_s);
  bool watched() const { return loss_watch_.has_value(); }
  // Returns the crew of the remaining ranks, which are watched; sends nothing. Requires that this engine was stopped by
  // the loss of `lost`; it has settled on return. This crew may then be destroyed at any time.
  std::unique_ptr<Crew> without(const std::vector<int>& lost);
  // Collective, at the end of a run. Stops watching. No rank returns before the others have reached this point, or
  // before limit_s, so that its exit does not count as a loss.
  void leave(double limit_s = 5);
  // Collective over the crew, at the start of a crew. Returns once no message to one of its ranks is in flight into
  // memory of earlier crews, or after limit_s or half of the timeout, because a stopped rank may have sent a part of a
  // message. False: this rank must keep such memory.
  bool let_messages_end(double limit_s = 10);

 private:
  struct Process {
    int rank = 0;    // rank of the engine
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
  std::vector<Process> processes_;  // on this host, in the order of ranks
  std::optional<LossWatch> loss_watch_;
  std::unique_ptr<Attachment> attachment_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;  // polls the processes
};

}  // namespace echelon::inline job

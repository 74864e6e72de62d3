// SPDX-License-Identifier: Apache-2.0
// Injects the configured faults of a run ([fault], slurm/FAULTS.md) on one rank: it waits for their moments and
// triggers them at the transport, the files, the clock and the device of this rank.
//
// Without faults there is no injector, and nothing is wrapped.
//
// Each fault is recorded before it happens: a line of <run>/faults.jsonl (attempt, rank, host, step, phase, sentence)
// and a warning in the log. Later attempts of the run read it, so that faults that fire once do not happen again.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_faults.hpp"
#include "base/spans.hpp"
#include "comm/disturbed.hpp"
#include "config/faults.hpp"
#include "device/arenas.hpp"
#include "job/phase.hpp"
#include "job/run_folder.hpp"

namespace echelon::inline fault {

class FaultInjector final : public MessageFaults, public FileFaults, public PhaseListener, public SpanWatcher {
 public:
  // For rank `rank` of a launch of `ranks`. Throws ConfigError as faults_of does.
  FaultInjector(const Config& config, int rank, int ranks);
  ~FaultInjector() override;
  FaultInjector(const FaultInjector&) = delete;

  // Returns the transport, wrapped if a fault concerns messages of this rank.
  std::unique_ptr<Transport> around(std::unique_ptr<Transport> transport);
  // has: whether this rank has faults of this kind. check: ConfigError if a fault names missing weights or gradients.
  bool has(FaultKind kind) const;
  void check(const Config& config, const Arenas& arenas) const;

  // An attempt begins, on its compute thread; from here on faults may happen. `anew`: the user asked to start from the
  // first step (run.restart = "never"), so earlier faults do not count.
  void begin(const RunFolder& folder, const std::string& host, PhaseBoard& phase, bool anew);
  // The attempt ends, on the same thread. Warns of faults that never happened.
  void end();

  // Step `step` is done: calls `settle`, then flips the weights that are due. Called by the compute thread.
  template <class Settle>
  void flip_weights(std::int64_t step, Arenas& arenas, const Settle& settle) {
    for (Armed& armed : armed_)
      if (is_due(armed, FaultKind::flip_weight, step)) {
        settle();
        flip(armed, arenas, {0, arenas.elems()});
      }
  }
  // A range of gradients is complete and about to be sent.
  void flip_gradients(Arenas& arenas, ArenaRange range);
  // A checkpoint was written into these files.
  void flip_checkpoint(std::int64_t step, const std::vector<std::string>& files);

 private:
  enum class State : std::uint8_t { waiting, due, fired };
  struct Armed {
    Fault fault;
    int number = 0;         // index in fault.inject
    std::int64_t step = 0;  // 0: from the start of an attempt
    std::atomic<State> state = State::waiting;

    Armed(Fault of, int at) : fault(std::move(of)), number(at) {}
    Armed(Armed&& other) noexcept : fault(std::move(other.fault)), number(other.number), step(other.step) {}
  };

  Fate fate_of(int peer, int tag, std::size_t bytes) override;
  bool is_cut() override;
  int write_begins(std::size_t& bytes) override;
  int sync(int fd) override;
  int write_error(std::size_t bytes) override;
  void have_read(std::string_view path, void* data, std::size_t bytes) override;
  void entered(const char* phase, std::int64_t step) override;
  void begins(SpanKind kind) override;
  void ends(SpanKind kind, double begin_s) override;

  void come_to(std::string_view phase, std::int64_t step);
  bool is_due(const Armed& armed, FaultKind kind, std::int64_t step) const;
  // Returns the first fault of this kind that is due or already happening; null: none.
  Armed* active(FaultKind kind);
  void flip(Armed& armed, Arenas& arenas, ArenaRange range);
  // Records it once. Returns false if it has happened before.
  bool happens(Armed& armed, const std::string& detail = "");
  void read_earlier();
  void act(Armed& armed);
  std::uint64_t draw(const Armed& armed, std::uint64_t what, std::uint64_t bound) const;

  const std::uint64_t seed_;
  const int rank_;
  std::vector<Armed> armed_;  // faults of this rank
  PhaseBoard* phase_ = nullptr;
  std::string run_, attempt_, host_;
  std::atomic<std::int64_t> written_bytes_ = 0;
  std::atomic<bool> begun_ = false;
  std::mutex mutex_;  // guards the record
};

// Returns null if the config has no faults, or invalid ones, which the attempt reports.
std::unique_ptr<FaultInjector> make_fault_injector(const Config& config, int rank, int ranks);
// Throws ConfigError for faults that are impossible in this launch: a rank that does not exist, or a killed process if
// ranks are threads.
void check_faults(const Config& config, int ranks, bool threads);

}  // namespace echelon::inline fault

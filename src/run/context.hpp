// SPDX-License-Identifier: Apache-2.0
// The part of an attempt that exists before its config is read: options, engine, place on the host, boards, lock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "fault/injector.hpp"
#include "job/crew.hpp"
#include "job/launch.hpp"
#include "job/phase.hpp"
#include "job/run_lock.hpp"
#include "job/status_board.hpp"

namespace echelon::inline run {

// An attempt that has lost workers, until the next one has begun: only then its end is known to be true.
struct HandedOver {
  RunFolder folder;
  Provenance provenance;
  std::string checkpoint, reason;
  std::int64_t step = 0;
};

struct AttemptOptions {
  // Called on every rank; adds a note for each key of the file that was left out. Throws ConfigError.
  std::function<Config(std::vector<std::string>& notes)> load_config;
  std::function<void(int exit_code)> end_world;  // ends all ranks at once; not called in a world of one rank
  bool threads = false;                          // ranks are threads of one process
  Crew* crew = nullptr;                          // the crew of this engine, if the run may go on without lost workers
  std::vector<std::string> lost = {};            // workers that were lost before this attempt
  std::optional<HandedOver> before = {};         // the attempt that was handed over to this one
  FaultInjector* faults = nullptr;               // of this rank; null if the config has no faults
  // Opens the device of this rank; tests replace it.
  std::function<std::unique_ptr<Device>(std::string_view kind, const DeviceOptions& options)> open_device = {};
  std::optional<LocalPlace> local = {};  // the place among all ranks of attempts that run side by side on this host
  std::int64_t warmup_steps = 1;         // steps that rates leave out (StatisticsHook)
  double launch_limit_s = 0;             // that of the LaunchWatch that takes over once the run has ended; 0: none does
};

struct AttemptContext {
  AttemptContext(Engine& the_engine, AttemptOptions the_options)
      : engine(the_engine),
        options(std::move(the_options)),
        group(engine, 0),
        slot(host_slot_of(engine.transport())),
        phase(engine.clock()) {
    if (options.before) {
      board.open(options.before->folder, options.before->provenance);
      board.set_checkpoint(options.before->checkpoint);
    }
    if (!options.local) return;
    slot.local_rank = options.local->rank;
    slot.local_ranks = options.local->ranks;
  }
  bool is_first() const { return slot.rank == 0; }
  std::unique_ptr<Device> open(std::string_view kind, const DeviceOptions& device) const {
    return options.open_device ? options.open_device(kind, device) : open_device(kind, device);
  }
  // True if the run goes on without workers that are lost.
  bool goes_on(const Config& config) const { return options.crew && config.run.on_lost_worker == OnLostWorker::go_on; }

  Engine& engine;
  AttemptOptions options;
  Group group;  // the world, on kControlChannel
  HostSlot slot;
  PhaseBoard phase;  // by the engine's clock
  StatusBoard board;
  RunLock lock;  // held by rank 0; ends after everything that writes into the run's folder
};

}  // namespace echelon::inline run

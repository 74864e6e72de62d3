// SPDX-License-Identifier: Apache-2.0
// Writes the checkpoints of an attempt one after another, on rank 0: while training waits, or in a thread from a copy
// of the state (checkpoint.asynchronous). If the model is split over several ranks, each of them has a writer for its
// part (parts.hpp).
//
// At most one write is in progress; the next one waits for it. A write that fails leaves no file, and its error is
// thrown by the next call. If the process is killed, an incomplete file is left under a temporary name, and the next
// attempt removes it: a checkpoint counts only once its manifest exists, which is written last.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/parts.hpp"
#include "checkpoint/snapshot.hpp"
#include "config/schema.hpp"

namespace echelon::inline checkpoint {

struct WrittenCheckpoint {
  CheckpointInfo info;
  double blocked_s = 0;  // time the caller waited: for the copy, and in `save` or `finish` for the rest of the write
  double write_s = 0;    // until older ones had been removed
};

class CheckpointWriter {
 public:
  // The writing thread calls `save.before_publish`; `save.verify` comes from the config. `parts`: none if this rank
  // holds the whole model.
  CheckpointWriter(std::string folder, const CheckpointConfig& config, SaveOptions save,
                   std::optional<PartRanks> parts = {});
  // Waits for the write in progress and logs its error.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  // Whether this rank writes manifests and gets the completed checkpoints from take_written.
  bool leads() const { return !parts_ || parts_->rank() == 0; }
  // Call it before the first `save` of the same state: allocates the copy's memory while the caller continues.
  void expect(const VisitAll& visit);
  // Saves all that is visited, with `gathered` rows, as save_checkpoint does; then sets `best` if it is this step and
  // removes older ones (prune_checkpoints). The state may change once it returns. With parts, all their ranks call it,
  // and it blocks until they agree.
  void save(std::int64_t step, const VisitAll& visit, GatheredTensors gathered, std::int64_t best);
  // Waits for the write in progress.
  void finish();
  // Returns what was completed since the last call, oldest first; nothing if another rank leads. Does not block.
  std::vector<WrittenCheckpoint> take_written();

 private:
  std::optional<WrittenCheckpoint> write(std::int64_t step, const VisitAll& visit, const PartAgreement& agreed,
                                         std::int64_t best) const;

  std::string folder_;
  const CheckpointConfig& config_;
  SaveOptions save_;
  std::optional<PartRanks> parts_;
  Snapshot copy_;
  std::future<void> memory_;  // allocates the copy's memory
  std::future<std::optional<WrittenCheckpoint>> under_way_;
  double blocked_s_ = 0;  // so far, by the write in progress
  std::vector<WrittenCheckpoint> written_;
};

}  // namespace echelon::inline checkpoint

// Writes the checkpoints of an attempt one after another, on rank 0: while training waits, or from a copy of the state
// by a thread beside it (checkpoint.asynchronous).
//
// At most one is under way; the next one waits for it. A write that fails leaves no file, and its error is thrown at
// the next call. A process that is killed meanwhile leaves an incomplete file under a temporary name, which the next
// attempt removes: a checkpoint counts once its manifest is there, which is written last.
#pragma once

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/snapshot.hpp"
#include "config/schema.hpp"

namespace echelon::inline checkpoint {

struct WrittenCheckpoint {
  CheckpointInfo info;
  double blocked_s = 0;  // the caller waited: for the copy, and in `save` or `finish` for the rest of the write
  double write_s = 0;    // until older ones were removed
};

class CheckpointWriter {
 public:
  // `save.before_publish` is called by the thread that writes; `save.verify` is that of the config.
  CheckpointWriter(std::string folder, const CheckpointConfig& config, SaveOptions save);
  // Waits for the write under way; its error is logged.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  // Called before the first `save`, of the same state: memory for the copy is made ready beside the caller.
  void expect(const VisitAll& visit);
  // As save_checkpoint, then `best` is set where it is this step, and older ones are removed (prune_checkpoints). Once
  // it returns the state may change.
  void save(std::int64_t step, const VisitAll& visit, WholeTensors wholes, std::int64_t best);
  // Waits for the write under way.
  void finish();
  // What was completed since the last call, oldest first. Does not block.
  std::vector<WrittenCheckpoint> take_written();

 private:
  WrittenCheckpoint write(std::int64_t step, const VisitAll& visit, const WholeTensors& wholes,
                          std::int64_t best) const;

  std::string folder_;
  const CheckpointConfig& config_;
  SaveOptions save_;
  Snapshot copy_;
  std::future<void> memory_;  // of the copy, being made ready
  std::future<WrittenCheckpoint> under_way_;
  double blocked_s_ = 0;  // by the one under way, so far
  std::vector<WrittenCheckpoint> written_;
};

}  // namespace echelon::inline checkpoint

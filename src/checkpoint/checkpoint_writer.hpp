// Writes the checkpoints of an attempt one after another, on rank 0: while training waits, or from a copy of the state
// by a thread beside it (checkpoint.asynchronous). Where the model lies on several ranks each of them has a writer, of
// its part (parts.hpp).
//
// At most one is under way; the next one waits for it. A write that fails leaves no file, and its error is thrown at
// the next call. A process that is killed meanwhile leaves an incomplete file under a temporary name, which the next
// attempt removes: a checkpoint counts once its manifest is there, which is written last.
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
  double blocked_s = 0;  // the caller waited: for the copy, and in `save` or `finish` for the rest of the write
  double write_s = 0;    // until older ones were removed
};

class CheckpointWriter {
 public:
  // `save.before_publish` is called by the thread that writes; `save.verify` is that of the config. `parts`: none where
  // this rank holds the whole model.
  CheckpointWriter(std::string folder, const CheckpointConfig& config, SaveOptions save,
                   std::optional<PartRanks> parts = {});
  // Waits for the write under way; its error is logged.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  // Whether this rank writes manifests, and what completed checkpoints are told of.
  bool leads() const { return !parts_ || parts_->rank() == 0; }
  // Called before the first `save`, of the same state: memory for the copy is made ready beside the caller.
  void expect(const VisitAll& visit);
  // As save_checkpoint of all that is visited, with `gathered` rows, then `best` is set where it is this step, and
  // older ones are removed (prune_checkpoints). Once it returns the state may change. With parts it is called by all
  // their ranks, and blocks for an agreement.
  void save(std::int64_t step, const VisitAll& visit, GatheredTensors gathered, std::int64_t best);
  // Waits for the write under way.
  void finish();
  // What was completed since the last call, oldest first; nothing where another rank leads. Does not block.
  std::vector<WrittenCheckpoint> take_written();

 private:
  std::optional<WrittenCheckpoint> write(std::int64_t step, const VisitAll& visit, const PartAgreement& agreed,
                                         std::int64_t best) const;

  std::string folder_;
  const CheckpointConfig& config_;
  SaveOptions save_;
  std::optional<PartRanks> parts_;
  Snapshot copy_;
  std::future<void> memory_;  // of the copy, being made ready
  std::future<std::optional<WrittenCheckpoint>> under_way_;
  double blocked_s_ = 0;  // by the one under way, so far
  std::vector<WrittenCheckpoint> written_;
};

}  // namespace echelon::inline checkpoint

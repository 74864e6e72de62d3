// Checkpoints of a model whose parts lie on several ranks: each rank writes what it holds into a file of its own, and
// none holds the whole.
//
//   step-00001234.part-0000.h5, ..  what a rank holds of each tensor, under the name of the tensor
//   step-00001234.h5                the counters; each tensor whole, as a virtual dataset of HDF5 over the parts
//   step-00001234.json              the manifest of all these files
//
// What several ranks hold alike is written by the first of them. Rank 0 writes the last two files once all other ranks
// have told it that their parts are on the disk: a message each, from one writing thread to the other, so that training
// does not wait. The checkpoint counts from then on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "comm/engine.hpp"

namespace echelon::inline checkpoint {

// The ranks that hold the model exactly once, by part. Called by one thread of a rank at a time.
class PartRanks {
 public:
  // `channel` of the engine is used for nothing else. The engine outlives this.
  PartRanks(Engine& engine, int channel) : engine_(engine), channel_(channel) {}
  int rank() const { return engine_.rank(); }
  int size() const { return engine_.size(); }

  // Of all ranks, on all ranks. Collective, blocking.
  std::vector<std::string> gather(const std::string& text) const;
  // To rank 0, and there. They block, and leave it to the engine's thread to drive.
  void send(const std::string& text) const;
  std::string receive(int from) const;

 private:
  void run(std::shared_ptr<const Plan> plan, void* data) const;

  Engine& engine_;
  int channel_;
};

struct PartAgreement {
  std::set<std::string> left_out;  // names of tensors that this rank leaves to ranks before it
  bool again = false;              // an earlier checkpoint of this step has parts, which stay until this one counts
};

// Before each save_part: agrees on who writes what. Collective, blocking; a text of some bytes a tensor is gathered.
// `visit` shows what this rank holds.
PartAgreement begin_parts(const std::string& folder, std::int64_t step, const VisitAll& visit, const PartRanks& ranks);
// Writes this rank's part, and on rank 0 waits for the others and writes the rest, as save_checkpoint. On all ranks,
// between messages on their own. The checkpoint, on rank 0 where it counts; none on other ranks, and where another one
// could not write its part: that one throws. Whatever fails, no manifest appears, and the parts are removed.
std::optional<CheckpointInfo> save_part(const std::string& folder, std::int64_t step, const VisitAll& visit,
                                        const PartAgreement& agreed, const PartRanks& ranks,
                                        const SaveOptions& options);

}  // namespace echelon::inline checkpoint

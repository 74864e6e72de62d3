// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a model that is split over several ranks. Each rank writes what it holds into a file of its own; no
// rank holds the whole model.
//
//   step-00001234.part-0000.h5, ..  a rank's part of each tensor, under the name of the tensor
//   step-00001234.h5                the counters, and each tensor whole, as a virtual HDF5 dataset over the parts
//   step-00001234.json              the manifest of all these files
//
// If several ranks hold the same values, the first of them writes these. Rank 0 writes the last two files once all
// other ranks have reported that their parts are on the disk. Each report is one message between the writing threads,
// so that training does not wait. The checkpoint counts from then on.
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

// The ranks that together hold the model exactly once, in the order of parts. One thread of a rank uses it at a time.
class PartRanks {
 public:
  // `channel` of the engine must be used for nothing else. The engine must outlive this object.
  PartRanks(Engine& engine, int channel) : engine_(engine), channel_(channel) {}
  int rank() const { return engine_.rank(); }
  int size() const { return engine_.size(); }

  // Gathers the texts of all ranks on all ranks. Collective, blocking.
  std::vector<std::string> gather(const std::string& text) const;
  // Send a text to rank 0, and receive it there. They block while the engine's thread drives the messages.
  void send(const std::string& text) const;
  std::string receive(int from) const;

 private:
  void run(std::shared_ptr<const Plan> plan, void* data) const;

  Engine& engine_;
  int channel_;
};

struct PartAgreement {
  std::set<std::string> left_out;  // names of the tensors that earlier ranks write instead of this one
  bool again = false;              // an earlier checkpoint of this step has parts, which stay until this one counts
};

// Call it before each save_part: the ranks agree on who writes what. Collective, blocking; gathers a text with some
// bytes per tensor. `visit` shows what this rank holds.
PartAgreement begin_parts(const std::string& folder, std::int64_t step, const VisitAll& visit, const PartRanks& ranks);
// All ranks call it, independently between messages. Writes this rank's part; rank 0 then waits for the others and
// writes the rest as save_checkpoint does. Returns the checkpoint on rank 0 if it counts; none on other ranks, or if
// another rank, which throws, could not write its part. On a failure no manifest appears, and the parts are removed.
std::optional<CheckpointInfo> save_part(const std::string& folder, std::int64_t step, const VisitAll& visit,
                                        const PartAgreement& agreed, const PartRanks& ranks,
                                        const SaveOptions& options);

}  // namespace echelon::inline checkpoint

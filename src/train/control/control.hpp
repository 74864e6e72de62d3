// A step's agreement between all ranks of a run (tree.hpp), as the loop uses it.
#pragma once

#include <memory>
#include <mutex>

#include "comm/engine.hpp"
#include "train/control/tree.hpp"

namespace echelon {

class Control final : private ProtocolHost {
 public:
  // `channel`: and channel + 1, on all ranks of the engine. It outlives this.
  Control(Engine& world, int channel);
  ~Control() override;

  // Begins the step's sum, ahead of whatever else the engine sends. Every rank calls it once a step.
  void begin(const ControlWords& words);
  // Returns once all ranks have begun and the sum is here; throws what ended the engine.
  const ControlSum& wait();
  // Of the same step, on rank 0, by rank: where their times went in the step before. Empty elsewhere, and in most steps
  // where there are many ranks.
  const std::vector<RankStep>& times() const { return tree_.times(); }

 private:
  void told(Token token, double now_s) override;
  void failed(std::exception_ptr error) override;

  Engine& world_;
  ControlTree tree_;
  std::mutex mutex_;  // of what follows
  Promise promise_;
  std::exception_ptr error_;
  std::unique_ptr<Attachment> attachment_;  // ends first
};

}  // namespace echelon

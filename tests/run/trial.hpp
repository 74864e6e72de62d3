// SPDX-License-Identifier: Apache-2.0
// A small experiment in its own folder, run by the real program: its data, its config, and what it leaves behind.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace echelon::test {

using Sets = std::vector<std::string>;  // "section.key=value"

// Returns the settings of both, in this order: where both set a key, the second one counts.
Sets with(Sets sets, const Sets& more);

class Trial {
 public:
  // Has 800 training samples of (1, 8, 8) in 4 unequal files and 201 test samples; 17 steps of 48 an epoch, 3 epochs.
  Trial();
  // Has another experiment, whose data the test makes itself; its name is "trial" too.
  explicit Trial(const std::string& config);

  std::string operator/(const std::string& name) const { return folder_ / name; }

  // Writes the training shards again with the same samples, but compressed.
  void compress() const { write_train(1); }

  // Runs `echelon train trial.toml --set ..` in the folder; ranks 0: a single process without mpirun.
  std::vector<std::string> words(int ranks, const Sets& sets) const;
  Outcome train(int ranks, const Sets& sets = {}, const Environment& env = {}) const;
  // Runs `echelon check trial.toml --set .. more..` in the folder.
  Outcome check(const Sets& sets = {}, const std::vector<std::string>& more = {}) const;
  // Runs `echelon words..` in the folder.
  Outcome echelon(const std::vector<std::string>& words, int ranks = 0) const;
  // Runs `echelon data words..` in the folder, which must end with 0 (REQUIRE); returns its output.
  std::string make_data(std::vector<std::string> words) const;
  // Runs `train` in the background of a shell: `script` finds its process in $pid, waits for what it needs, and ends
  // it. The shell's function `running` returns once the newest attempt's status.json says so, `reached STEP` once there
  // is a checkpoint of that step or a later one; both fail after a minute, or where the process is gone. `rank N`
  // prints the process of a rank under mpirun.
  Outcome train_and(int ranks, const Sets& sets, const std::string& script, double limit_s = 60) const;

  // Does the same with another shell command.
  Outcome in_background(const std::string& command, const std::string& script, double limit_s = 60) const;

  // Folders of a run and records of its newest attempt; `name` if a setting gave the run another name.
  std::string run(const std::string& name = "trial") const;  // results/<name>/run-<hash>, the only run
  std::string attempt(const std::string& name = "trial") const;
  int attempts(const std::string& name = "trial") const;
  nlohmann::json summary(const std::string& name = "trial") const;
  nlohmann::json status(const std::string& name = "trial") const;
  std::vector<nlohmann::json> metrics(const std::string& name = "trial") const;  // all attempts, in order
  // Includes the rows of checkpoints, which appear once these are written.
  std::vector<nlohmann::json> all_metrics(const std::string& name = "trial") const;
  // Returns files that a killed write left: names with .tmp in them anywhere below the results.
  std::vector<std::string> leftovers() const;

 private:
  void write_train(int deflate) const;

  TempFolder folder_;
};

// Writes a shard in the sample format. Samples are noisy copies of their class's pattern. Empty `labels` are drawn.
void write_shard(const std::string& path, std::int64_t samples, const std::string& name,
                 std::vector<std::uint8_t> labels = {}, int deflate = 0);

// Returns all datasets of a checkpoint under `prefix`, one after another.
std::vector<double> checkpoint_values(const std::string& path, const std::string& prefix);
// Returns those of the checkpoint with which a run ended.
std::vector<double> last_values(const Trial& trial, const std::string& prefix, const std::string& name = "trial");

}  // namespace echelon::test

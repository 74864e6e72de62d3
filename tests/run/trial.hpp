// A small experiment in a folder of its own, run by the real program: data, config, and what it leaves behind.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace echelon::test {

using Sets = std::vector<std::string>;  // "section.key=value"

// The settings of both, in this order: where both have a key, the second counts.
Sets with(Sets sets, const Sets& more);

class Trial {
 public:
  // 800 training samples of (1, 8, 8) in 4 unequal files, 201 test samples; 17 steps of 48 an epoch, 3 epochs.
  Trial();
  // Another experiment, whose data the test makes itself; its name is "trial" too.
  explicit Trial(const std::string& config);

  std::string operator/(const std::string& name) const { return folder_ / name; }

  // Writes the training shards anew, with the same samples, samples compressed.
  void compress() const { write_train(1); }

  // `echelon train trial.toml --set ..` in the folder; ranks 0: a lone process, without mpirun.
  std::vector<std::string> words(int ranks, const Sets& sets) const;
  Outcome train(int ranks, const Sets& sets = {}, const Environment& env = {}) const;
  // `echelon check trial.toml --set .. more..` in the folder.
  Outcome check(const Sets& sets = {}, const std::vector<std::string>& more = {}) const;
  // `echelon words..` in the folder.
  Outcome echelon(const std::vector<std::string>& words, int ranks = 0) const;
  // `echelon data words..` in the folder, which must end with 0 (REQUIRE); what it prints.
  std::string make_data(std::vector<std::string> words) const;
  // `train` in the background of a shell: `script` finds its process in $pid, waits for what it needs, and ends it.
  // The shell's function `running` returns once the newest attempt's status.json says so, `reached STEP` once there is
  // a checkpoint of that step or a later one; both fail after a minute, or where the process is gone. `rank N` prints
  // the process of a rank under mpirun.
  Outcome train_and(int ranks, const Sets& sets, const std::string& script, double limit_s = 60) const;

  // The same with another command of a shell, in its words.
  Outcome in_background(const std::string& command, const std::string& script, double limit_s = 60) const;

  // Of a run: folders, and the newest attempt's records. `name` where a set gave it another one.
  std::string run(const std::string& name = "trial") const;  // results/<name>/run-<hash>, the only one
  std::string attempt(const std::string& name = "trial") const;
  int attempts(const std::string& name = "trial") const;
  nlohmann::json summary(const std::string& name = "trial") const;
  nlohmann::json status(const std::string& name = "trial") const;
  std::vector<nlohmann::json> metrics(const std::string& name = "trial") const;  // of all attempts, in order
  // The same with the rows of checkpoints, which come once they are written.
  std::vector<nlohmann::json> all_metrics(const std::string& name = "trial") const;
  // Files that a killed write left: names with .tmp in them anywhere below the results.
  std::vector<std::string> leftovers() const;

 private:
  void write_train(int deflate) const;

  TempFolder folder_;
};

// A shard in the sample format. Samples are noisy copies of their class's pattern. `labels` empty: drawn from `name`.
void write_shard(const std::string& path, std::int64_t samples, const std::string& name,
                 std::vector<std::uint8_t> labels = {}, int deflate = 0);

// All datasets of a checkpoint under `prefix`, one after another.
std::vector<double> checkpoint_values(const std::string& path, const std::string& prefix);
// The same of the checkpoint that a run ended with.
std::vector<double> last_values(const Trial& trial, const std::string& prefix, const std::string& name = "trial");

}  // namespace echelon::test

// Who writes status.json: the compute thread at the start and the end, the watchdog's thread at a hang.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "train/run_folder.hpp"

namespace echelon {

class StatusBoard {
 public:
  // From now on there is a folder to write into; before, `write` does nothing.
  void open(const RunFolder& folder, const Provenance& provenance);
  void set_checkpoint(const std::string& newest);
  std::string checkpoint() const;
  bool is_open() const;

  // Throws EnvironmentError where the file cannot be written. Any thread.
  void write(const std::string& state, int exit_code, const std::string& reason, std::int64_t step);
  // A rank's own last words, beside it: rank-0003.err. Rank 0 has run.log and writes none.
  void write_rank_error(int rank, const std::string& text);

 private:
  mutable std::mutex mutex_;
  RunFolder folder_;
  Provenance provenance_;
  std::string checkpoint_;
};

}  // namespace echelon

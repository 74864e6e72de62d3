// The exchange that a run uses: as its config says, or, where that says exchange.algorithm = "auto", what autotune
// chose.
//
// The choice is in every checkpoint and binds a run that goes on from it while the number of replicas and the hosts are
// the same; else it is repeated, with a line in the log. The reasons are in the attempt's autotune.txt.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/state.hpp"
#include "comm/engine.hpp"
#include "config/schema.hpp"
#include "device/parameter.hpp"
#include "run/resume.hpp"

namespace echelon::inline run {

class Tuning {
 public:
  // Collective. `start`: where the run goes on from. Rank 0 writes autotune.txt. Of a split model every part tunes on
  // its own replicas, all at once as they will train, and all use the choice of the largest part: what several ranks
  // hold alike must be summed alike. `model`: the ranks of one replica; null where it is not split.
  ExchangeConfig settle(const ExchangeConfig& config, const Decision& start, Engine& replicas, Engine* model,
                        const Transport& world, int first_channel, const ParameterSet& parameters, DType dtype);
  // Logs what was chosen and why, on rank 0; nothing where nothing was.
  void log_choice() const;
  // Likewise.
  void visit_state(StateVisitor& visitor);

 private:
  bool chose_ = false, logs_ = false;
  std::string report_;
  std::array<char, 256> choice_{};  // choice_text, and zeros
  std::int64_t replicas_ = 0, hosts_ = 0;
};

}  // namespace echelon::inline run

// exchange.algorithm = "auto": algorithm, segment and bucket size chosen by measuring.
//
//   1. Latency and bandwidth inside a host and between hosts are measured (comm/link_probe.hpp).
//   2. Rank 0 runs every candidate's plans on a virtual clock (comm/collective/plan_time.hpp).
//   3. The cheapest few, sums in the memory that ranks of a host share, and the library's own are tried for real on the
//      run's largest bucket.
//   4. The fastest is tried with buckets of several sizes over the whole gradient. Of those that come within a tenth of
//      the best the smallest buckets are taken: they are on their way earliest while back-propagation goes on.
//   5. It is tried with other numbers of messages in flight, and, where a rank has cores to spare, with helpers. What
//      the config gives stays unless another is a twentieth faster.
// The library's own is taken only where it is a tenth faster than the best plan: it knows no priority.
//
// Rank 0 decides from times that are the longest of any rank; all are told. Takes a few seconds.
#pragma once

#include <string>

#include "base/dtype.hpp"
#include "comm/engine.hpp"
#include "config/schema.hpp"
#include "device/parameter.hpp"

namespace echelon::inline exchange {

struct Tuned {
  ExchangeConfig exchange;  // as given but for the keys of choice_text
  std::string report;       // why, for people; on rank 0
};

// Collective, over all ranks of the engine. Uses channels from `first_channel` on, as many as there are buckets.
Tuned tune_exchange(const ExchangeConfig& config, Engine& engine, int first_channel, const ParameterSet& parameters,
                    DType dtype);

// What was chosen as one line, and back:
// "ring inner=ring outer=ring segment_kb=256 bucket_mb=4 messages_in_flight=8 helpers=0"
std::string choice_text(const ExchangeConfig& exchange);
// DataError where the line says no choice. The last two may be missing, as in checkpoints of earlier versions.
ExchangeConfig with_choice(ExchangeConfig exchange, const std::string& choice);

}  // namespace echelon::inline exchange

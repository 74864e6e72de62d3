// SPDX-License-Identifier: Apache-2.0
// exchange.algorithm = "auto": measurements choose the algorithm, the segment size and the bucket size.
//
//   1. Latency and bandwidth inside a host and between hosts are measured (comm/link_probe.hpp).
//   2. Rank 0 runs every candidate's plans on a virtual clock (comm/collective/plan_time.hpp).
//   3. The cheapest few, sums in the shared memory of a host, and the message library's all-reduce are measured on the
//      run's largest bucket.
//   4. The fastest is measured over the whole gradient with several bucket sizes. The smallest buckets within a tenth
//      of the best time are chosen: they are sent earliest during back-propagation.
//   5. It is measured with other numbers of messages in flight and, if every rank has spare cores, with helpers. The
//      config's own values are kept unless others are 5 % faster.
//
// The library's all-reduce must be 10 % faster than the best plan, because it knows no priorities. Rank 0 decides, by
// the times of the slowest rank, and tells all ranks. Takes a few seconds.
#pragma once

#include <string>

#include "base/dtype.hpp"
#include "comm/engine.hpp"
#include "config/schema.hpp"
#include "device/parameter.hpp"

namespace echelon::inline exchange {

struct Tuned {
  ExchangeConfig exchange;  // the given one, with new values for the keys of choice_text
  std::string report;       // the measurements and the choice as text; on rank 0
};

// Collective over all ranks of the engine; blocking. Uses as many channels from `first_channel` on as there are
// buckets.
Tuned tune_exchange(const ExchangeConfig& config, Engine& engine, int first_channel, const ParameterSet& parameters,
                    DType dtype);

// The choice as one line, and back: "ring inner=ring outer=ring segment_kb=256 bucket_mb=4 messages_in_flight=8
// helpers=0"
std::string choice_text(const ExchangeConfig& exchange);
// Throws DataError if the line is not a choice. The last two keys may be missing, as in checkpoints of earlier
// versions.
ExchangeConfig with_choice(ExchangeConfig exchange, const std::string& choice);

}  // namespace echelon::inline exchange

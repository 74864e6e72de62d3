// SPDX-License-Identifier: Apache-2.0
// Sequences and pairs as shards: `echelon data import sequences | pairs`.
#pragma once

#include "data/import/sequence_source.hpp"
#include "data/import/shard_writer.hpp"

namespace echelon::inline data {

struct SequencesWritten {
  std::vector<std::string> files;
  std::int64_t samples = 0, held_out = 0;
  std::int64_t shortest = 0, longest = 0, steps = 0;  // over all sequences; steps: sum of the lengths
  std::vector<double> mean, std;                      // by feature, of the training part
  std::uint64_t bytes = 0;
  std::string empty_classes{};  // classes without a sequence for training (label_counts.hpp)
};

// Reads the whole source once to check and measure it, so that bad input writes nothing; then writes the shards. Throws
// what write_shards throws.
SequencesWritten write_sequences(SequenceSource& source, const ShardOptions& options);

}  // namespace echelon::inline data

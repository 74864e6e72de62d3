// SPDX-License-Identifier: Apache-2.0
// Writes a text as shards of tokens: `echelon data import text | words`.
#pragma once

#include "data/import/sequence_source.hpp"
#include "data/import/shard_writer.hpp"

namespace echelon::inline data {

struct TextWritten {
  std::vector<std::string> files;
  std::int64_t tokens = 0, held_out = 0;  // written for training and for testing
  std::int64_t unknown = 0;               // tokens written as <unk>
  std::int64_t vocabulary = 0;            // entries
  std::uint64_t bytes = 0;
};

// The concatenation of the files is one text. Shards are consecutive pieces of it; its end is held out. Bad input
// writes nothing and throws DataError with file:line. Throws what write_shards throws.
TextWritten write_token_shards(const TextRequest& request, const ShardOptions& options);

}  // namespace echelon::inline data

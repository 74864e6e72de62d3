// A text as shards of tokens: `echelon data import text | words`.
#pragma once

#include "data/import/sequence_source.hpp"
#include "data/import/shard_writer.hpp"

namespace echelon::inline data {

struct TextWritten {
  std::vector<std::string> files;
  std::int64_t tokens = 0, held_out = 0;  // written for training and for testing
  std::int64_t unknown = 0;               // of them all, not in the vocabulary
  std::int64_t vocabulary = 0;
  std::uint64_t bytes = 0;
};

// Files one after another are one text; shards are pieces of it that follow each other, and what is held out is its
// end. Nothing is written from input that is bad: DataError with file:line.
TextWritten write_token_shards(const TextRequest& request, const ShardOptions& options);

}  // namespace echelon::inline data

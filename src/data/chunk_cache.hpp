// SPDX-License-Identifier: Apache-2.0
// Provides records of a data set by id. Reads chunk by chunk into a bounded buffer that drops the least recently used
// chunk. For one thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/chunk.hpp"
#include "data/dataset.hpp"
#include "data/sample_file.hpp"

namespace echelon::inline data {

class ChunkCache {
 public:
  // Holds as many chunks as fit into `buffer_bytes` (decoded), at least one.
  ChunkCache(const Dataset& dataset, std::int64_t buffer_bytes);

  // Returns the record with this id, valid until the next call. Throws what load_chunk throws.
  Record record(std::int64_t id);
  // Whether samples of one shape are read one by one and not held: each is used once an epoch, and all of them do not
  // fit into the buffer.
  bool passes() const { return passes_; }
  // The same, whose sample is read into `sample`.
  Record record_into(std::int64_t id, std::uint8_t* sample);
  // The file from which record `id` is read.
  const std::string& path_of(std::int64_t id) const;
  std::uint64_t bytes_read() const;  // read from files so far

 private:
  struct OpenFile {
    std::size_t file = 0;
    std::unique_ptr<SampleFile> reader;
  };
  using Chunks = std::list<Chunk>;

  Chunk& fetch(std::int64_t id);
  const SampleFile& reader_of(std::size_t file);

  Dataset dataset_;
  std::size_t most_chunks_;
  bool passes_ = false;
  Chunk passing_;                                                   // the record of record_into
  Chunks chunks_;                                                   // newest first
  std::unordered_map<std::int64_t, Chunks::iterator> by_first_id_;  // by the id of a chunk's first record
  std::list<OpenFile> open_;                                        // newest first
  std::uint64_t bytes_of_closed_ = 0;
};

}  // namespace echelon::inline data

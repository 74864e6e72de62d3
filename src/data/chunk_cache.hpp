// Records of a dataset by global id, read chunk by chunk into a bounded buffer; the chunk used longest ago goes first.
// One thread's.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "data/dataset.hpp"
#include "h5/file.hpp"

namespace echelon {

class ChunkCache {
 public:
  // At least one chunk is held, however small `buffer_bytes`.
  ChunkCache(const Dataset& dataset, std::int64_t buffer_bytes);

  struct Record {
    const std::uint8_t* sample = nullptr;  // (C, H, W) as stored; until the next call
    std::int32_t label = 0;                // in [0, classes): else DataError naming file and record
    std::size_t file = 0;
  };
  Record record(std::int64_t id);
  std::uint64_t bytes_read() const;

 private:
  struct Chunk {
    std::int64_t begin = 0, end = 0;  // global ids
    std::size_t file = 0;
    std::vector<std::uint8_t> samples;
    std::vector<std::int32_t> labels;
  };
  struct OpenFile {
    std::size_t file = 0;
    std::unique_ptr<h5::Reader> reader;
  };
  using Chunks = std::list<Chunk>;

  Chunk& fetch(std::int64_t id);
  void load(Chunk& chunk);
  const h5::Reader& reader_of(std::size_t file);

  Dataset dataset_;
  std::size_t sample_bytes_;
  std::size_t most_chunks_;
  Chunks chunks_;                                                   // newest first
  std::unordered_map<std::int64_t, Chunks::iterator> by_first_id_;  // of a chunk
  std::list<OpenFile> open_;                                        // newest first
  std::uint64_t bytes_of_closed_ = 0;
};

}  // namespace echelon

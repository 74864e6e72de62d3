// SPDX-License-Identifier: Apache-2.0
#include "data/chunk_cache.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace echelon::inline data {
namespace {

constexpr std::size_t kOpenFiles = 64;  // limit for one cache

}  // namespace

ChunkCache::ChunkCache(const Dataset& dataset, std::int64_t buffer_bytes) : dataset_(dataset) {
  std::int64_t longest = 1;
  for (const Shard& shard : dataset_.shards) longest = std::max(longest, shard.rows_together());
  const std::size_t chunk_bytes = static_cast<std::size_t>(longest) * dataset_.record_bytes();
  most_chunks_ = std::max<std::size_t>(1, static_cast<std::size_t>(buffer_bytes) / chunk_bytes);
  passes_ = dataset_.kind == DataKind::samples && longest == 1 && !dataset_.mixes && !dataset_.encoded &&
            static_cast<std::size_t>(dataset_.samples()) > most_chunks_;
  if (passes_) most_chunks_ = 1;
}

std::uint64_t ChunkCache::bytes_read() const {
  std::uint64_t sum = bytes_of_closed_;
  for (const OpenFile& open : open_) sum += open.reader->bytes_read();
  return sum;
}

const std::string& ChunkCache::path_of(std::int64_t id) const {
  const Shard& shard = dataset_.shards[dataset_.file_of(id)];
  return shard.copy.empty() ? shard.path : shard.copy;
}

const SampleFile& ChunkCache::reader_of(std::size_t file) {
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const OpenFile& open) { return open.file == file; });
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
    return *open_.front().reader;
  }
  if (open_.size() >= kOpenFiles) {
    bytes_of_closed_ += open_.back().reader->bytes_read();
    open_.pop_back();
  }
  const Shard& shard = dataset_.shards[file];
  open_.push_front({.file = file, .reader = std::make_unique<SampleFile>(dataset_, shard)});
  return *open_.front().reader;
}

Chunk& ChunkCache::fetch(std::int64_t id) {
  const std::size_t file = dataset_.file_of(id);
  const Shard& shard = dataset_.shards[file];
  const std::int64_t rows = shard.rows_together(), begin = shard.first + (id - shard.first) / rows * rows;
  if (const auto found = by_first_id_.find(begin); found != by_first_id_.end()) {
    chunks_.splice(chunks_.begin(), chunks_, found->second);
    return chunks_.front();
  }
  Chunks fresh;  // takes over the memory of the dropped chunk
  if (chunks_.size() >= most_chunks_) {
    by_first_id_.erase(chunks_.back().begin);
    fresh.splice(fresh.begin(), chunks_, std::prev(chunks_.end()));
  } else {
    fresh.emplace_front();
  }
  Chunk& chunk = fresh.front();
  chunk.begin = begin;
  chunk.end = std::min(begin + rows, shard.first + shard.samples);
  chunk.file = file;
  load_chunk(dataset_, reader_of(chunk.file), chunk);
  chunks_.splice(chunks_.begin(), fresh);
  by_first_id_.emplace(begin, chunks_.begin());
  return chunk;
}

Record ChunkCache::record_into(std::int64_t id, std::uint8_t* sample) {
  ECHELON_CHECK(passes_ && id >= 0 && id < dataset_.samples(), "sample {} of {}", id, dataset_.samples());
  passing_.begin = id;
  passing_.end = id + 1;
  passing_.file = dataset_.file_of(id);
  passing_.elsewhere = sample;
  load_chunk(dataset_, reader_of(passing_.file), passing_);
  return passing_.record(dataset_, id);
}

Record ChunkCache::record(std::int64_t id) {
  ECHELON_CHECK(id >= 0 && id < dataset_.samples(), "sample {} of {}", id, dataset_.samples());
  const bool same = !chunks_.empty() && id >= chunks_.front().begin && id < chunks_.front().end;
  return (same ? chunks_.front() : fetch(id)).record(dataset_, id);
}

}  // namespace echelon::inline data

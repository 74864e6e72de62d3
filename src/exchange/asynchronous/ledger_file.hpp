// SPDX-License-Identifier: Apache-2.0
// The file with the order of arrivals at the servers of one rank. A run writes it during an attempt; a replay reads it
// (run/replay.hpp).
//
//   "echelon arrivals 1\n", then blocks; the first holds LedgerHeader as text, one "key value" per line
//   block   u32 bytes of the payload, u64 checksum64(payload, seed: checksum of the block before, or 0), payload
//   payload u32 number of meetings since the last block, u32 MeetingReason of each; then, for every bucket with new
//           entries, u32 bucket, u32 bytes, whole entries (ledger.hpp)
//
// Numbers are little-endian. A block is written in one call, at each meeting and after kLedgerBlock bytes, so that a
// killed process leaves all blocks intact except possibly the last. Only its own rank appends to the file; nothing is
// rewritten. Size: 12 bytes per block and 8 per bucket in it, in addition to 2 bytes per update and piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exchange/asynchronous/ledger.hpp"

namespace echelon::inline exchange {

inline constexpr std::size_t kLedgerBlock = 64 * 1024;

struct LedgerHeader {
  std::int64_t rank = 0;         // the rank that served
  std::int64_t ranks = 0;        // of the run
  std::int64_t workers = 0;      // number of workers, k
  std::int64_t servers = 0;      // number of ranks that serve anything, each with its own file
  std::int64_t pieces = 0;       // number over all servers
  std::int64_t first_step = 0;   // of the attempt
  std::int64_t total_steps = 0;  // of the run
  std::int64_t samples = 0;      // of the training data
  std::string config;            // config_hash
  std::string data;              // fingerprint of the training data
  std::string weights;           // checksum of the attempt's first weights
  std::string device;            // of this rank, as text

  friend bool operator==(const LedgerHeader&, const LedgerHeader&) = default;
};

class LedgerWriter {
 public:
  // Creates the file. This and the other functions throw EnvironmentError with the system's reason: the file exists,
  // the disk is full.
  LedgerWriter(std::string path, const LedgerHeader& header);
  ~LedgerWriter();
  LedgerWriter(const LedgerWriter&) = delete;
  LedgerWriter& operator=(const LedgerWriter&) = delete;

  // Appends the next entries by bucket; writes them once kLedgerBlock bytes are waiting.
  void add(std::vector<LedgerBytes> orders);
  // Notes the end of a meeting with its reasons, and writes everything that is waiting.
  void met(std::uint32_t reasons);
  void flush();
  std::uint64_t bytes() const { return bytes_; }  // length of the file

 private:
  void write_block(const std::string& payload);
  void write(const std::string& bytes);

  std::string path_;
  int file_ = -1;
  std::uint64_t bytes_ = 0, checksum_ = 0;
  std::vector<std::uint32_t> meetings_;  // meetings and orders that are not written yet
  std::vector<LedgerBytes> orders_;
  std::size_t waiting_ = 0;  // number of bytes in orders_
};

struct LedgerFile {
  LedgerHeader header;
  std::vector<std::uint32_t> meetings;  // the reasons of each
  std::vector<LedgerBytes> orders;      // by bucket
  std::uint64_t lost_bytes = 0;  // bytes after the last intact block, if the process was killed or the file is damaged
};

// Needs memory for the whole file. Throws DataError if the header is unreadable or a block is invalid, and
// EnvironmentError if the file cannot be read.
LedgerFile read_ledger_file(const std::string& path);
// Reads only the header.
LedgerHeader read_ledger_header(const std::string& path);

}  // namespace echelon::inline exchange

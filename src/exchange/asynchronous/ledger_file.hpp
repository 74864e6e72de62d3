// The order of arrivals at the servers of one rank, in a file of its attempt: written while the run goes on, read by a
// replay (run/replay.hpp).
//
//   "echelon arrivals 1\n", then blocks; the first holds LedgerHeader as text, "key value" a line
//   block   u32 bytes of the payload, u64 checksum64(payload, seed: the checksum of the block before; 0), payload
//   payload u32 number of meetings since the last block, u32 MeetingReason of each; then, of buckets of which anything
//           is new, u32 bucket, u32 bytes, entries (ledger.hpp), whole ones
//
// Numbers are little-endian. A block reaches the file in one write, at each meeting and once kLedgerBlock bytes have
// come, so that a process that is killed leaves all blocks but possibly the last one whole. The file is appended to by
// its rank alone and never changed. Size: 12 bytes a block and 8 a bucket beside 2 bytes an update and piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exchange/asynchronous/ledger.hpp"

namespace echelon::inline exchange {

inline constexpr std::size_t kLedgerBlock = 64 * 1024;

struct LedgerHeader {
  std::int64_t rank = 0;         // that served
  std::int64_t ranks = 0;        // of the run
  std::int64_t workers = 0;      // k
  std::int64_t servers = 0;      // ranks that serve anything: so many files
  std::int64_t pieces = 0;       // over all servers
  std::int64_t first_step = 0;   // of the attempt
  std::int64_t total_steps = 0;  // of the run
  std::int64_t samples = 0;      // of the training data
  std::string config;            // config_hash
  std::string data;              // fingerprint of the training data
  std::string weights;           // checksum of those that the attempt began with
  std::string device;            // of this rank, in words

  friend bool operator==(const LedgerHeader&, const LedgerHeader&) = default;
};

class LedgerWriter {
 public:
  // Makes the file. EnvironmentError, here and below, with the reason of the system: it exists, a full disk.
  LedgerWriter(std::string path, const LedgerHeader& header);
  ~LedgerWriter();
  LedgerWriter(const LedgerWriter&) = delete;
  LedgerWriter& operator=(const LedgerWriter&) = delete;

  // The next entries by bucket; written once kLedgerBlock bytes have come.
  void add(std::vector<LedgerBytes> orders);
  // A meeting is over, called for these reasons; writes what there is.
  void met(std::uint32_t reasons);
  void flush();
  std::uint64_t bytes() const { return bytes_; }  // of the file

 private:
  void write_block(const std::string& payload);
  void write(const std::string& bytes);

  std::string path_;
  int file_ = -1;
  std::uint64_t bytes_ = 0, checksum_ = 0;
  std::vector<std::uint32_t> meetings_;  // not written yet, like the orders
  std::vector<LedgerBytes> orders_;
  std::size_t waiting_ = 0;  // bytes of them
};

struct LedgerFile {
  LedgerHeader header;
  std::vector<std::uint32_t> meetings;  // their reasons
  std::vector<LedgerBytes> orders;      // by bucket
  std::uint64_t lost_bytes = 0;         // after the last whole block, of a process that was killed or a damaged file
};

// Memory: the file. DataError where the header cannot be read, EnvironmentError where the file cannot.
LedgerFile read_ledger_file(const std::string& path);
// Its header alone.
LedgerHeader read_ledger_header(const std::string& path);

}  // namespace echelon::inline exchange

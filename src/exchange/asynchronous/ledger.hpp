// SPDX-License-Identifier: Apache-2.0
// The order in which a server processed the messages for one piece. It suffices to repeat the run bit for bit, whatever
// the timing, and to know the staleness of every update.
//
// This order and the rules (piece.hpp) determine which answers are held, when they are sent and which version they
// carry, so that nothing else is stored. An entry takes 2 bytes for up to 8 workers and a staleness below 128:
//   varint(worker * 16 + kind + 4 * dropped + 8 * new_version), and for updates varint(staleness)
// A varint has 7 bits per byte, lowest first; the top bit is set in all bytes except the last (LEB128).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace echelon::inline exchange {

// The messages that a worker sends for a piece.
enum class AsyncKind : std::uint8_t {
  update,  // answered with weights, at once or when the bound allows it
  meet,    // the worker pushes nothing until all have come, and is answered with the weights that all then get
  done,    // the worker never pushes again; not answered
};

struct LedgerEntry {
  int worker = 0;
  AsyncKind kind = AsyncKind::update;
  bool dropped = false;        // the update was too stale
  bool new_version = false;    // the weights changed: the update completed a version, or the rest of one was flushed
  std::int64_t staleness = 0;  // of updates, including dropped ones

  friend bool operator==(const LedgerEntry&, const LedgerEntry&) = default;
};

using LedgerBytes = std::vector<std::uint8_t>;

void append(LedgerBytes& bytes, const LedgerEntry& entry);

// Reads the entries of a piece one by one. Throws DataError (exit 4), which names entry and byte, if the bytes end
// inside an entry or are not a ledger.
class LedgerReader {
 public:
  LedgerReader() = default;
  explicit LedgerReader(LedgerBytes bytes);

  bool over() const { return over_; }
  const LedgerEntry& entry() const { return entry_; }  // requires !over()
  std::int64_t index() const { return index_; }        // index of the entry, from 0
  void next();
  std::size_t end() const { return at_; }  // index of the first byte after the entry

 private:
  std::uint64_t varint();

  LedgerBytes bytes_;
  std::size_t at_ = 0;
  std::int64_t index_ = -1;
  LedgerEntry entry_;
  bool over_ = true;
};

}  // namespace echelon::inline exchange

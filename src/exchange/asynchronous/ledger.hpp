// The order in which a server took up what came for one piece: enough to repeat the run bit for bit, whatever the
// timing, and to know the staleness of every update.
//
// Which answers are held, when they leave and which version they carry follows from this order and the rules
// (piece.hpp), so that nothing else is written. An entry takes 2 bytes for up to 8 workers and a staleness below 128:
//   varint(worker * 16 + kind + 4 * dropped + 8 * new_version), and of updates varint(staleness)
// with varint = 7 bits a byte, the lowest first, the top bit set in all bytes but the last (LEB128).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace echelon::inline exchange {

// What a worker sends for a piece.
enum class AsyncKind : std::uint8_t {
  update,  // answered with weights, at once or when the bound allows
  meet,    // it pushes nothing more until all have come; answered with the weights that all then get
  done,    // it never pushes again; not answered
};

struct LedgerEntry {
  int worker = 0;
  AsyncKind kind = AsyncKind::update;
  bool dropped = false;        // the update was too stale
  bool new_version = false;    // the weights changed: an update completed a version, or all had come and the rest did
  std::int64_t staleness = 0;  // of updates, dropped ones too

  friend bool operator==(const LedgerEntry&, const LedgerEntry&) = default;
};

using LedgerBytes = std::vector<std::uint8_t>;

void append(LedgerBytes& bytes, const LedgerEntry& entry);

// The entries of a piece, one after the other. DataError (exit 4) where the bytes are no ledger: cut off inside an
// entry, or of another kind; it names the entry and the byte.
class LedgerReader {
 public:
  LedgerReader() = default;
  explicit LedgerReader(LedgerBytes bytes);

  bool over() const { return over_; }
  const LedgerEntry& entry() const { return entry_; }  // !over()
  std::int64_t index() const { return index_; }        // of the entry, from 0
  void next();
  std::size_t end() const { return at_; }  // byte after the entry

 private:
  std::uint64_t varint();

  LedgerBytes bytes_;
  std::size_t at_ = 0;
  std::int64_t index_ = -1;
  LedgerEntry entry_;
  bool over_ = true;
};

// An entry with what follows from those before it.
struct LedgerRow {
  LedgerEntry entry;
  std::int64_t clock = 0;    // updates that this worker has pushed of the piece, this one included
  std::int64_t version = 0;  // of the piece afterwards
};

// O(entries). DataError as above.
std::vector<LedgerRow> ledger_rows(const LedgerBytes& bytes);

}  // namespace echelon::inline exchange

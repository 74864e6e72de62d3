// SPDX-License-Identifier: Apache-2.0
#include "exchange/asynchronous/ledger.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/error.hpp"

namespace echelon::inline exchange {
namespace {

constexpr std::uint64_t kDropped = 4, kNewVersion = 8, kWorker = 16;

void append_varint(LedgerBytes& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

}  // namespace

void append(LedgerBytes& bytes, const LedgerEntry& entry) {
  append_varint(bytes, static_cast<std::uint64_t>(entry.worker) * kWorker + static_cast<std::uint64_t>(entry.kind) +
                           (entry.dropped ? kDropped : 0) + (entry.new_version ? kNewVersion : 0));
  if (entry.kind == AsyncKind::update) append_varint(bytes, static_cast<std::uint64_t>(entry.staleness));
}

LedgerReader::LedgerReader(LedgerBytes bytes) : bytes_(std::move(bytes)) { next(); }

std::uint64_t LedgerReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 63; shift += 7) {
    if (at_ >= bytes_.size())
      throw DataError(fmt::format("the order of arrivals ends inside entry {}, after {} bytes", index_, at_));
    const std::uint8_t byte = bytes_[at_++];
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw DataError(fmt::format("the order of arrivals has no valid number at byte {}, in entry {}", at_ - 1, index_));
}

void LedgerReader::next() {
  ++index_;
  over_ = at_ >= bytes_.size();
  if (over_) return;
  const std::size_t begin = at_;
  const std::uint64_t word = varint();
  const std::uint64_t worker = word / kWorker;
  if (word % 4 > static_cast<std::uint64_t>(AsyncKind::done) || worker > std::numeric_limits<int>::max())
    throw DataError(fmt::format("the order of arrivals has an unknown entry {} at byte {}", index_, begin));
  entry_ = {.worker = static_cast<int>(worker),
            .kind = static_cast<AsyncKind>(word % 4),
            .dropped = (word & kDropped) != 0,
            .new_version = (word & kNewVersion) != 0};
  if (entry_.kind == AsyncKind::update) entry_.staleness = static_cast<std::int64_t>(varint());
}

}  // namespace echelon::inline exchange

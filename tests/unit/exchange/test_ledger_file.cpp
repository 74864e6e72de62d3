// SPDX-License-Identifier: Apache-2.0
// Files of the order of arrivals: what is written can be read, whatever is torn off or damaged; meetings are found.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "exchange/asynchronous/ledger_file.hpp"
#include "exchange/asynchronous/ledger_meetings.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::random_integers;

LedgerHeader some_header() {
  return {.rank = 2,
          .ranks = 5,
          .workers = 4,
          .servers = 3,
          .pieces = 7,
          .first_step = 17,
          .total_steps = 170,
          .samples = 801,
          .config = "00ff",
          .data = "0123",
          .weights = "abc",
          .device = "onednn, 2 threads of a b c"};
}

LedgerBytes random_order(const std::string& name) {
  LedgerBytes bytes;
  for (const std::int64_t n : random_integers(40, 0, 5000, name))
    append(bytes,
           {.worker = static_cast<int>(n % 19), .dropped = n % 2 == 0, .new_version = n % 3 == 0, .staleness = n});
  return bytes;
}

struct Written {
  std::vector<std::uint64_t> ends;                // end of each block; the header's is first
  std::vector<std::vector<LedgerBytes>> orders;   // by block: everything up to its end
  std::vector<std::vector<std::uint32_t>> calls;  // by block: everything up to its end
};

Written write_some(const std::string& path) {
  LedgerWriter writer(path, some_header());
  std::vector<LedgerBytes> orders(5);
  std::vector<std::uint32_t> calls;
  Written all{.ends = {writer.bytes()}, .orders = {orders}, .calls = {calls}};
  for (std::uint32_t meeting = 0; meeting < 6; ++meeting) {
    std::vector<LedgerBytes> parts(5);
    for (const std::size_t bucket : {std::size_t{1}, std::size_t{4}, std::size_t{meeting % 3}})
      parts[bucket] = random_order("order " + std::to_string(meeting) + " " + std::to_string(bucket));
    for (std::size_t b = 0; b < parts.size(); ++b) orders[b].insert(orders[b].end(), parts[b].begin(), parts[b].end());
    calls.push_back(meeting + 3);
    writer.add(std::move(parts));
    writer.met(meeting + 3);
    all.ends.push_back(writer.bytes());
    all.orders.push_back(orders);
    all.calls.push_back(calls);
  }
  return all;
}

void check_read(const LedgerFile& file, const Written& all, std::size_t blocks) {
  CHECK(file.meetings == all.calls[blocks]);
  for (std::size_t b = 0; b < 5; ++b)
    CHECK((b < file.orders.size() ? file.orders[b] : LedgerBytes{}) == all.orders[blocks][b]);
}

void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace

TEST_CASE("an order of arrivals is read as it was written; of a file that is cut off, all whole blocks",
          "[exchange][replay]") {
  const test::TempFolder folder;
  const std::string path = folder / "arrivals.bin", torn = folder / "torn.bin";
  const Written all = write_some(path);
  const std::string bytes = read_file_whole(path);
  REQUIRE(bytes.size() == all.ends.back());
  CHECK(read_ledger_header(path) == some_header());
  for (std::size_t cut = all.ends.front(); cut <= bytes.size(); ++cut) {
    write_bytes(torn, bytes.substr(0, cut));
    const LedgerFile file = read_ledger_file(torn);
    std::size_t blocks = 0;
    while (blocks + 1 < all.ends.size() && all.ends[blocks + 1] <= cut) ++blocks;
    CAPTURE(cut, blocks);
    CHECK(file.header == some_header());
    CHECK(file.lost_bytes == cut - all.ends[blocks]);
    if (cut % 7 == 0 || cut == bytes.size()) check_read(file, all, blocks);
  }
  for (std::size_t cut = 0; cut < all.ends.front(); ++cut) {
    write_bytes(torn, bytes.substr(0, cut));
    CHECK_THROWS_AS(read_ledger_file(torn), DataError);
  }
}

TEST_CASE("a damaged byte of an order of arrivals ends the readable part before its block", "[exchange][replay]") {
  const test::TempFolder folder;
  const std::string path = folder / "arrivals.bin", bad = folder / "bad.bin";
  const Written all = write_some(path);
  const std::string bytes = read_file_whole(path);
  const auto last = static_cast<std::int64_t>(bytes.size()) - 1;
  for (const std::int64_t at : random_integers(200, static_cast<std::int64_t>(all.ends.front()), last, "damage")) {
    std::string damaged = bytes;
    damaged[static_cast<std::size_t>(at)] = static_cast<char>(damaged[static_cast<std::size_t>(at)] ^ 0x20);
    write_bytes(bad, damaged);
    const LedgerFile file = read_ledger_file(bad);
    std::size_t blocks = 0;
    while (all.ends[blocks + 1] <= static_cast<std::uint64_t>(at)) ++blocks;
    CAPTURE(at, blocks);
    CHECK(file.lost_bytes == bytes.size() - all.ends[blocks]);
    check_read(file, all, blocks);
  }
}

TEST_CASE("orders of arrivals are written in blocks of bounded size, and never over another file",
          "[exchange][replay]") {
  const test::TempFolder folder;
  const std::string path = folder / "arrivals.bin";
  LedgerBytes whole;
  {
    LedgerWriter writer(path, some_header());
    const std::uint64_t header = writer.bytes();
    std::size_t waiting = 0;
    for (int i = 0; i < 4000; ++i) {
      const LedgerBytes part = random_order("part " + std::to_string(i % 10));
      whole.insert(whole.end(), part.begin(), part.end());
      const std::uint64_t before = writer.bytes();
      writer.add({{}, part});
      waiting = writer.bytes() == before ? waiting + part.size() : 0;
      REQUIRE(waiting < kLedgerBlock);
    }
    CHECK(writer.bytes() > header);
    CHECK_THROWS_AS(LedgerWriter(path, some_header()), EnvironmentError);
  }  // the rest is written by the destructor
  CHECK(read_ledger_file(path).orders.at(1) == whole);
}

TEST_CASE("an order of arrivals of an impossible bucket is refused", "[exchange][replay]") {
  const test::TempFolder folder;
  const std::string path = folder / "arrivals";
  { LedgerWriter writer(path, some_header()); }
  std::string file = read_file_whole(path);
  constexpr std::size_t kMagic = 19;  // bytes before the first block, whose checksum comes after its length
  std::uint64_t before = 0;
  std::memcpy(&before, file.data() + kMagic + 4, sizeof before);
  const std::uint32_t payload[] = {0, 1U << 31, 0}, bytes = sizeof payload;
  const std::uint64_t sum = checksum64(payload, bytes, before);
  file.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  file.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  file.append(reinterpret_cast<const char*>(payload), bytes);
  write_bytes(path, file);
  CHECK_THAT(test::refusal<DataError>([&] { read_ledger_file(path); }), Contains("unknown form"));
}

TEST_CASE("meetings in an order of arrivals", "[exchange][replay]") {
  for (int round = 0; round < 50; ++round) {
    const std::string name = "meetings " + std::to_string(round);
    const auto workers = static_cast<int>(random_integers(1, 1, 6, name)[0]);
    LedgerBytes bytes;
    std::vector<LedgerMeeting> expected;
    std::vector<std::int64_t> updates(static_cast<std::size_t>(workers));
    std::size_t draw = 0;
    const std::vector<std::int64_t> draws = random_integers(4000, 0, 1 << 20, name);
    for (int meeting = 0; meeting < 4; ++meeting) {
      std::vector<std::int64_t> left(static_cast<std::size_t>(workers));
      for (std::int64_t& steps : left) steps = draws[draw++] % 20;
      std::vector<bool> stands(left.size(), false);
      for (std::size_t standing = 0; standing < left.size();) {
        const auto w = static_cast<std::size_t>(draws[draw++] % workers);
        if (stands[w]) continue;
        if (left[w]-- > 0) {
          ++updates[w];
          append(bytes, {.worker = static_cast<int>(w), .staleness = draws[draw] % 300});
        } else {
          stands[w] = true;
          ++standing;
          append(bytes, {.worker = static_cast<int>(w), .kind = AsyncKind::meet});
        }
      }
      expected.push_back({.updates = updates, .end = bytes.size()});
    }
    if (workers > 1) append(bytes, {.worker = 0, .kind = AsyncKind::meet});  // a meeting to which nobody else came
    CAPTURE(round, workers);
    CHECK(meetings_of(bytes, workers) == expected);
    if (workers > 1)
      CHECK_THAT(test::refusal<DataError>([&] { (void)meetings_of(bytes, workers - 1); }),
                 Contains("cannot come here"));
  }
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Decisions of an asynchronous server about a piece, worked out by hand; and the written form of its order.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <string>

#include "base/error.hpp"
#include "exchange/asynchronous/piece.hpp"
#include "tests/support/ledger_rows.hpp"

namespace echelon {
namespace {

// Writes down the events: "u1*0.5" an update of worker 1 with its factor, "!" a new version, "f" a flush, "a1@3" an
// answer with version 3, "met", "ended".
class Writer final : public AsyncPiece::Owner {
 public:
  explicit Writer(const AsyncRules& rules, int workers = 3, LedgerBytes recorded = {})
      : piece(workers, rules, std::move(recorded), *this),
        clocks(static_cast<std::size_t>(workers)),
        versions(clocks) {}

  void apply(int worker, const AsyncUpdate& update) override {
    text += fmt::format("u{}{}{} ", worker, update.factor == 1 ? "" : fmt::format("*{}", update.factor),
                        update.new_version ? "!" : "");
  }
  void flush() override { text += "f "; }
  void answer(int worker, std::int64_t version) override {
    versions[static_cast<std::size_t>(worker)] = version;
    text += fmt::format("a{}@{} ", worker, version);
  }
  void closed(bool meeting) override { text += meeting ? "met " : "ended "; }

  // Returns the events that follow from this message.
  std::string push(int worker) { return come(worker, AsyncKind::update); }
  std::string meet(int worker) { return come(worker, AsyncKind::meet); }
  std::string done(int worker) { return come(worker, AsyncKind::done); }

  AsyncPiece piece;
  std::string text;

 private:
  std::string come(int worker, AsyncKind kind) {
    const auto w = static_cast<std::size_t>(worker);
    text.clear();
    if (kind == AsyncKind::update) ++clocks[w];
    piece.arrived(worker, kind, versions[w], clocks[w], ++now_s);
    return text;
  }

  std::vector<std::int64_t> clocks, versions;
  double now_s = 0;
};

}  // namespace

TEST_CASE("an update without rules is applied and answered at once", "[exchange][asynchronous]") {
  Writer w({});
  CHECK(w.push(0) == "u0! a0@1 ");
  CHECK(w.push(0) == "u0! a0@2 ");
  CHECK(w.push(1) == "u1! a1@3 ");
  CHECK(w.piece.staleness(0).mean() == 0);
  CHECK(w.piece.staleness(1).mean() == 2);
}

TEST_CASE("soft synchronisation, scaling and dropping together", "[exchange][asynchronous]") {
  Writer w({.soft = 2, .drop_above = 2, .scale = 0.5});
  CHECK(w.push(0) == "u0*0.5 a0@0 ");
  CHECK(w.push(1) == "u1*0.5! a1@1 ");
  CHECK(w.push(1) == "u1*0.5 a1@1 ");
  CHECK(w.push(0) == "u0*0.5! a0@2 ");  // staleness 1
  CHECK(w.push(2) == "u2*0.25 a2@2 ");  // staleness 2
  CHECK(w.push(0) == "u0*0.5! a0@3 ");
  CHECK(w.push(0) == "u0*0.5 a0@3 ");
  CHECK(w.push(0) == "u0*0.5! a0@4 ");
  CHECK(w.push(1) == "a1@4 ");  // staleness 3: dropped, answered all the same
  CHECK(w.push(0) == "u0*0.5 a0@4 ");
  CHECK(w.push(2) == "u2*0.25! a2@5 ");  // staleness 2
  CHECK(w.piece.staleness(1).dropped == 1);
  CHECK((w.piece.staleness(1).histogram == std::map<std::int64_t, std::uint64_t>{{0, 2}}));
  CHECK((w.piece.staleness(2).histogram == std::map<std::int64_t, std::uint64_t>{{2, 2}}));
}

TEST_CASE("the bound holds answers until the slowest has come near", "[exchange][asynchronous]") {
  Writer w({.bound = 1});
  CHECK(w.push(0) == "u0! a0@1 ");
  CHECK(w.push(0) == "u0! ");  // clock 2, the slowest is at 0
  CHECK(w.push(1) == "u1! a1@3 ");
  CHECK(w.push(2) == "u2! a0@4 a2@4 ");
  CHECK(w.push(0) == "u0! ");
  CHECK(w.done(1) == "");
  CHECK(w.done(2) == "a0@5 ");  // nobody is behind any more
  CHECK(w.push(0) == "u0! a0@6 ");
  CHECK(w.done(0) == "ended ");
  CHECK(w.piece.staleness(0).held_s == 2 + 2);
}

TEST_CASE("a meeting adds what is left, gives all the same weights and makes clocks equal",
          "[exchange][asynchronous]") {
  Writer w({.soft = 4, .bound = 0});
  CHECK(w.meet(0) == "");
  CHECK(w.push(1) == "u1 ");
  CHECK(w.push(2) == "u2 a1@0 a2@0 ");
  CHECK(w.meet(1) == "");
  CHECK(w.push(2) == "u2 a2@0 ");  // workers at the meeting hold nobody
  CHECK(w.meet(2) == "f a0@1 a1@1 a2@1 met ");
  CHECK(w.push(2) == "u2 ");  // all before it have clock 3
  CHECK(w.push(0) == "u0 ");
  CHECK(w.push(1) == "u1 a0@1 a1@1 a2@1 ");
  CHECK(w.done(0) == "");
  CHECK(w.done(1) == "");
  CHECK(w.done(2) == "f ended ");
  CHECK(w.piece.version() == 2);
  CHECK(w.piece.staleness(0).meeting_s == 5);
  CHECK(w.piece.staleness(0).held_s == 1);
}

TEST_CASE("a recorded order is kept whatever comes first", "[exchange][asynchronous]") {
  Writer recorded({.bound = 1});
  for (const int worker : {0, 1, 2, 2}) recorded.push(worker);
  recorded.done(1);
  const LedgerBytes order = recorded.piece.ledger();
  const LedgerBytes taken = recorded.piece.take_ledger();
  CHECK(taken == order);
  CHECK(recorded.piece.take_ledger().empty());
  Writer w({.bound = 1}, 3, order);
  CHECK(w.push(2) == "");
  CHECK(w.push(1) == "");
  CHECK(w.push(0) == "u0! a0@1 u1! a1@2 u2! a2@3 ");
  CHECK(w.done(1) == "");
  CHECK(w.push(2) == "u2! a2@4 ");
  CHECK_FALSE(w.piece.replaying());
  CHECK(w.piece.ledger() == order);
  CHECK(w.push(0) == "u0! a0@5 ");  // the recorded order is used up: updates are applied as they come
}

TEST_CASE("a lost or repeated message is a failed check", "[exchange][asynchronous]") {
  Writer w({});
  w.push(0);
  CHECK_THROWS_AS(w.piece.arrived(0, AsyncKind::update, 1, 1, 2), Error);
  CHECK_THROWS_AS(w.piece.arrived(0, AsyncKind::update, 1, 3, 2), Error);
  CHECK_THROWS_AS(w.piece.arrived(0, AsyncKind::update, 0, 2, 2), Error);
  CHECK_NOTHROW(w.piece.arrived(0, AsyncKind::update, 1, 2, 2));
}

TEST_CASE("the written order of arrivals is read again, and damage is named", "[exchange][asynchronous]") {
  const std::vector<LedgerEntry> entries{
      {.worker = 0, .new_version = true, .staleness = 0},
      {.worker = 7, .dropped = true, .staleness = 127},
      {.worker = 8, .staleness = 128},
      {.worker = 70'000, .kind = AsyncKind::meet},
      {.worker = 3, .new_version = true, .staleness = std::int64_t{1} << 40},
      {.worker = 2, .kind = AsyncKind::done, .new_version = true},
  };
  LedgerBytes bytes;
  for (const LedgerEntry& entry : entries) append(bytes, entry);
  LedgerReader reader(bytes);
  for (const LedgerEntry& entry : entries) {
    REQUIRE_FALSE(reader.over());
    CHECK(reader.entry() == entry);
    reader.next();
  }
  CHECK(reader.over());
  CHECK(test::ledger_rows(bytes).back().version == 3);

  LedgerBytes two;
  append(two, entries[0]);
  CHECK(two.size() == 2);
  two.pop_back();
  CHECK_THROWS_WITH(LedgerReader(two), Catch::Contains("ends inside entry 0, after 1 bytes"));
  CHECK_THROWS_WITH(LedgerReader(LedgerBytes{3}), Catch::Contains("unknown entry 0 at byte 0"));
  CHECK_THROWS_AS(LedgerReader(LedgerBytes(12, 0xff)), DataError);
}

}  // namespace echelon

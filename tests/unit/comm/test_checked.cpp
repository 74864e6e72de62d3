// SPDX-License-Identifier: Apache-2.0
// Messages checked on arrival: the transport's contract still holds, and every kind of damage is named.
#include <catch2/catch.hpp>

#include "base/check.hpp"
#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "comm/checked.hpp"
#include "comm/disturbed.hpp"
#include "comm/group.hpp"
#include "comm/local/local.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/transport_contract.hpp"

namespace echelon {
namespace {

using Catch::Contains;

// Gives one message of a rank this fate.
class OneFault final : public MessageFaults {
 public:
  OneFault(std::uint64_t number, Fate fate) : number_(number), fate_(fate) {}
  Fate fate_of(int, int, std::size_t) override { return next_++ == number_ ? fate_ : Fate{}; }
  bool is_cut() override { return false; }

 private:
  std::uint64_t number_, next_ = 0;
  Fate fate_;
};

// Rank 1 sends rank 0 five messages with one tag, one of which has this fate; returns the fault that rank 0 finds.
std::string found(std::uint64_t number, const MessageFaults::Fate& fate, bool any_source, std::size_t bytes) {
  std::string what;
  test::run_ranks(2, [&](std::unique_ptr<Transport> plain) {
    OneFault fault(number, fate);
    const int rank = plain->rank();
    if (rank == 1) plain = make_disturbed(std::move(plain), {.faults = &fault});
    const std::unique_ptr<Transport> transport = make_checked(std::move(plain));
    std::vector<char> data(bytes, 'x');
    constexpr int kMany = 5;
    for (int i = 0; i < kMany; ++i) {
      Request request = rank == 1 ? transport->isend(0, 3, data.data(), bytes)
                                  : transport->irecv(any_source ? kAnySource : 1, 3, data.data(), bytes);
      try {
        for (const double limit = now_s() + 0.3; !transport->test(request) && now_s() < limit;) {
        }
      } catch (const MessageError& error) {
        if (what.empty()) what = error.what();
        ECHELON_CHECK(error.code() == kExitEnvironment);
      }
      if (request.valid()) transport->cancel(request);
    }
  });
  return what;
}

TEST_CASE("the CRC is that of RFC 3720, in one piece and in several, with and without a copy", "[comm]") {
  CHECK(crc32c("123456789") == 0xe3069283U);
  const std::vector<double> values = test::random_values(2777, "crc");
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  const std::size_t all = values.size() * 8 - 3;
  std::vector<char> copy(all);
  const std::uint32_t whole = crc32c(bytes, all);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{13}, std::size_t{8192}, all})
    CHECK(crc32c(bytes + cut, all - cut, crc32c(bytes, cut)) == whole);
  CHECK(copy_with_crc32c(copy.data(), bytes, all) == whole);
  CHECK(std::equal(copy.begin(), copy.end(), bytes));
}

TEST_CASE("a transport that checks its messages keeps the transport's contract", "[comm]") {
  for (const int ranks : {1, 2, 3, 5})
    CHECK_NOTHROW(test::run_ranks(ranks, [](std::unique_ptr<Transport> plain) {
      const std::unique_ptr<Transport> transport = make_checked(std::move(plain));
      ECHELON_CHECK(transport->checks_messages());
      ECHELON_CHECK(!transport->has_library_allreduce());
      test::check_transport(*transport);
    }));
  CHECK_NOTHROW(test::run_ranks(4, [](std::unique_ptr<Transport> plain) {
    Engine engine(make_checked(std::move(plain)));
    test::check_group(engine);
    test::check_many_channels(engine, 20);
    test::check_engine_split(engine);
    ECHELON_CHECK(engine.share(64) == nullptr);
  }));
}

TEST_CASE("one flipped bit of a message is named, wherever it lies", "[comm]") {
  for (const bool any : {false, true})
    for (const std::size_t bytes : {0, 1, 7, 1000}) {
      const auto bits = static_cast<std::int64_t>(8 * (bytes + 8));
      for (const std::int64_t bit : test::random_integers(4, 0, bits - 1, "flipped")) {
        CAPTURE(any, bytes, bit);
        CHECK_THAT(found(1, {.flipped_bit = bit}, any, bytes), Contains("a message from rank 1 on ") &&
                                                                   Contains("to rank 0 (tag 3, ") &&
                                                                   Contains("arrived damaged"));
      }
    }
}

TEST_CASE("a lost message is named by the next one of its sender and tag", "[comm]") {
  for (const bool any : {false, true}) {
    CAPTURE(any);
    CHECK_THAT(
        found(1, {.lost = true}, any, 100),
        Contains(any ? "message 1 from rank 1 on " : "is number 2, but number 1 was due: one before it was lost"));
  }
  CHECK(found(99, {.lost = true}, false, 100).empty());
}

TEST_CASE("with many receives from any rank open, a loss is found and order alone is none", "[comm]") {
  for (const bool lost : {false, true}) {
    std::string what;
    test::run_ranks(3, [&](std::unique_ptr<Transport> plain) {
      OneFault fault(4, {.lost = lost});
      if (plain->rank() == 1) plain = make_disturbed(std::move(plain), {.faults = &fault});
      const std::unique_ptr<Transport> transport = make_checked(std::move(plain));
      constexpr int kEach = 12;
      std::vector<int> words(2 * kEach);
      std::vector<Request> open;
      for (int i = 0; i < (transport->rank() == 0 ? 2 * kEach : kEach); ++i)
        open.push_back(transport->rank() == 0
                           ? transport->irecv(kAnySource, 5, &words[static_cast<std::size_t>(i)], sizeof(int))
                           : transport->isend(0, 5, &words[static_cast<std::size_t>(i)], sizeof(int)));
      try {
        for (const double limit = now_s() + (lost ? 0.5 : 10); !open.empty() && now_s() < limit;)
          for (std::size_t i = open.size(); i-- > 0;)  // completes the last one first
            if (transport->test(open[i])) open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
        ECHELON_CHECK(lost || open.empty());
      } catch (const MessageError& error) {
        what = error.what();
      }
      for (Request& request : open)
        if (request.valid()) transport->cancel(request);
    });
    if (lost)
      CHECK_THAT(what, Contains("message 4 from rank 1 on ") && Contains("was lost: message "));
    else
      CHECK(what.empty());
  }
}

TEST_CASE("where messages are not checked a flipped bit arrives", "[comm]") {
  CHECK_NOTHROW(test::run_ranks(2, [&](std::unique_ptr<Transport> plain) {
    OneFault fault(0, {.flipped_bit = 9});
    if (plain->rank() == 1) plain = make_disturbed(std::move(plain), {.faults = &fault});
    char data[3] = {};
    const int peer = 1 - plain->rank();
    Request request = plain->rank() == 1 ? plain->isend(peer, 0, data, 3) : plain->irecv(peer, 0, data, 3);
    while (!plain->test(request)) {
    }
    ECHELON_CHECK_EQ(data[1], plain->rank() == 1 ? 0 : 2);
  }));
}

}  // namespace
}  // namespace echelon

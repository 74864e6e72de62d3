// SPDX-License-Identifier: Apache-2.0
// The stand-in for a card must be late, and keep the order of its streams and marks: it finds missing synchronisation
// in other tests, so it is tested here.
#include "tests/support/late_streams.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.hpp"
#include "tests/support/discrete_device.hpp"
#include "tests/support/late_ops.hpp"

namespace echelon::test {
namespace {

TEST_CASE("late streams keep their own order and that of marks, in any interleaving", "[device]") {
  bool beside_first = false, ops_first = false;
  for (int round = 0; round < 1000; ++round) {
    LateStreams streams;
    const int beside = streams.add();
    std::vector<int> order;
    const auto note = [&](int value) { return [&order, value] { order.push_back(value); }; };
    streams.put(kOpStream, note(1));
    streams.put(kOpStream, note(2));
    streams.put(beside, note(10));
    streams.put_wait(beside, streams.record(kOpStream));
    streams.put(beside, note(11));
    const LateStreams::Mark end = streams.record(beside);
    streams.put(kOpStream, note(3));
    streams.finish(end);
    const auto place = [&](int value) { return std::find(order.begin(), order.end(), value) - order.begin(); };
    CHECK(place(1) < place(2));
    CHECK(place(2) < place(11));
    CHECK(place(10) < place(11));
    CHECK(streams.passed(end));
    streams.finish_all();
    CHECK(order.size() == 5);
    (place(10) < place(1) ? beside_first : ops_first) = true;
  }
  CHECK(beside_first);
  CHECK(ops_first);
}

// Tells whether the host ever finds stale values in its memory, with or without waiting.
bool stale_without_wait(bool waits) {
  bool stale = false;
  for (int round = 0; round < 50; ++round) {
    const auto device = make_discrete_device();
    const Memory there = device->allocate(64, "there"), host = device->allocate_host(64);
    device->vector_ops().fill(DType::f64, there.data(), 1.5, 8);
    device->to_host_async(host.data(), there.data(), 64);
    const auto event = device->record();
    if (waits) event->wait();
    stale = stale || static_cast<const double*>(host.data())[7] != 1.5;
  }
  return stale;
}

TEST_CASE("host code that does not wait for a late device reads stale values, and code that waits does not",
          "[device]") {
  CHECK(stale_without_wait(false));
  CHECK_FALSE(stale_without_wait(true));
}

TEST_CASE("a copy without waiting takes page-locked memory alone", "[device]") {
  const auto device = make_discrete_device();
  const Memory there = device->allocate(64, "there"), host = device->allocate_host(64);
  std::vector<std::byte> pageable(64);
  CHECK_THROWS_WITH(device->to_device_async(there.data(), pageable.data(), 64), Catch::Contains("no memory of"));
  CHECK_THROWS_WITH(device->to_host_async(host.bytes_at(8), there.data(), 64), Catch::Contains("no memory of"));
  CHECK_NOTHROW(device->to_host_async(host.bytes_at(8), there.data(), 56));
}

}  // namespace
}  // namespace echelon::test

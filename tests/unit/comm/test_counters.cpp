// SPDX-License-Identifier: Apache-2.0
#include "comm/counters.hpp"

#include <catch2/catch.hpp>

#include "comm/local/local.hpp"
#include "tests/support/ranks.hpp"

namespace echelon {

TEST_CASE("the rates of a card: its busiest tenth of a second, and the mean", "[comm][counters]") {
  CardMeter meter;
  CHECK(meter.read().mean == 0);
  meter.add(10.0, 1000);  // this is before the restart
  meter.restart();
  CHECK(meter.read().mean == 0);
  for (int i = 0; i <= 20; ++i) meter.add(20 + 0.06 * i, 100);  // two in each tenth of a second
  CHECK(meter.read().peak == Approx(200 / 0.1));
  CHECK(meter.read().mean == Approx(21 * 100 / 1.3));
  CHECK(meter.read().mean <= meter.read().peak);
  meter.add(25, 4000);
  meter.add(25.01, 1000);
  CHECK(meter.read().peak == Approx(5000 / 0.1));
  CHECK(meter.read().mean == Approx((21 * 100 + 5000) / 5.1));
  meter.restart();
  meter.add(30, 700);  // the run is shorter than a tenth of a second
  CHECK(meter.read().mean == meter.read().peak);
}

TEST_CASE("a transport counts the bytes to each rank", "[comm][counters]") {
  test::run_ranks(3, [](std::unique_ptr<Transport> transport) {
    const int rank = transport->rank();
    char data[40] = {}, room[40];
    std::vector<Request> requests;
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank) continue;
      requests.push_back(transport->irecv(peer, 1, room, sizeof room));
      requests.push_back(transport->isend(peer, 1, data, static_cast<std::size_t>(10 * rank + peer + 1)));
    }
    for (Request& request : requests)
      while (request.valid()) (void)transport->test(request);
    const std::vector<double> bytes = transport->bytes_to_peers();
    for (int peer = 0; peer < 3; ++peer) {
      const double sent = peer == rank ? 0 : 10 * rank + peer + 1;
      if (bytes.at(static_cast<std::size_t>(peer)) != sent) throw std::runtime_error("bytes of another peer");
    }
    if (transport->card_rates().peak <= 0) throw std::runtime_error("no rate");
  });
  SUCCEED("every rank counted its own");
}

}  // namespace echelon

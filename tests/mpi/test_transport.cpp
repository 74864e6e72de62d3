// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <thread>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/mpi/library.hpp"
#include "comm/mpi/lone_ranks.hpp"
#include "comm/mpi/world.hpp"
#include "comm/part_transport.hpp"
#include "tests/mpi/ring.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/transport_contract.hpp"

using namespace echelon;

namespace {

// Returns what programs may take without swapping: unlike free memory, it counts what caches files.
std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (std::size_t kib = 0; file >> key >> kib; std::getline(file, unit))
    if (key == "MemAvailable:") return kib * 1024;
  return 0;
}

void wait_for(Transport& transport, Request request) {
  while (!transport.test(request)) std::this_thread::yield();
}

}  // namespace

TEST_CASE("MPI keeps the transport's contract", "[comm]") {
  const std::unique_ptr<Transport> transport = test::ring_transport();
  CHECK(transport->size() == test::ring_size());
  CHECK_THAT(transport->name(), Catch::StartsWith("mpi ("));
  CHECK_NOTHROW(test::check_transport(*transport));
}

TEST_CASE("some of the ranks keep the transport's contract on MPI", "[comm]") {
  const std::shared_ptr<Transport> whole = test::ring_transport();
  std::vector<int> members;  // all but the first rank
  for (int rank = whole->size() > 1 ? 1 : 0; rank < whole->size(); ++rank) members.push_back(rank);
  if (whole->size() == 1 || whole->rank() > 0) {
    const auto part = make_part_transport(whole, members, 16);
    CHECK(part->size() == static_cast<int>(members.size()));
    CHECK_NOTHROW(test::check_transport(*part));
    const auto inner = part->split(part->rank() % 2, part->rank());
    CHECK_NOTHROW(test::check_transport(*inner));
  } else {
    CHECK(true);
  }
}

TEST_CASE("a receive that is given up is over, whether its message comes or not", "[comm][several]") {
  const std::unique_ptr<Transport> transport = test::ring_transport();
  const int k = transport->size(), right = (transport->rank() + 1) % k, left = (transport->rank() + k - 1) % k;
  REQUIRE(k > 1);  // ensured by the tag (run_tests.sh)
  std::vector<char> never(1000), late(3000000), sent(late.size(), 'x');
  Request none = transport->irecv(left, 21, never.data(), never.size());
  Request some = transport->irecv(left, 22, late.data(), late.size());
  Request send = transport->isend(right, 22, sent.data(), sent.size());
  (void)transport->test(some.valid() ? some : none);
  transport->cancel(none);
  if (some.valid()) transport->cancel(some);
  char byte = 0;
  Request idle = transport->irecv(left, 23, &byte, 1);
  for (const double until_s = now_s() + 30; transport->abandoned() > 0 && now_s() < until_s;)
    CHECK_FALSE(transport->test(idle));  // also polls for receives that were given up
  CHECK(transport->abandoned() == 0);
  if (!transport->test(send)) transport->cancel(send);
  transport->cancel(idle);
}

TEST_CASE("a message may be larger than 2 GiB", "[comm][slow][pair]") {
  constexpr std::size_t kBytes = (std::size_t{1} << 31) + 12345;
  const std::unique_ptr<Transport> transport = test::ring_transport();
  REQUIRE(transport->size() == 2);  // ensured by the tag (run_tests.sh)
  if (test::skip_without(available_bytes() > 4 * kBytes, test::Lacks::memory, "needs 8 GiB of available memory"))
    return;
  std::vector<char> data(kBytes);
  if (transport->rank() == 0) {
    for (std::size_t i = 0; i < kBytes; i += 4099) data[i] = static_cast<char>(i % 127);
    wait_for(*transport, transport->isend(1, 1, data.data(), kBytes));
  } else {
    Request request = transport->irecv(0, 1, data.data(), kBytes);
    std::optional<Completion> completion;
    while (!completion) completion = transport->test(request);
    CHECK(completion->bytes == kBytes);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kBytes; i += 4099) wrong += data[i] != static_cast<char>(i % 127);
    CHECK(wrong == 0);
  }
  CHECK(true);
}

TEST_CASE("the launch that would leave every rank alone is refused with its cure", "[comm]") {
  CHECK_THROWS_WITH(refuse_lone_ranks({.step = 4, .job = 4}, false, "Open MPI 4.1.4"),
                    Catch::Contains("srun --mpi=pmix") && Catch::Contains("Slurm started 4 tasks"));
  CHECK_THROWS_WITH(refuse_lone_ranks({.step = 0, .job = 4}, false, "MPICH 4.0.2"),
                    Catch::Contains("srun --mpi=pmi2") && Catch::Contains("one process that was started without srun"));
  CHECK_NOTHROW(refuse_lone_ranks({.step = 4, .job = 4}, true, "MPICH 4.0.2"));
  CHECK_NOTHROW(refuse_lone_ranks({.step = 1, .job = 4}, false, "MPICH 4.0.2"));
  CHECK_NOTHROW(refuse_lone_ranks({.step = 0, .job = 1}, false, "MPICH 4.0.2"));
  CHECK_NOTHROW(refuse_lone_ranks({}, false, ""));
  CHECK_THAT(mpi_version(), Catch::Contains("."));
}

#include <catch2/catch.hpp>
#include <thread>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/mpi/world.hpp"
#include "tests/mpi/ring.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/transport_contract.hpp"

using namespace echelon;

namespace {

std::size_t available_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
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

TEST_CASE("a message may be larger than 2 GiB", "[comm][slow]") {
  constexpr std::size_t kBytes = (std::size_t{1} << 31) + 12345;
  const bool roomy = available_bytes() > 4 * kBytes;
  const std::unique_ptr<Transport> transport = test::ring_transport();
  if (test::skip_without(transport->size() == 2 && roomy, "needs 2 ranks and 8 GiB of free memory")) return;
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
  CHECK_THROWS_WITH(refuse_lone_ranks(4, false), Catch::Contains("srun --mpi=pmix"));
  CHECK_NOTHROW(refuse_lone_ranks(4, true));
  CHECK_NOTHROW(refuse_lone_ranks(1, false));
  CHECK_THAT(mpi_version(), Catch::Contains("."));
}

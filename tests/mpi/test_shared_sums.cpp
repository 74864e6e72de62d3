// SPDX-License-Identifier: Apache-2.0
// All-reduces between processes in memory that the ranks of a host share.
#include <catch2/catch.hpp>
#include <fstream>

#include "base/hash_rng.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/engine.hpp"
#include "tests/mpi/ring.hpp"

namespace echelon {
namespace {

float value(int rank, std::size_t call, std::size_t i) {
  return static_cast<float>((i * 13 + call * 7 + static_cast<std::size_t>(rank) * 101) % 509);
}

std::size_t wrong_sums(const std::vector<float>& data, std::size_t call) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < test::ring_size(); ++rank) sum += value(rank, call, i);
    wrong += data[i] != sum;
  }
  return wrong;
}

// Counts the mappings of this process whose line ends with `name`.
int mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.ends_with(name);
  return count;
}

TEST_CASE("many sums of random sizes in shared memory, few at a time", "[comm][shared]") {
  constexpr std::size_t kChannels = 3, kCalls = 400;
  Engine engine(test::ring_transport());
  if (engine.transport().host_names().size() > 1) return;
  const HashRng sizes(23, "sizes");  // the same on all ranks
  const auto elems_of = [&](std::size_t call) { return 1 + sizes.below(call, call % 5 == 0 ? 200'000 : 4000); };
  std::vector<std::vector<float>> data(kCalls);
  std::vector<Ticket> tickets(kCalls);
  std::size_t wrong = 0;
  const auto settle = [&](std::size_t call) {
    tickets[call].wait();
    wrong += wrong_sums(data[call], call);
    data[call] = {};
  };
  for (std::size_t call = 0; call < kCalls; ++call) {
    data[call].resize(elems_of(call));
    for (std::size_t i = 0; i < data[call].size(); ++i) data[call][i] = value(engine.rank(), call, i);
    const AllreduceRequest request{.rank = engine.rank(),
                                   .ranks = engine.size(),
                                   .elems = static_cast<std::int64_t>(data[call].size()),
                                   .hosts = engine.transport().hosts()};
    tickets[call] = engine.submit({.plan = make_allreduce("shared", request),
                                   .data = data[call].data(),
                                   .channel = 20 + static_cast<int>(call % kChannels),
                                   .priority = static_cast<int>(call % 2),
                                   .after = nullptr});
    if (call >= 4) settle(call - 4);
  }
  for (std::size_t call = kCalls - 4; call < kCalls; ++call) settle(call);
  CHECK(wrong == 0);
  CHECK(engine.counters().messages_sent == 0);
}

TEST_CASE("the memory has no name: nothing is left where a process is killed", "[comm][shared]") {
  Engine engine(test::ring_transport());
  if (engine.transport().host_names().size() > 1) return;
  const AllreduceRequest request{.rank = engine.rank(), .ranks = engine.size(), .elems = 100, .hosts = {}};
  std::vector<double> data(100, 1);
  engine.run({.plan = make_allreduce("shared", request),
              .data = data.data(),
              .dtype = DType::f64,
              .channel = 2,
              .after = nullptr});
  CHECK(data == std::vector<double>(100, engine.size()));
  if (engine.size() > 1) CHECK(mapped("/memfd:echelon-sums (deleted)") == 1);
}

}  // namespace
}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// k replicas under MPI end with the weights of 1 replica of the k-fold batch, for every algorithm, and with equal bits.
#include <catch2/catch.hpp>

#include "base/checksum.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/group.hpp"
#include "tests/mpi/ring.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kDouble = 1e-8, kSingle = 1e-4;

std::vector<std::int64_t> shares_of_the_ring(bool equal) {
  std::vector<std::int64_t> shares;
  for (int r = 0; r < ring_size(); ++r) shares.push_back(equal ? 2 : 2 * (r % 2 == 0 ? 1 : 3));
  return shares;
}

void check_equal(const ReplicaRun& run, bool groups, double bound) {
  const ReplicaResult split = train_replica(ring_transport(), run);
  const ReplicaResult whole = train_replicas(on_one_replica(run, groups));
  CHECK(tensor_distance(run.graph.parameters(), split.gradients, whole.gradients) <= bound);
  CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= bound);
  Engine engine(ring_transport());
  Group group(engine, 1);
  for (const std::string& other : group.gather(hex64(split.checksums[0]))) CHECK(other == hex64(split.checksums[0]));
}

TEST_CASE("replicas under MPI have the weights of one, in double", "[equality]") {
  for (const std::string& algorithm : allreduce_names())
    for (bool equal : {true, false}) {
      INFO(algorithm << (equal ? ", equal shares" : ", shares 1:3"));
      check_equal({.graph = small_cnn(), .shares = shares_of_the_ring(equal), .algorithm = algorithm}, false, kDouble);
    }
}

TEST_CASE("batch norm over micro-batches is the same under MPI", "[equality]") {
  for (const std::string& algorithm : allreduce_names()) {
    INFO(algorithm);
    check_equal({.graph = small_batch_norm_net(),
                 .shares = std::vector<std::int64_t>(static_cast<std::size_t>(ring_size()), 4),
                 .accumulation = 2,
                 .algorithm = algorithm},
                true, kDouble);
  }
}

TEST_CASE("replicas under MPI on onednn have the weights of one within fp32", "[equality][onednn]") {
  for (const std::string& algorithm : allreduce_names()) {
    INFO(algorithm);
    check_equal({.graph = small_digits_cnn(),
                 .shares = shares_of_the_ring(true),
                 .algorithm = algorithm,
                 .device = "onednn",
                 .dtype = DType::f32},
                false, kSingle);
  }
}

}  // namespace
}  // namespace echelon

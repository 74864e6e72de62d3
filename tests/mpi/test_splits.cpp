// Split models under MPI end with the weights of the unsplit one.
#include <catch2/catch.hpp>

#include "comm/group.hpp"
#include "tests/mpi/ring.hpp"
#include "tests/support/split_models.hpp"

namespace echelon {
namespace {

using namespace test;

TEST_CASE("pipelines under MPI have the weights of the unsplit model, in double", "[split]") {
  for (const int stages : {2, 3, 4}) {
    if (ring_size() % stages != 0) continue;
    for (const char* schedule : {"gpipe", "1f1b"}) {
      INFO(stages << " stages, " << schedule);
      const auto replicas = static_cast<std::size_t>(ring_size() / stages);
      SplitRun run{.replicas = {.graph = small_batch_norm_net(),
                                .shares = std::vector<std::int64_t>(replicas, 6),
                                .accumulation = 3},
                   .parallel = {}};
      run.parallel.pipeline = stages;
      run.parallel.schedule = schedule;
      // Each rank holds its part; together, every replica's.
      std::vector<double> all = train_split_rank(ring_transport(), run).weights;
      Engine engine(ring_transport());
      Group(engine, 1).sum(all);
      for (double& value : all) value /= static_cast<double>(replicas);
      const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, true));
      CHECK(tensor_distance(run.replicas.graph.parameters(), all, whole.weights) <= 1e-8);
    }
  }
  CHECK(ring_size() >= 1);
}

}  // namespace
}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <set>

#include "base/error.hpp"
#include "parallel/mesh.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

ParallelConfig split(std::int64_t pipeline, std::int64_t tensor, bool across = false, std::int64_t space = 1) {
  ParallelConfig config;
  config.pipeline = pipeline;
  config.tensor = tensor;
  config.space = space;
  config.allow_across_nodes = across;
  return config;
}

const std::vector<std::string> kTwoHosts = {"n1", "n2"};

TEST_CASE("ranks are seats of a mesh, each once, groups on one host", "[parallel][mesh]") {
  // The launcher may have dealt out the ranks in any way.
  for (const std::vector<int>& hosts :
       {std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}, {0, 1, 0, 1, 0, 1, 0, 1}, {0, 1, 1, 0, 1, 0, 0, 1}})
    for (const auto& [pipeline, tensor] : {std::pair{2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {1, 1}}) {
      const Mesh mesh(split(pipeline, tensor), hosts, kTwoHosts);
      CHECK(mesh.replicas() * pipeline * tensor == 8);
      std::set<int> taken;
      for (int replica = 0; replica < mesh.replicas(); ++replica) {
        std::set<int> on;
        for (int stage = 0; stage < pipeline; ++stage)
          for (int shard = 0; shard < tensor; ++shard) {
            const MeshCoord coord{replica, stage, shard};
            const int rank = mesh.rank(coord);
            CHECK(mesh.coord(rank) == coord);
            taken.insert(rank);
            on.insert(hosts[static_cast<std::size_t>(rank)]);
          }
        CHECK(on.size() == 1);
      }
      CHECK(taken.size() == 8);
    }
}

TEST_CASE("a mesh that does not fit is refused with the host and the numbers", "[parallel][mesh]") {
  CHECK_THROWS_WITH(Mesh(split(2, 1), {0, 0, 0}, {"n1"}),
                    Contains("one replica takes 2 ranks (pipeline 2)") && Contains("nearest valid: 2 or 4"));
  CHECK_THROWS_WITH(Mesh(split(4, 1), {0, 0, 0}, {"n1"}), Contains("nearest valid: 4"));
  CHECK_THROWS_WITH(Mesh(split(2, 2), {0, 0, 0, 1, 1, 1, 1, 1}, kTwoHosts), Contains("host n1 has 3 ranks") &&
                                                                                Contains("pipeline 2 x tensor 2") &&
                                                                                Contains("allow_across_nodes = true"));
  CHECK_NOTHROW(Mesh(split(2, 2, true), {0, 0, 0, 1, 1, 1, 1, 1}, kTwoHosts));
  CHECK_THROWS_AS(Mesh(split(2, 2, true), {0, 0, 0}, {"n1"}), ConfigError);
}

TEST_CASE("spatial shards are neighbours, and hold one part with those of other replicas", "[parallel][mesh]") {
  const Mesh mesh(split(2, 1, false, 2), {0, 0, 0, 0, 1, 1, 1, 1}, kTwoHosts);
  CHECK(mesh.text() == "data 2 x pipeline 2 x space 2");
  CHECK(mesh.group_size() == 4);
  CHECK(mesh.parts() == 2);
  CHECK(mesh.holders(0) == std::vector<int>{0, 1, 4, 5});
  CHECK(mesh.holders(1) == std::vector<int>{2, 3, 6, 7});
  for (int rank = 0; rank < 8; ++rank) {
    const MeshCoord coord = mesh.coord(rank);
    CHECK(mesh.rank(coord) == rank);
    CHECK(coord == MeshCoord{.replica = rank / 4, .stage = rank / 2 % 2, .shard = 0, .spatial_shard = rank % 2});
  }
  CHECK_THROWS_WITH(Mesh(split(1, 1, false, 3), {0, 0}, {"n1"}), Contains("(space 3)"));
}

TEST_CASE("a mesh says what it is", "[parallel][mesh]") {
  CHECK(Mesh(3).text() == "data 3");
  CHECK(!Mesh(3).splits());
  const Mesh mesh(split(2, 1), {1, 0, 0, 1}, {"n1", "n2"});
  CHECK(mesh.text() == "data 2 x pipeline 2");
  CHECK((mesh.host_of(0) == 0 && mesh.host_of(1) == 1));
}

}  // namespace
}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
#include "parallel/layer_traffic.hpp"

#include <catch2/catch.hpp>

#include "model/build.hpp"

namespace echelon {
namespace {

LayerConfig dense(std::int64_t units) {
  LayerConfig layer;
  layer.type = "dense";
  layer.units = units;
  return layer;
}

// The model has 300 features, then 2,000 units and 10 classes.
std::vector<LayerTraffic> traffic(int ranks, double samples) {
  LayerConfig flatten;
  flatten.type = "flatten";
  return layer_traffic(build_layers({flatten, dense(2000), dense(10)}, labelled({3, 10, 10}, 10)), ranks, samples);
}

}  // namespace

TEST_CASE("a dense layer sends less in shards where its weights outnumber the features of all ranks' samples",
          "[parallel]") {
  const std::vector<LayerTraffic> four = traffic(4, 8);
  REQUIRE(four.size() == 2);
  CHECK(four[0].weights == 301 * 2000);
  CHECK(four[0].replica_bytes == Approx(2 * 0.75 * 301 * 2000 * 4));
  // 300 inputs and a quarter of 2,000 outputs travel to and from 3 others for 8 samples, forwards and backwards.
  CHECK(four[0].shard_bytes == Approx(2 * 3 * 8 * (300 + 500) * 4));
  CHECK(four[0].shards_send_less());
  CHECK(four[1].weights == 2001 * 10);
  CHECK_FALSE(four[1].shards_send_less());
  // Shards send less if W > b k (x + y / k); both are equal at 602,000 / 3,200 samples.
  CHECK(traffic(4, 188)[0].shards_send_less());
  CHECK_FALSE(traffic(4, 189)[0].shards_send_less());
}

TEST_CASE("layers with fewer units than ranks are not divided", "[parallel]") {
  CHECK(traffic(11, 1).size() == 1);
  CHECK(traffic(10, 1).size() == 2);
  CHECK(layer_traffic_text({}, 4).empty());
}

TEST_CASE("the advice on layers names those that send less in shards, with their bytes", "[parallel]") {
  const std::string text = layer_traffic_text(traffic(4, 8), 4);
  CHECK(text.find("Divide dense1 over 4 ranks") == 0);
  CHECK(layer_traffic_text(traffic(4, 500), 4).find("Keep every layer replicated") == 0);
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <mutex>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/local/local.hpp"
#include "exchange/allreduce/autotune.hpp"
#include "tests/support/ranks.hpp"

using namespace echelon;

TEST_CASE("a choice reads back as it was written", "[exchange]") {
  ExchangeConfig exchange;
  exchange.algorithm = "hierarchical", exchange.inner = "binomial", exchange.outer = "halving_doubling";
  exchange.segment_kb = 64, exchange.bucket_mb = 0.25;
  exchange.messages_in_flight = 4, exchange.helpers = 3;
  const ExchangeConfig again = with_choice({}, choice_text(exchange));
  CHECK(choice_text(again) == choice_text(exchange));
  CHECK(again.bucket_mb == 0.25);
  CHECK(again.messages_in_flight == 4);
  CHECK(again.helpers == 3);
  const ExchangeConfig early = with_choice({}, "ring inner=ring outer=ring segment_kb=64 bucket_mb=1");
  CHECK(early.messages_in_flight == ExchangeConfig().messages_in_flight);
  CHECK_THROWS_AS(with_choice({}, "ring inner=ring outer=ring segment_kb=64 bucket_mb=1 helpers=1"), DataError);
  CHECK_THROWS_AS(with_choice({}, "ring of fire"), DataError);
  CHECK_THROWS_AS(with_choice({}, ""), DataError);
}

TEST_CASE("all ranks are told the same choice, and rank 0 why", "[exchange]") {
  ParameterSet parameters;
  for (int i = 0; i < 5; ++i) parameters.add("p" + std::to_string(i), Shape{60000 + i}, {});
  ExchangeConfig config;
  config.algorithm = "auto";
  std::vector<Tuned> tuned(4);
  test::run_ranks(4, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    tuned[static_cast<std::size_t>(engine.rank())] = tune_exchange(config, engine, 3, parameters, DType::f32);
  });
  for (const Tuned& one : tuned) CHECK(choice_text(one.exchange) == choice_text(tuned[0].exchange));
  CHECK(tuned[0].exchange.algorithm != "auto");
  for (const char* part : {"inside a host", "segment", "whole gradient", "chosen    ", "mpi"})
    CHECK_THAT(tuned[0].report, Catch::Contains(part));
  CHECK(tuned[1].report.empty());
}

// SPDX-License-Identifier: Apache-2.0
// Runs with slowed messages: they have the same weights, and are marked wherever they are shown.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Sets;

const Sets kShort = {"train.epochs=1", "exchange.algorithm=tree", "evaluate.every_epochs=0"};
const Sets kShaped = {"network.rate=100mbit", "network.delay_us=200", "network.ranks_per_host=2"};

TEST_CASE("a run over a slowed network ends with the weights of one without, and is marked", "[shaped]") {
  const test::Trial plain, slowed;
  REQUIRE(plain.train(3, kShort).code == 0);
  const test::Outcome outcome = slowed.train(3, test::with(kShort, kShaped));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(slowed.summary()["weights_checksum"] == plain.summary()["weights_checksum"]);
  CHECK(slowed.summary()["shaped"] == "100 Mbit/s, 200 us, 2 ranks a host");
  CHECK_FALSE(plain.summary().contains("shaped"));
  CHECK(slowed.summary()["hosts"] == 2);
  CHECK(plain.summary()["hosts"] == 1);
  CHECK(slowed.summary()["wire_bytes_per_step"] == plain.summary()["wire_bytes_per_step"]);
  CHECK_THAT(outcome.out, Contains("SHAPED    messages between hosts are slowed down to 100 Mbit/s, 200 us"));
  CHECK_THAT(outcome.out, Contains(", SHAPED: messages were slowed down to 100 Mbit/s"));

  const test::Outcome report = slowed.echelon({"report", "results/trial", "--out", "report"});
  INFO(report.err);
  CHECK(report.code == 0);
  CHECK_THAT(report.out, Contains("shaped: 100 Mbit/s, 200 us") && Contains("network"));
  const test::Outcome same = slowed.echelon({"compare", plain.run(), slowed.run()});
  CHECK(same.code == 2);
  CHECK_THAT(same.err, Contains("shaped"));
}

TEST_CASE("a step of a slowed network takes the time that its bytes take", "[shaped]") {
  const test::Trial trial;
  // The links have 8 Mbit/s, and their bursts of 256 kB are used up after a few steps.
  const test::Outcome outcome =
      trial.train(2, {"train.epochs=0", "train.steps=16", "network.rate=8mbit", "data.test=\"\""});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const double bytes = trial.summary()["wire_bytes_per_step"].get<double>() / 2;  // bytes per rank
  CHECK(trial.summary()["step_s"]["median"].get<double>() > 0.9 * bytes / 1e6);
}

// Host 3 has a fiftieth of the others' rate; in a ring all ranks wait for it equally long. It sends as much as it
// receives, and a card that is not the busier one keeps its burst, so that a run may name one direction alone: "what
// host h/3 receives", or in a ring "the link from h/2 to h/3".
TEST_CASE("the host whose link is slow is named, whatever combines the replicas", "[shaped][sampled]") {
  const std::vector<Sets> all = {
      {"exchange.algorithm=ring"},
      {"exchange.algorithm=tree"},
      {"exchange.algorithm=halving_doubling"},
      {"exchange.algorithm=server", "exchange.servers=1"},
      {"exchange.strategy=stale_synchronous", "exchange.servers=1", "exchange.stale_synchronous.bound=0"},
      {"exchange.strategy=averaging", "exchange.averaging.period=1"},
      {"exchange.strategy=gossip"},
      {"exchange.strategy=gossip", "exchange.gossip.topology=ring"},
      {"exchange.strategy=gossip", "exchange.gossip.topology=complete"}};
  for (const Sets& sets : test::sampled(all, 3, "strategies")) {
    CAPTURE(sets);
    const test::Trial trial;
    const test::Outcome outcome = trial.train(
        4, test::with(sets, {"train.epochs=0", "train.steps=20", "network.rate=200mbit,200mbit,200mbit,4mbit",
                             "checkpoint.every_steps=0", "data.test=\"\""}));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(trial.summary()["shaped"] == "200 Mbit/s, 200 Mbit/s, 200 Mbit/s, 4 Mbit/s by host");
    REQUIRE(trial.summary()["findings"].size() > 0);
    CHECK_THAT(trial.summary()["findings"][0].get<std::string>(),
               Contains("/3") && Contains(" limits the exchange: ranks wait up to "));
    CHECK_THAT(outcome.err, Contains("warning: ") && Contains("/3") && Contains(" limits the exchange"));
    CHECK_THAT(trial.echelon({"report", "results/trial", "--out", "report"}).out, Contains(" limits the exchange"));
  }
}

TEST_CASE("what cannot be slowed down is refused", "[shaped]") {
  const test::Trial trial;
  const auto refused = [&](const Sets& sets, const std::string& why) {
    const test::Outcome outcome = trial.check(sets, {"--ranks", "2"});
    INFO(outcome.out);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(why));
  };
  refused({"network.rate=fast"}, "network.rate \"fast\": must be a rate, such as 1gbit");
  refused({"network.rate=1gbit", "exchange.algorithm=mpi"}, "the library's own messages cannot be slowed down");
  refused({"network.rate=1gbit,,1mbit"}, "network.rate \"\": must be a rate, such as 1gbit");
  refused({"network.delay_us=50"}, "network.delay_us");
  refused({"network.rate=1gbit", "parallel.pipeline=2"}, "host");  // each rank is a host
  const test::Outcome fits =
      trial.check({"network.rate=1gbit", "network.ranks_per_host=2", "parallel.pipeline=2"}, {"--ranks", "4"});
  INFO(fits.err);
  CHECK(fits.code == 0);
  CHECK_THAT(fits.out, Contains("on 2 hosts") && Contains("slowed down to 1 Gbit/s"));
}

TEST_CASE("the rate of the network is an axis of a study, whose page says so", "[shaped]") {
  const test::Trial trial;
  write_file_whole(trial / "trial.toml", read_file_whole(trial / "trial.toml") + R"(
[study]
ranks = [2]
[study.axes]
"network.rate" = ["100mbit", "10mbit"]
)");
  const test::Outcome outcome =
      trial.echelon({"scale", "trial.toml", "--set", "train.epochs=1", "--set", "checkpoint.every_steps=0"}, 2);
  INFO(outcome.err << outcome.out);
  REQUIRE(outcome.code == 0);
  const std::string page = read_file_whole(trial / "results/trial/study.md");
  CHECK_THAT(page, Contains("shaped: 100 Mbit/s") && Contains("shaped: 10 Mbit/s") &&
                       Contains("Messages were slowed down to"));
}

TEST_CASE("bench allreduce and bench network measure the network that they are given", "[shaped]") {
  const test::Outcome network = test::run_echelon({"bench", "network", "--shaped", "10mbit", "--json"}, {.ranks = 2});
  INFO(network.err);
  REQUIRE(network.code == 0);
  const auto links = nlohmann::json::parse(network.out);
  CHECK_THAT(links["transport"].get<std::string>(), Contains("shaped to 10 Mbit/s"));
  CHECK(links["host_names"].size() == 2);
  CHECK(links["bytes_per_s"][0][1].get<double>() < 1.01 * 1.25e6 * 1448 / 1514);

  const test::Outcome sums = test::run_echelon(
      {"bench", "allreduce", "--shaped", "80mbit", "--sizes", "256KiB", "--iterations", "2"}, {.ranks = 2});
  INFO(sums.err << sums.out);
  CHECK(sums.code == 0);
  CHECK_THAT(sums.out, Contains("2 ranks on 2 hosts") && Contains("shaped to 80 Mbit/s") && Contains("left out: mpi") &&
                           Contains("left out: shared"));
}

TEST_CASE("plan takes the network that the config names", "[shaped]") {
  const test::Trial trial;
  const auto planned = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"plan",       "trial.toml", "--step",    "forward_ms=5,backward_ms=10",
                                      "--replicas", "2",          "--compare", "none"};
    words.insert(words.end(), more.begin(), more.end());
    return trial.echelon(words).out;
  };
  CHECK_THAT(planned({}), Contains("network   10gbit"));
  CHECK_THAT(planned({"--set", "network.rate=1gbit", "--set", "network.delay_us=70"}),
             Contains("network   0.956") && Contains("70 us"));
  CHECK_THAT(planned({"--set", "network.rate=1gbit", "--network", "25gbit"}), Contains("network   25gbit"));
}

}  // namespace
}  // namespace echelon

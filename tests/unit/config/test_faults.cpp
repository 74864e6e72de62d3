// SPDX-License-Identifier: Apache-2.0
// The grammar of faults: every sentence of its page is read, and errors name the nearest valid words.
#include <catch2/catch.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "config/check_combinations.hpp"
#include "config/faults.hpp"
#include "config/parse.hpp"

namespace echelon {
namespace {

using Catch::Contains;

constexpr const char* kText = "[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\n";

Config with_faults(const std::string& more, const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  return parse_config(kText + more, "a.toml", {}, environment);
}

TEST_CASE("faults are read with their ranks, amounts and moments", "[config][faults]") {
  Fault fault = parse_fault("kill rank 1 at step 30");
  CHECK((fault.kind == FaultKind::kill && fault.rank == 1 && fault.first_step == 30 && fault.last_step == 30));
  fault = parse_fault("stop rank 2 for 500ms at step 10 in backward");
  CHECK((fault.kind == FaultKind::stop && fault.rank == 2 && fault.amount == 0.5 && fault.phase == "backward"));
  fault = parse_fault("stop a random rank at a random step from 3 to 9");
  CHECK((fault.rank == -1 && fault.amount == 0 && fault.first_step == 3 && fault.last_step == 9));
  fault = parse_fault("slow rank 0 by 2.5");
  CHECK((fault.kind == FaultKind::slow && fault.amount == 2.5 && fault.first_step == 0));
  fault = parse_fault("delay messages of rank 1 by 5 ms");
  CHECK((fault.kind == FaultKind::delay && fault.amount == 0.005));
  fault = parse_fault("disk full after 1.5MB on rank 3");
  CHECK((fault.kind == FaultKind::disk_full && fault.amount == 1.5 * 1024 * 1024 && fault.rank == 3));
  CHECK(parse_fault("fsync fails").rank == 0);
  fault = parse_fault("reads at 1.5KB a second on rank 2");
  CHECK((fault.kind == FaultKind::slow_reads && fault.amount == 1536 && fault.rank == 2));
  CHECK_THROWS_AS(parse_fault("reads at 0MB a second"), ConfigError);
  fault = parse_fault("flip bit 3 of weight 20 of rank 1 at step 7");
  CHECK((fault.kind == FaultKind::flip_weight && fault.bit == 3 && fault.element == 20 && fault.rank == 1));
  fault = parse_fault("flip gradient of rank 4");
  CHECK((fault.kind == FaultKind::flip_gradient && fault.bit == -1 && fault.element == -1 && fault.rank == 4));
  CHECK(parse_fault("corrupt message of rank 0 in exchange").phase == "exchange");
}

TEST_CASE("every sentence of the page of faults is one", "[config][faults]") {
  std::istringstream page(read_file_whole("slurm/FAULTS.md"));
  int sentences = 0;
  bool block = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      block = line == "```text";
      continue;
    }
    if (!block || line.empty()) continue;
    CAPTURE(line);
    CHECK_NOTHROW(parse_fault(line.substr(0, line.find("  "))));
    ++sentences;
  }
  CHECK(sentences >= 14);
}

TEST_CASE("a sentence of any length is read or refused", "[config][faults]") {
  const std::string digits(1'000'000, '7');
  CHECK_THROWS_WITH(parse_fault("slow rank 0 by " + digits),
                    Contains("\"slow rank 0 by 7777") && Contains("not a fault") && Contains("1000015 characters"));
  CHECK_THROWS_AS(parse_fault(digits), ConfigError);
}

TEST_CASE("what is not a fault is refused with what is near", "[config][faults]") {
  CHECK_THROWS_WITH(parse_fault("kill rank one"), Contains("is not a fault; write kill rank R, then"));
  CHECK_THROWS_WITH(parse_fault("flip bits"), Contains("flip checkpoint bit") && !Contains("kill"));
  CHECK_THROWS_WITH(parse_fault("explode"), Contains("kill rank R; stop rank R"));
  CHECK_THROWS_WITH(parse_fault("kill rank 1 at a random step from 9 to 3"),
                    Contains("the last step must not come before"));
  CHECK_THROWS_WITH(parse_fault("slow rank 1 by 0.5"), Contains("at least 1"));
  CHECK_THROWS_AS(parse_fault(""), ConfigError);
}

TEST_CASE("faults need leave, and are refused by line", "[config][faults]") {
  const auto refusal = [](const Config& config) -> std::string {
    try {
      check_combinations(config);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  };
  const std::string one = "[fault]\ninject = [\"kill rank 1 at step 3\"]\n";
  CHECK_THAT(refusal(with_faults(one)), Contains("a.toml:6:1: ") && Contains("write run.allow_faults = true"));
  CHECK(refusal(with_faults("[run]\nallow_faults = true\n" + one)).empty());
  CHECK(refusal(with_faults("[run]\nallow_faults = true\n")).empty());
  CHECK_THAT(refusal(with_faults("[run]\nallow_faults = true\n[fault]\ninject = \"kill it\"\n")),
             Contains("a.toml:8:1: \"kill it\" is not a fault"));
  CHECK_THAT(refusal(with_faults("[fault]\nseed = 3\n")), Contains("fault.seed") && Contains("leave it out"));
  const Config by_variable =
      with_faults("[run]\nallow_faults = true\n", {{"ECHELON_FAULT", "kill rank 1 at step 3; cut rank 0"}});
  CHECK(by_variable.fault.inject == std::vector<std::string>{"kill rank 1 at step 3", "cut rank 0"});
  CHECK_THAT(refusal(with_faults("", {{"ECHELON_FAULT", "cut rank 0"}})),
             Contains("environment variable ECHELON_FAULT=cut rank 0: "));
}

TEST_CASE("faults and checks of messages leave a run the same run", "[config][faults]") {
  const Config plain = with_faults("");
  const Config faulty = with_faults(
      "[exchange]\ncheck_messages = true\n[run]\nallow_faults = true\n[fault]\nseed = 4\ninject = [\"cut rank 0\"]\n");
  CHECK(config_hash(plain) == config_hash(faulty));
  const auto refused = [](const std::string& algorithm) {
    try {
      check_combinations(with_faults("[exchange]\ncheck_messages = true\nalgorithm = \"" + algorithm + "\"\n"));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused("mpi"), Contains("exchange.check_messages") && Contains("carry no checksum"));
  CHECK_THAT(refused("shared"), Contains("exchange.check_messages") && Contains("sums in shared memory"));
  CHECK(refused("tree").empty());
}

}  // namespace
}  // namespace echelon

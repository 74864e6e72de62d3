// SPDX-License-Identifier: Apache-2.0
// The steps that run.trace names, and its refusals.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "config/parse.hpp"
#include "config/trace_steps.hpp"
#include "tests/support/refusal.hpp"

namespace echelon::test {
namespace {

Config with_trace(const std::string& text) {
  Config config;
  config.run.trace = text;
  config.file = "a.toml";
  config.origins["run.trace"] = "a.toml:3:9";
  return config;
}

TEST_CASE("run.trace names steps, counted from 1", "[config][trace]") {
  CHECK(!trace_steps(with_trace("")));
  const std::optional<TraceSteps> steps = trace_steps(with_trace("steps 10..20"));
  REQUIRE(steps);
  CHECK(steps->first == 10);
  CHECK(steps->last == 20);
  CHECK(trace_steps(with_trace("step 7"))->last == 7);
  CHECK(trace_steps(with_trace("steps 7..7"))->first == 7);
}

TEST_CASE("another text is refused with its place and the nearest one", "[config][trace]") {
  const std::pair<const char*, const char*> cases[] = {{"10..20", "steps 10..20"},
                                                       {"steps 20..10", "steps 10..20"},
                                                       {"steps 10 to 20", "steps 10..20"},
                                                       {"steps 0..5", "steps 1..5"},
                                                       {"Steps 3..4", "steps 3..4"},
                                                       {"steps", "steps 10..20"},
                                                       {"epoch 2", "steps 2..2"},
                                                       {"steps 1..2..3", "steps 1..2"},
                                                       {" steps 1..2", "steps 1..2"},
                                                       {"steps -3..4", "steps 3..4"},
                                                       {"steps 1..99999999999999999999", "steps 1..1000000000000"}};
  for (const auto& [text, nearest] : cases) {
    const std::string error = refusal<ConfigError>([&, written = text] { (void)trace_steps(with_trace(written)); });
    INFO(text << " -> " << error);
    CHECK_THAT(error, Catch::Contains("a.toml:3:9: run.trace = ") &&
                          Catch::Contains(std::string("nearest valid: \"") + nearest + "\""));
    CHECK_NOTHROW(trace_steps(with_trace(nearest)));
  }
}

TEST_CASE("steps behind the end of the run are refused, a window that it cuts is not", "[config][trace]") {
  CHECK_NOTHROW(check_trace_steps(with_trace("steps 40..60"), 51));
  CHECK_NOTHROW(check_trace_steps(with_trace(""), 51));
  const std::string error = refusal<ConfigError>([] { check_trace_steps(with_trace("steps 60..65"), 51); });
  CHECK_THAT(error, Catch::Contains("after the last step of the run, 51") && Catch::Contains("\"steps 46..51\""));
}

TEST_CASE("a traced run is the same run", "[config][trace]") {
  Config plain = with_trace(""), traced = with_trace("steps 1..2");
  CHECK(config_hash(plain) == config_hash(traced));
}

}  // namespace
}  // namespace echelon::test

// SPDX-License-Identifier: Apache-2.0
// Progress of long work: when it is printed, and which text.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/progress.hpp"

namespace echelon::test {
namespace {

class Hand final : public Clock {
 public:
  double at_s = 100;
  double now_s() const override { return at_s; }
};

TEST_CASE("long work is told once an interval, with rate and time left", "[progress]") {
  Hand clock;
  std::vector<std::string> told;
  LongWork work("evaluation", "batches", 400, ProgressStyle::lines, 30, clock,
                [&](const std::string& line) { told.push_back(line); });
  for (int done = 0; done <= 400; ++done) {
    work.at(done);
    clock.at_s += 0.25;
  }
  REQUIRE(told.size() == 3);
  CHECK(told[0] == "evaluation: 120 of 400 batches, 30 %, 4.00/s, 70 s left");
  CHECK(told[1] == "evaluation: 240 of 400 batches, 60 %, 4.00/s, 40 s left");
  CHECK(told[2] == "evaluation: 360 of 400 batches, 90 %, 4.00/s, 10 s left");
}

TEST_CASE("work without a known end tells how far it is, short work and `none` nothing", "[progress]") {
  Hand clock;
  std::vector<std::string> told;
  const auto say = [&](const std::string& line) { told.push_back(line); };
  {
    LongWork work("import", "samples", 0, ProgressStyle::lines, 10, clock, say);
    clock.at_s += 20;
    work.at(5000);
    work.at(5001);
  }
  REQUIRE(told.size() == 1);
  CHECK(told[0] == "import: 5,000 samples, 250/s, 20.0 s so far");
  LongWork quick("import", "samples", 0, ProgressStyle::lines, 10, clock, say);
  clock.at_s += 9.9;
  quick.at(1);
  LongWork silent("import", "samples", 0, ProgressStyle::none, 10, clock, say);
  clock.at_s += 50;
  silent.at(1);
  CHECK(told.size() == 1);
}

TEST_CASE("nothing done yet promises no time left", "[progress]") {
  Hand clock;
  std::string told;
  LongWork work("import", "samples", 10, ProgressStyle::lines, 1, clock, [&](const std::string& line) { told = line; });
  clock.at_s += 2;
  work.at(0);
  CHECK(told == "import: 0 of 10 samples, 0 %, 0.00/s");
}

}  // namespace
}  // namespace echelon::test

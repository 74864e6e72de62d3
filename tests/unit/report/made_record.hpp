// SPDX-License-Identifier: Apache-2.0
// Studies made up repetition by repetition, without runs: the record from which a verdict follows, with a truth that is
// known because the test put it there.
#pragma once

#include <string>
#include <vector>

#include "report/evidence.hpp"

namespace echelon::test {

// A setting whose repetitions have exactly these means. Their noise is a set of normal scores, in an order of its own
// for each setting and figure, so that n repetitions have the stated mean and the stated spread.
class Made {
 public:
  explicit Made(int ranks, std::string label = "") : ranks_(ranks), label_(std::move(label)) {}
  Made& rate(double samples_per_s, double noise = 0.01);  // noise: relative
  Made& accuracy(double mean, double noise = 0.002);      // noise: absolute
  Made& loss(double mean, double noise = 0.01);
  Made& seconds(double to_goal, double noise = 0.01);  // noise: relative
  Made& reached(int repetitions);                      // number that reached the goal; the last ones did not
  Made& diverged(int repetitions);                     // number of the first ones that did
  Made& failed(int repetitions);                       // number of the first ones that did
  Made& repetitions(int n);                            // fewer than the study has
  Made& samples(double trained);                       // 60,000 where not set
  Made& hosts(int n);
  Made& servers(int n);
  Made& codec(std::string name);
  Made& strategy(std::string name);
  Made& environment(std::string name);
  Made& label(std::string name);
  Made& paced();
  Made& curve(std::vector<Evaluation> evaluations);  // the same for every repetition

  Setting setting(int repetitions_of_study) const;

 private:
  int ranks_;
  std::string label_, environment_, codec_ = "none", strategy_ = "synchronous";
  double rate_ = 1000, rate_noise_ = 0.01, accuracy_ = kUnknown, accuracy_noise_ = 0, loss_ = kUnknown, loss_noise_ = 0;
  double seconds_ = kUnknown, seconds_noise_ = 0, samples_ = 60'000;
  int reached_ = -1, diverged_ = 0, failed_ = 0, repetitions_ = -1, hosts_ = 1, servers_ = 0;
  bool paced_ = false;
  std::vector<Evaluation> curve_;
};

struct Asked {  // the study's settings apart from its cells
  GoalConfig goal = {};
  CostConfig cost = {};
  StudyRules rules = {};
  std::vector<ControlRate> controls = {};
  std::vector<double> machine = {};  // by round: factor of all rates, and inverse factor of all times; empty: 1
};

Evidence made_record(int repetitions, const std::vector<Made>& settings, const Asked& asked = {});

inline const GoalConfig kGoal90 = {.metric = GoalMetric::test_accuracy, .target = 0.9};

}  // namespace echelon::test

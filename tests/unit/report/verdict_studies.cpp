// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/report/verdict_studies.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/hash_rng.hpp"
#include "report/judge.hpp"

namespace echelon::test {
namespace {

double normal(const HashRng& stream, std::uint64_t index) {
  const double u = 1 - stream.uniform(2 * index), v = stream.uniform(2 * index + 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

void draw_round(const DrawnStudies& drawn, const HashRng& study, int round, Evidence& evidence) {
  const HashRng stream = study.at(static_cast<std::uint64_t>(round));
  const double common = std::sqrt(drawn.shared), own = std::sqrt(1 - drawn.shared);
  const double rate_of_round = normal(stream, 0), figure_of_round = normal(stream, 1);
  std::uint64_t at = 2;
  for (Setting& s : evidence.settings) {
    const bool one = s.all_ranks == 1;
    Repetition r{.repeat = round, .seed = static_cast<std::uint64_t>(round), .attempt = ""};
    r.samples_per_s =
        1000 * (one ? 1 : drawn.gain) * std::exp(drawn.noise * (common * rate_of_round + own * normal(stream, at++)));
    r.samples = 60'000;
    r.wall_s = r.samples / r.samples_per_s;
    if (drawn.metric)
      r.test_accuracy =
          0.9 - (one ? 0 : drawn.loss) + drawn.metric_noise * (common * figure_of_round + own * normal(stream, at++));
    s.repetitions.push_back(r);
  }
}

Evidence empty_study(const DrawnStudies& drawn) {
  Evidence evidence{
      .goal = {}, .cost = {}, .rules = {.margin = drawn.margin, .least_gain = drawn.least_gain}, .settings = {}};
  for (int i = 0; i <= drawn.settings; ++i) {
    Setting& s = evidence.settings.emplace_back();
    s.label = i == 0 ? "one" : "setting " + std::to_string(i);
    s.all_ranks = i == 0 ? 1 : 2;
    s.row.ranks = s.all_ranks;
    s.row.hosts = 1;
    s.row.strategy = "synchronous";
    s.row.test_accuracy = drawn.metric ? 0.9 : kUnknown;
  }
  return evidence;
}

// Returns the first look with at least `repetitions` of them; beyond the last, `repetitions` itself.
int next_look(int repetitions) {
  const auto look = std::find_if(kLooks.begin(), kLooks.end(), [&](int n) { return n >= repetitions; });
  return look == kLooks.end() ? repetitions : *look;
}

}  // namespace

Verdicts judge_drawn(const DrawnStudies& drawn, int studies, std::uint64_t seed) {
  Verdicts out;
  for (int study = 0; study < studies; ++study) {
    const HashRng stream = HashRng(seed, "drawn studies").at(static_cast<std::uint64_t>(study));
    Evidence evidence = empty_study(drawn);
    Answer answer = Answer::undecided;
    int rounds = 0;
    while (rounds < drawn.most && answer == Answer::undecided) {
      const int look = drawn.looks ? std::min(drawn.most, next_look(rounds + 1)) : drawn.most;
      while (rounds < look) draw_round(drawn, stream, ++rounds, evidence);
      complete(evidence);
      const Field field(evidence, "");
      const Judge judge(field);
      answer = judge.answer();
      if (answer == Answer::yes) {
        const Effect gain = Contest(field.speed, *judge.recommended()->chosen, *field.base).effect();
        out.covered += gain.low <= drawn.gain && drawn.gain <= gain.high ? 1 : 0;
      }
    }
    ++out.studies;
    out.yes += answer == Answer::yes ? 1 : 0;
    out.no += answer == Answer::no ? 1 : 0;
    out.undecided += answer == Answer::undecided ? 1 : 0;
    out.repetitions += static_cast<double>(rounds);
  }
  out.repetitions /= studies;
  return out;
}

double least_p(const DrawnStudies& drawn, int repetitions, std::uint64_t seed, int study) {
  const HashRng stream = HashRng(seed, "drawn powers").at(static_cast<std::uint64_t>(study));
  Evidence evidence = empty_study(drawn);
  for (int round = 1; round <= repetitions; ++round) draw_round(drawn, stream, round, evidence);
  complete(evidence);
  const Field field(evidence, "");
  return Contest(field.speed, evidence.settings.back(), *field.base).better(field.log_gain());
}

double paired_noise(const DrawnStudies& drawn) { return drawn.noise * std::sqrt(2 * (1 - drawn.shared)); }

Coverage cover_drawn(const DrawnStudies& drawn, int studies, std::uint64_t seed) {
  Coverage out;
  const auto holds = [](const Effect& e, double truth) { return e.low <= truth && truth <= e.high ? 1 : 0; };
  for (int study = 0; study < studies; ++study) {
    const HashRng stream = HashRng(seed, "drawn intervals").at(static_cast<std::uint64_t>(study));
    Evidence evidence = empty_study(drawn);
    for (int round = 1; round <= drawn.most; ++round) draw_round(drawn, stream, round, evidence);
    complete(evidence);
    const Field field(evidence, "");
    const Setting& s = evidence.settings.back();
    out.gain += holds(Contest(field.speed, s, *field.base).effect(), drawn.gain);
    out.metric += drawn.metric ? holds(Contest(field.metric, s, *field.base).effect(), -drawn.loss) : 0;
    ++out.studies;
  }
  return out;
}

}  // namespace echelon::test

// SPDX-License-Identifier: Apache-2.0
// A record whose right answer a person knows, and its comparison with the verdict.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "report/verdict.hpp"
#include "report/verdict_words.hpp"
#include "tests/unit/report/made_record.hpp"
#include "tests/unit/report/sentences.hpp"

namespace echelon::test {

struct Case {
  const char* name;
  Evidence record;
  Answer answer;
  const char* recommended;  // "": none
  std::vector<const char*> says = {}, never = {};
};

inline constexpr Answer kYes = Answer::yes, kNo = Answer::no, kUndecided = Answer::undecided;

// Makes one worker with 1,000 samples/s and an accuracy of 0.90, and settings beside it.
inline Made one(const char* label = "") { return Made(1, label).rate(1000).accuracy(0.9); }
inline Made many(int ranks, double gain, const char* label = "") {
  return Made(ranks, label).rate(1000 * gain).accuracy(0.9);
}
// The same with the time to a goal, which is 100 s for one worker.
inline Made one_to_goal(const char* label = "") { return one(label).seconds(100); }
inline Made to_goal(int ranks, double gain, const char* label = "") {
  return many(ranks, gain, label).seconds(100 / gain);
}
// Paced settings have times only.
inline Made paced(int ranks, double gain, const char* label = "") {
  return Made(ranks, label).rate(1000 * gain).paced();
}

inline std::vector<Made> with_many(Made first, int count, double gain, double noise) {
  std::vector<Made> all = {std::move(first)};
  for (int i = 0; i < count; ++i) all.push_back(many(2, gain).rate(1000 * gain, noise));
  return all;
}

inline std::vector<Made> named(std::vector<Made> settings) {
  for (std::size_t i = 1; i < settings.size(); ++i) settings[i].label("way " + std::to_string(i));
  return settings;
}

inline std::vector<Evaluation> curve(double seconds, double first, double last) {
  return {{.step = 100, .samples = 30'000, .seconds = seconds / 2, .test_loss = 1, .test_accuracy = first},
          {.step = 200, .samples = 60'000, .seconds = seconds, .test_loss = 1, .test_accuracy = last}};
}

inline void check(const Case& c) {
  const StudyVerdict verdict = make_verdict(c.record);
  const std::string text = text_of(verdict);
  INFO(c.name << "\n" << text);
  CHECK(std::string(answer_name(verdict.answer)) == answer_name(c.answer));
  const std::string recommended =
      verdict.recommended < 0 ? "" : said(c.record.settings[static_cast<std::size_t>(verdict.recommended)]);
  CHECK(recommended == c.recommended);
  CHECK(decided(c.record) == (c.answer != kUndecided));
  for (const char* part : c.says) CHECK_THAT(text, Catch::Contains(part));
  for (const char* part : c.never) CHECK_THAT(text, !Catch::Contains(part));
  CHECK_THAT(text, !Catch::Contains("nan") && !Catch::Contains("inf "));
  // The table does not contradict the headline: if more ranks are shown to be faster, one worker is not the fastest.
  const char* fastest = c.record.has_goal() ? "the least time" : "the most samples/s";
  for (const EnvironmentVerdict& environment : verdict.environments)
    for (const GoalRow& row : verdict.rows)
      if (environment.answer == kYes && row.environment == environment.environment && row.setting >= 0 &&
          row.want.starts_with(fastest))
        CHECK(c.record.settings[static_cast<std::size_t>(row.setting)].ranks() > 1);
}

}  // namespace echelon::test

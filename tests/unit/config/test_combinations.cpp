// SPDX-License-Identifier: Apache-2.0
// The matrix of `check --combinations` must say of every two choices what `check` does with them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "config/check_combinations.hpp"
#include "config/combinations.hpp"
#include "config/parse.hpp"
#include "tests/support/refusal.hpp"

namespace echelon {
namespace {

bool stops(const std::optional<Clash>& clash) { return clash && clash->verdict != Verdict::gives_way; }

// Returns settings of other keys whose default would go with neither choice, and those that train.reproducible needs of
// the data. Sets `complete` to false where no word goes with both choices.
std::vector<std::string> company(const Choice& a, const Choice& b, bool& complete) {
  std::vector<std::string> sets;
  std::set<std::string> paths;
  for (const ChoiceAxis& axis : choice_axes())
    for (const Choice& choice : axis.choices)
      if (choice.worded) paths.insert(choice.path);
  for (const std::string& path : paths) {
    if (path == a.path || path == b.path) continue;
    const auto words = words_of_key(path);
    const auto fits = [&](const Choice* word) {
      return !stops(clash_between(*word, a)) && !stops(clash_between(*word, b));
    };
    const auto neutral = std::find_if(words.begin(), words.end(), [](const Choice* word) { return word->neutral; });
    const auto first = std::find_if(words.begin(), words.end(), fits);
    if (neutral == words.end() || fits(*neutral)) continue;
    if (first == words.end())
      complete = false;
    else
      sets.push_back(path + "=" + (*first)->value);
  }
  const auto pair = std::to_array({&a, &b});
  const auto one_is = [&](Property p) {
    return std::any_of(pair.begin(), pair.end(), [&](const Choice* c) { return c->is.has(p); });
  };
  const auto one_of = [&](const char* path) {
    return std::any_of(pair.begin(), pair.end(), [&](const Choice* c) { return c->path == path; });
  };
  if (one_of("exchange.warmup_replicas")) sets.emplace_back("exchange.warmup_steps=3");
  if (!one_is(Property::any_scale)) return sets;
  sets.push_back("device.threads=1");
  if (one_of("data.sharding") && !one_is(Property::own_order) && !one_is(Property::deals_by_file))
    sets.push_back("data.order=stream");
  else if (!one_of("data.sharding") && !one_is(Property::own_order))
    sets.push_back("data.sharding=record");
  return sets;
}

// Returns the refusal, or "" where the config is accepted.
std::string refusal(const std::vector<std::string>& sets) {
  return test::refusal<ConfigError>(
      [&] { check_combinations(parse_config("[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\n", "a.toml", sets)); });
}

std::vector<const Choice*> all_choices() {
  std::vector<const Choice*> all;
  for (const ChoiceAxis& axis : choice_axes())
    for (const Choice& choice : axis.choices) all.push_back(&choice);
  return all;
}

}  // namespace

TEST_CASE("every two choices are refused together where the matrix says so, and nowhere else",
          "[config][combinations]") {
  const std::vector<const Choice*> all = all_choices();
  std::size_t refused = 0, accepted = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Choice &a = *all[i], &b = *all[j];
      if (a.path == b.path) continue;
      const auto clash = clash_between(a, b);
      bool complete = true;
      std::vector<std::string> sets = company(a, b, complete);
      for (const Choice* choice : {&a, &b}) sets.push_back(choice->path + "=" + choice->value);
      const std::string why = refusal(sets);
      INFO(a.text() << " with " << b.text() << ", beside " << fmt::format("{}", fmt::join(sets, " ")) << ": " << why);
      CHECK(why.empty() == !clash.has_value());
      if (clash && clash->verdict == Verdict::refused && complete)
        CHECK_THAT(why, Catch::Contains(std::string(clash->reason)));
      ++(why.empty() ? accepted : refused);
    }
  CHECK(refused > 100);
  CHECK(accepted > 700);
}

TEST_CASE("a choice is what the config chose", "[config][combinations]") {
  for (const Choice* choice : all_choices()) {
    const Config with = parse_config("[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\n", "a.toml",
                                     {choice->path + "=" + choice->value});
    CAPTURE(choice->text());
    CHECK(choice->chosen(with));
    if (!choice->neutral && choice->path != "exchange.priority") CHECK_FALSE(choice->chosen(Config()));
  }
}

TEST_CASE("the alternatives that a refusal names are accepted", "[config][combinations]") {
  CHECK_THAT(refusal({"exchange.strategy=backup", "optimizer.rule=lars"}),
             Catch::Contains("nearest valid: \"sgd\" or \"adam\" or \"adamw\" or \"rmsprop\"") &&
                 Catch::Contains("write exchange.strategy = \"synchronous\""));
  CHECK(refusal({"exchange.strategy=backup", "optimizer.rule=adamw"}).empty());
  CHECK(refusal({"exchange.strategy=server", "optimizer.rule=lars"}).empty());
  CHECK_THAT(refusal({"exchange.algorithm=mpi", "exchange.codec=fp16"}),
             Catch::Contains("nearest valid: \"ring\", or write exchange.codec = \"none\""));
}

TEST_CASE("the matrix for people: every choice has a row, every letter a reason, no line is long",
          "[config][combinations]") {
  const std::string text = combinations_text();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }) <= 120);  // UTF-8
  }
  for (const Choice* choice : all_choices()) CHECK_THAT(text, Catch::Contains(choice->name));
  for (const char* reason : {"the library sums uncoded values", "(not read)", "(gives way)"})
    CHECK_THAT(text, Catch::Contains(reason));
  CHECK(text.find('*') > text.find("Layers that each split divides"));  // letters suffice as marks
}

}  // namespace echelon

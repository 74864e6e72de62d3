// SPDX-License-Identifier: Apache-2.0
// Reads experiments. An input is TOML, then --set values and environment variables (NAME=VALUE), each after a byte 30.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/check_combinations.hpp"
#include "config/parse.hpp"
#include "study/study.hpp"
#include "tests/fuzz/config_text.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"

namespace echelon::fuzz {
namespace {

constexpr char kBetween = 30;
constexpr const char* kFile = "fuzz.toml";

struct Parts {
  std::string text;
  std::vector<std::string> sets;
  std::vector<std::pair<std::string, std::string>> environment;
};

Parts parts_of(const std::string& input) {
  Parts parts;
  std::size_t end = std::min(input.find(kBetween), input.size());
  parts.text = input.substr(0, end);
  while (end < input.size()) {
    const std::size_t begin = end + 1;
    end = std::min(input.find(kBetween, begin), input.size());
    const std::string one = input.substr(begin, end - begin);
    const std::size_t equals = one.find('=');
    if (one.starts_with("ECHELON_") && equals != std::string::npos)
      parts.environment.emplace_back(one.substr(0, equals), one.substr(equals + 1));
    else
      parts.sets.push_back(one);
  }
  return parts;
}

// Checks that an error names the line of a file, or the flag or variable.
void require_place(const std::string& message, const std::string& file) {
  for (const std::string& start : {file + ":", std::string("--set "), std::string("environment variable ")})
    if (message.starts_with(start)) return;
  throw Defect("an error without a place: " + message);
}

// Parses the echo of an accepted config.
Config parse_echo(const std::string& echo) {
  try {
    Config again = parse_config(echo, "echo.toml");
    check_combinations(again);
    return again;
  } catch (const ConfigError& error) {
    throw Defect(fmt::format("the echo of an accepted config is refused: {}", error.what()));
  }
}

// Returns the experiments of the corpus and those that the repository ships.
std::vector<std::string> experiments(const Place& place) {
  std::vector<std::string> all = corpus_of(place, "config");
  for (std::string& text : corpus_of(place, "../../../configs")) all.push_back(std::move(text));
  return all;
}

std::vector<std::string> studies(const Place& place) {
  std::vector<std::string> all = experiments(place);
  std::erase_if(all, [](const std::string& text) { return text.find("[study") == std::string::npos; });
  return all;
}

class ConfigTarget final : public Target {
 public:
  explicit ConfigTarget(const Place& place) : text_(experiments(place)) {}

  std::string draw(Draws& draws) override {
    std::string input = text_.draw(draws);
    const std::size_t more = draws.chance(0.3) ? 1 + draws.below(3) : 0;
    for (std::size_t i = 0; i < more; ++i) input += kBetween + text_.draw_setting(draws);
    return input;
  }

  bool take(const std::string& input) override {
    const Parts parts = parts_of(input);
    Config config;
    try {
      config = parse_config(parts.text, kFile, parts.sets, parts.environment);
      check_combinations(config);
    } catch (const ConfigError& error) {
      require_place(error.what(), kFile);
      return false;
    }
    const std::string echo = echo_config(config);
    const Config again = parse_echo(echo);
    if (echo_config(again) != echo) throw Defect("the echo of a config is parsed to another one");
    if (config_hash(again) != config_hash(config)) throw Defect("the echo of a config has another hash");
    return true;
  }

 private:
  ConfigText text_;
};

class StudyTarget final : public Target {
 public:
  explicit StudyTarget(const Place& place) : text_(studies(place)), path_(place.folder + "/" + kFile) {}

  std::string draw(Draws& draws) override { return text_.draw(draws); }

  bool take(const std::string& input) override {
    write_plain(path_, input);
    try {
      const study::StudyPlan plan = study::load_study(path_, {});
      if (!plan.search) study::cells_of(plan);
      return true;
    } catch (const ConfigError& error) {
      require_place(error.what(), path_);
      return false;
    }
  }

 private:
  ConfigText text_;
  std::string path_;
};

}  // namespace

std::unique_ptr<Target> make_config(const Place& place) { return std::make_unique<ConfigTarget>(place); }
std::unique_ptr<Target> make_study(const Place& place) { return std::make_unique<StudyTarget>(place); }

}  // namespace echelon::fuzz

// SPDX-License-Identifier: Apache-2.0
// The command line, parsed with CLI11, which only the files args*.cpp use. Finds the verb, fills its options, calls it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/processor.hpp"
#include "base/standard_output.hpp"
#include "base/version.hpp"
#include "cli/args_verbs.hpp"
#include "job/signals.hpp"

namespace echelon::cli {
namespace {

// Returns the sub-command of this name, or null.
CLI::App* sub_of(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (sub->check_name(name)) return const_cast<CLI::App*>(sub);
  return nullptr;
}

// A verb that only groups other verbs.
struct Family {
  const char* name;
  const char* help;
};
const Family kFamilies[] = {
    {"data", "create, import and inspect HDF5 shards"},
    {"bench", "measure parts of a run"},
    {"sweep", "train an experiment several times with other settings and compare"},
};

struct Parser {
  CLI::App app{"echelon: data-parallel training of neural networks over MPI", "echelon"};
  struct Known {
    CLI::App* app;
    Run run;
    bool takes_signals;
  };
  std::vector<Known> verbs;

  Parser() {
    app.set_version_flag("--version", fmt::format("echelon {} ({})", kVersion, commit()));
    app.require_subcommand(1);
    app.footer(fmt::format("'echelon VERB --help' lists the options of a verb.\n\nExit codes:\n{}", kExitCodesText));
    for (const Verb& verb : all_verbs()) add(verb);
  }

  void add(const Verb& verb) {
    const std::string name = verb.name;
    const auto space = name.find(' ');
    CLI::App* parent = space == std::string::npos ? &app : family(name.substr(0, space));
    CLI::App* sub = parent->add_subcommand(space == std::string::npos ? name : name.substr(space + 1), verb.help);
    if (verb.alias) sub->alias(verb.alias);
    sub->footer(fmt::format("Examples:\n{}", verb.examples));
    verbs.push_back({sub, verb.declare(*sub), verb.takes_signals});
  }

  CLI::App* family(const std::string& name) {
    if (CLI::App* known = sub_of(app, name)) return known;
    for (const Family& f : kFamilies)
      if (name == f.name) {
        CLI::App* made = app.add_subcommand(name, f.help);
        made->require_subcommand(1);
        return made;
      }
    throw std::logic_error("a verb of an unknown family: " + name);
  }

  // Returns the deepest App that the words name. An unknown verb is an error that names the nearest known one.
  CLI::App* choose(std::span<char* const> words) {
    CLI::App* at = &app;
    for (const std::string word : words) {
      const auto subs = at->get_subcommands([](CLI::App*) { return true; });
      if (subs.empty() || word.starts_with("-")) break;
      CLI::App* next = sub_of(*at, word);
      if (!next) {
        std::vector<std::string> names;
        for (CLI::App* sub : subs) names.push_back(sub->get_name());
        throw ConfigError(unknown_name("verb", word, names));
      }
      at = next;
    }
    return at;
  }
};

// CLI11's own text. For an unknown flag it adds the nearest known one.
std::string text_of(const CLI::ParseError& error, const CLI::App& at, std::span<char* const> words) {
  std::string verb = at.get_name();
  for (const CLI::App* up = at.get_parent(); up != nullptr; up = up->get_parent()) verb = up->get_name() + " " + verb;
  const std::string see = fmt::format("; see '{} --help'", verb);
  const auto subs = at.get_subcommands([](const CLI::App*) { return true; });
  if (!subs.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    std::string known;
    for (const CLI::App* sub : subs) known += (known.empty() ? "" : ", ") + sub->get_name();
    return fmt::format("a verb is missing: {}{}", known, see);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return error.what() + see;
  std::vector<std::string> known;
  for (const CLI::Option* option : at.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const std::string word : words) {
    const std::string flag = word.substr(0, word.find('='));
    if (flag.starts_with("--") && std::find(known.begin(), known.end(), flag) == known.end())
      return unknown_name("option", flag, known);
  }
  return error.what() + see;
}

}  // namespace

int main_of_cli(int argc, char** argv) {
  Parser parser;
  const std::span<char* const> words(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0));
  CLI::App* at = parser.choose(words);
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;             // std::cout would bypass stdout
    const int code = parser.app.exit(asked, text, text);
    std::fputs(text.str().c_str(), stdout);
    finish_standard_output();
    return code;
  } catch (const CLI::ParseError& error) {
    if (words.empty()) std::fputs(parser.app.help().c_str(), stderr);
    throw ConfigError(text_of(error, *at, words));
  }
  for (const auto& [app, run, takes_signals] : parser.verbs) {
    if (!app->parsed()) continue;
    if (!takes_signals) release_signals();
    max_isa();  // an invalid name is refused before any work
    const int code = run();
    // The output of a verb is its result; train keeps its result in files.
    if (code == kExitOk && app->get_name() != "train") finish_standard_output();
    return code;
  }
  throw ConfigError("no verb was given; see 'echelon --help'");
}

}  // namespace echelon::cli

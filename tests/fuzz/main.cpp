// SPDX-License-Identifier: Apache-2.0
// fuzz [--target NAME] [--seed S] [--inputs N] [--times F] [--first INDEX] [--only INDEX] [--seconds T] [--limit T]
//      [--corpus DIR] [--failures DIR] [--input FILE] [--list]
//
// Tries random and mutated inputs on the readers of outside data (README.md): on all of them without --target, each
// with its usual number of inputs, or F times as many. Exit code 1 if an input failed. The last line counts targets.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/log.hpp"
#include "base/text.hpp"
#include "h5/file.hpp"
#include "tests/fuzz/session.hpp"

namespace echelon::fuzz {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::map<std::string, std::string> values;

  static Options of(int argc, char** argv) {
    static const std::vector<std::string> known = {"target",  "seed",  "inputs", "times",    "first", "only",
                                                   "seconds", "limit", "corpus", "failures", "input", "list"};
    Options options;
    for (int i = 1; i < argc; ++i) {
      const std::string name = std::string(argv[i]).substr(0, 2) == "--" ? argv[i] + 2 : "";
      if (std::find(known.begin(), known.end(), name) == known.end() || (name != "list" && i + 1 == argc))
        throw ConfigError(
            fmt::format("fuzz: '{}' is no option, or has no value; --{}", argv[i], fmt::join(known, " --")));
      options.values[name] = name == "list" ? "yes" : argv[++i];
    }
    return options;
  }
  bool has(const std::string& name) const { return values.contains(name); }
  std::string text(const std::string& name, const std::string& fallback) const {
    const auto found = values.find(name);
    return found == values.end() ? fallback : found->second;
  }
  double number(const std::string& name, double fallback) const {
    return has(name) ? std::strtod(values.at(name).c_str(), nullptr) : fallback;
  }
};

// A folder for this process, in memory where possible.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const fs::path root = fs::is_directory("/dev/shm", error) ? fs::path("/dev/shm") : fs::temp_directory_path();
    path_ = (root / fmt::format("echelon-fuzz-{}-XXXXXX", ::getuid())).string();
    if (::mkdtemp(path_.data()) == nullptr) throw EnvironmentError(path_ + ": cannot be made");
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string folder(const std::string& name) const {
    const std::string path = path_ + "/" + name;
    fs::create_directories(path);
    return path;
  }

 private:
  std::string path_;
};

int take_file(const TargetEntry& entry, const Place& place, const std::string& path) {
  const bool accepted = entry.make(place)->take(read_plain(path));
  std::printf("%s: %s %s\n", path.c_str(), accepted ? "accepted by" : "refused by", entry.name);
  return 0;
}

void append_summary(const std::string& line) {
  if (const char* path = std::getenv("ECHELON_TEST_SUMMARY")) std::ofstream(path, std::ios::app) << line << "\n";
}

int run(int argc, char** argv) {
  const Options options = Options::of(argc, argv);
  set_log_level(LogLevel::error);
  h5::initialise();
  Session session;
  session.command = argv[0];
  session.seed = std::strtoull(options.text("seed", "1").c_str(), nullptr, 10);
  session.seconds = options.number("seconds", 0);
  session.input_s = options.number("limit", session.input_s);
  session.failures = options.text("failures", (fs::path(argv[0]).parent_path() / "fuzz-failures").string());
  const Scratch scratch;
  const std::string corpus = options.text("corpus", "tests/fuzz/corpus"), only = options.text("target", "");
  std::int64_t passed = 0, failed = 0;
  std::vector<std::string> failures;
  Table table({"target", "inputs", "accepted", "refused", "explained", "failed", "s", "inputs/s", "slowest, ms"});
  for (const TargetEntry& entry : targets()) {
    if (options.has("list")) std::printf("%-16s %s\n", entry.name, entry.what);
    if (options.has("list") || (!only.empty() && only != entry.name)) continue;
    const Place place{scratch.folder(entry.name), corpus};
    if (options.has("input")) return take_file(entry, place, options.text("input", ""));
    session.inputs = static_cast<std::int64_t>(
        options.number("inputs", static_cast<double>(entry.usual) * options.number("times", 1)));
    session.first = static_cast<std::int64_t>(options.number("first", 0));
    if (options.has("only")) session.first = static_cast<std::int64_t>(options.number("only", 0)), session.inputs = 1;
    const Tally tally = run_inputs(entry, place, session);
    const std::int64_t tried = tally.accepted + tally.refused + tally.failed;
    table.row({entry.name, count_text(tried), count_text(tally.accepted), count_text(tally.refused),
               count_text(tally.explained), count_text(tally.failed), fmt::format("{:.1f}", tally.seconds),
               rate_text(static_cast<double>(tried) / tally.seconds), fmt::format("{:.1f}", 1e3 * tally.slowest_s)});
    const bool many = static_cast<double>(tally.explained) > kMostExplained * static_cast<double>(tried);
    ++(tally.failed == 0 && !many && tried > 0 ? passed : failed);
    if (many)
      failures.push_back(
          fmt::format("fuzz: {}: {} of {} inputs crashed a library", entry.name, tally.explained, tried));
    if (tally.failed > 0)
      failures.push_back(fmt::format("fuzz: {}: {} of {} inputs failed", entry.name, tally.failed, tried));
  }
  if (options.has("list")) return 0;
  if (passed + failed == 0) throw ConfigError(fmt::format("fuzz: no target '{}'; --list names them", only));
  std::printf("%s", table.text().c_str());
  for (const std::string& failure : failures) append_summary(failure);
  const std::string line = fmt::format("fuzz: {} passed, {} failed, 0 skipped", passed, failed);
  std::printf("%s\n", line.c_str());
  append_summary(line);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace echelon::fuzz

int main(int argc, char** argv) {
  try {
    return echelon::fuzz::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

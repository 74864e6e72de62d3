// SPDX-License-Identifier: Apache-2.0
// The stand-in in a separate process (the whole program). ECHELON_CUDA_CALLS has its instructions, words such as
// "late", "fail=cudaMalloc:3", "memory", "report=FILE"; its findings are written to the file when the process ends.
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/cuda_calls/standin/book.hpp"

namespace echelon::calls {
namespace {

std::string& report_file() {
  static auto& file = *new std::string;
  return file;
}

void report() {
  std::FILE* file = std::fopen(report_file().c_str(), "w");
  if (!file) return;
  for (const std::string& rule : book().broken_rules()) std::fprintf(file, "broken: %s\n", rule.c_str());
  for (const std::string& object : book().alive()) std::fprintf(file, "alive: %s\n", object.c_str());
  for (const auto& [name, count] : book().counts())
    std::fprintf(file, "%s %lld\n", name.c_str(), static_cast<long long>(count));
  std::fprintf(file, "hidden waits %lld\n", static_cast<long long>(book().hidden_waits()));
  std::fclose(file);
}

[[gnu::constructor]] void obey() {
  const char* words = std::getenv("ECHELON_CUDA_CALLS");
  if (!words) return;
  Settings settings;
  Failure failure;
  std::istringstream text(words);
  for (std::string word; text >> word;) {
    const std::size_t equal = word.find('='), colon = word.find(':');
    if (word == "late") settings.late = true;
    if (word == "memory") failure.memory = true;
    if (word.starts_with("report=")) report_file() = word.substr(equal + 1);
    if (word.starts_with("fail=")) {
      failure.call = word.substr(equal + 1, colon - equal - 1);
      failure.nth = std::stoll(word.substr(colon + 1));
    }
  }
  book().begin(settings);
  book().fail(failure);
  if (!report_file().empty()) std::atexit(report);
}

}  // namespace
}  // namespace echelon::calls

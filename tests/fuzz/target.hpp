// SPDX-License-Identifier: Apache-2.0
// The targets of the tests: readers of bytes that come from outside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/fuzz/draws.hpp"

namespace echelon::fuzz {

// A result that no input may cause; any other exception that leaves Target::take counts as one too.
struct Defect : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string draw(Draws& draws) = 0;
  // Returns true where the input was accepted, false where it was refused as it should be. The result depends on the
  // input alone, not on earlier ones.
  virtual bool take(const std::string& input) = 0;
};

struct Place {
  std::string folder;  // empty folder, in memory, for files
  std::string corpus;  // tests/fuzz/corpus
};

struct TargetEntry {
  const char* name;
  const char* what;
  std::int64_t usual;  // number of inputs in `make test`
  std::unique_ptr<Target> (*make)(const Place& place);
};
const std::vector<TargetEntry>& targets();

// Runs `body`; returns false where it throws an Error with one of these codes.
template <class Body>
bool refused_with(std::initializer_list<ExitCode> codes, Body&& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    if (std::find(codes.begin(), codes.end(), error.code()) == codes.end()) throw;
    return false;
  }
}

// Returns the files below corpus/<name>, sorted by path; throws Defect where there is none.
std::vector<std::string> corpus_of(const Place& place, const std::string& name);
void write_plain(const std::string& path, const std::string& content);
std::string read_plain(const std::string& path);

}  // namespace echelon::fuzz

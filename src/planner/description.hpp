// SPDX-License-Identifier: Apache-2.0
// A table of numbers and words that describes a machine, from a TOML file or from the command line:
//
//   --network 25gbit                         a single word is the value of the key `base`
//   --network "25gbit,ranks_per_host=8"      further keys are separated by commas
//   --network cluster.toml                   the table [network] of a file
//
// Reading is strict: unknown keys, wrong types and numbers out of range throw ConfigErrors with file:line:column (for
// the command line: the option) and the nearest known key.
#pragma once

#include <string>
#include <vector>

#include "config/toml_tree.hpp"

namespace echelon::inline planner {

class Description {
 public:
  // `option` names the argument in messages ("--network"), `table` is the table of a file. An argument that ends in
  // .toml is a file. Throws ConfigError for a file that cannot be read or has no such table.
  Description(const std::string& argument, const std::string& option, const std::string& table);

  double number(const std::string& key, double otherwise, double least, double most);
  std::string word(const std::string& key, const std::string& otherwise);
  bool has(const std::string& key) const { return find(key) != nullptr; }
  // Returns the argument, which may be a file name.
  const std::string& source() const { return source_; }
  // Throws for keys that no call has asked for; to be called last.
  void refuse_others() const;
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

 private:
  const TomlNode* find(const std::string& key) const;
  std::string place(const TomlNode& node) const;

  std::string source_, option_;
  bool file_ = false;
  TomlNode table_;
  std::vector<std::string> asked_;
};

}  // namespace echelon::inline planner

// A table of numbers and words that describes a machine, from a TOML file or from the command line:
//
//   --network 25gbit                         a word alone is the key `base`
//   --network "25gbit,ranks_per_host=8"      and keys, separated by commas
//   --network cluster.toml                   the table [network] of a file
//
// Strict: keys that nobody asks for, wrong types and numbers out of range are ConfigErrors with file:line:column (of
// the command line: the option) and the nearest known key.
#pragma once

#include <string>
#include <vector>

#include "config/toml_tree.hpp"

namespace echelon::inline planner {

class Description {
 public:
  // `option` names the argument in messages ("--network"), `table` the table of a file. An argument that ends in .toml
  // is a file. ConfigError for a file that cannot be read or has no such table.
  Description(const std::string& argument, const std::string& option, const std::string& table);

  double number(const std::string& key, double otherwise, double least, double most);
  std::string word(const std::string& key, const std::string& otherwise);
  bool has(const std::string& key) const { return find(key) != nullptr; }
  // The argument, or the file.
  const std::string& source() const { return source_; }
  // After all keys were asked for.
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

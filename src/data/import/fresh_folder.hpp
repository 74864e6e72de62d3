// SPDX-License-Identifier: Apache-2.0
// A folder that is filled under a temporary name beside its final place and renamed when complete, so that a failed
// import leaves nothing.
#pragma once

#include <string>

namespace echelon::inline data {

// Throws ConfigError if the folder exists and is not empty.
void require_free(const std::string& folder);

class FreshFolder {
 public:
  // Creates the temporary folder; throws EnvironmentError on failure. The destructor deletes it unless published.
  explicit FreshFolder(const std::string& place);
  ~FreshFolder();
  FreshFolder(const FreshFolder&) = delete;

  std::string now(const std::string& file) const;   // path of a file before publish
  std::string then(const std::string& file) const;  // path of a file after publish
  void publish();                                   // renames the folder

 private:
  std::string place_, temporary_;
};

}  // namespace echelon::inline data

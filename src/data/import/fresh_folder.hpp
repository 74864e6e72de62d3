// A folder that is filled beside its place and moved there when complete: nothing remains of an import that fails.
#pragma once

#include <string>

namespace echelon::inline data {

// ConfigError where the folder is there already and holds files.
void require_free(const std::string& folder);

class FreshFolder {
 public:
  explicit FreshFolder(const std::string& place);
  ~FreshFolder();
  FreshFolder(const FreshFolder&) = delete;

  std::string now(const std::string& file) const;   // where it is written
  std::string then(const std::string& file) const;  // where it will be
  void publish();

 private:
  std::string place_, temporary_;
};

}  // namespace echelon::inline data

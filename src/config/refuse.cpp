// SPDX-License-Identifier: Apache-2.0
#include "config/refuse.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace echelon::inline config {

std::string location_of(const Config& config, const std::string& path) {
  for (std::string name = path;; name.resize(name.rfind('.'))) {
    if (const auto found = config.origins.find(name); found != config.origins.end()) return found->second;
    if (name.find('.') == std::string::npos) break;
  }
  return config.file.empty() ? std::string("config") : config.file + ":1:1";
}

void refuse(const Config& config, const std::string& path, const std::string& why) {
  throw ConfigError(fmt::format("{}: {}", location_of(config, path), why));
}

}  // namespace echelon::inline config

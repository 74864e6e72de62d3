// SPDX-License-Identifier: Apache-2.0
// Errors for keys that are valid one by one but not together.
#pragma once

#include <string>

#include "config/schema.hpp"

namespace echelon::inline config {

// Returns where the key `path` was given ("lenet.toml:7:10"). If it was not given: the heading of its section or of an
// enclosing one, else the first line of the file; "config" for a config that was not read from a file.
std::string location_of(const Config& config, const std::string& path);

// Throws ConfigError "<location_of(path)>: <why>".
[[noreturn]] void refuse(const Config& config, const std::string& path, const std::string& why);

}  // namespace echelon::inline config

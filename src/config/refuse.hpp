// Refusals of keys whose values are each fine but do not go together.
#pragma once

#include <string>

#include "config/schema.hpp"

namespace echelon::inline config {

// "lenet.toml:7:10": where `path` was given; else the heading of its section, or of one around that; else
// the file.
std::string location_of(const Config& config, const std::string& path);

// ConfigError with the place in front.
[[noreturn]] void refuse(const Config& config, const std::string& path, const std::string& why);

}  // namespace echelon::inline config

// The paced device's table of seconds by op.
#pragma once

#include <map>
#include <string>

namespace echelon::inline device {

using PacedTable = std::map<std::string, double, std::less<>>;

// Reads {"<OpSpec::text()>": seconds, ..}. EnvironmentError where the file cannot be read; ConfigError naming the file
// and the row where it holds anything else than numbers >= 0.
PacedTable read_paced_table(const std::string& path);

}  // namespace echelon::inline device

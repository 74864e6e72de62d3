// SPDX-License-Identifier: Apache-2.0
// The paced device's table of seconds per op.
#pragma once

#include <map>
#include <string>

namespace echelon::inline device {

using PacedTable = std::map<std::string, double, std::less<>>;

// Reads {"<OpSpec::text()>": seconds, ..}. EnvironmentError if the file cannot be read; ConfigError that names the file
// and the row if it holds anything but numbers >= 0.
PacedTable read_paced_table(const std::string& path);

}  // namespace echelon::inline device

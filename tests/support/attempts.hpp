// SPDX-License-Identifier: Apache-2.0
// Runs `echelon train` in this process, with ranks as threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace echelon::test {

// Returns the exit code with which all ranks end. Throws where the codes differ, or where an error on one rank alone
// would have ended the MPI world. `hosts` gives each rank's host; empty means one host. `open_device` opens the ranks'
// devices in place of the config's. The run prints to standard output and standard error.
using OpenDevice = std::function<std::unique_ptr<Device>(std::string_view kind, const DeviceOptions& options)>;
int train_on_threads(const std::string& config, const std::vector<std::string>& sets, int ranks,
                     const std::vector<int>& hosts = {}, const OpenDevice& open_device = {});

}  // namespace echelon::test

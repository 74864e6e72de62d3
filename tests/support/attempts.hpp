// `echelon train` in this process, its ranks as threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace echelon::test {

// The exit code that all ranks end with. Throws where they differ, or where an error of one rank alone would have ended
// the world. `hosts` by rank; empty: one. `open_device` opens the ranks' devices in place of the config's. What the run
// tells goes to standard output and standard error.
using OpenDevice = std::function<std::unique_ptr<Device>(std::string_view kind, const DeviceOptions& options)>;
int train_on_threads(const std::string& config, const std::vector<std::string>& sets, int ranks,
                     const std::vector<int>& hosts = {}, const OpenDevice& open_device = {});

}  // namespace echelon::test

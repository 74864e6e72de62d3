// SPDX-License-Identifier: Apache-2.0
// With device.measure_layouts rank 0 measures, and the devices of all ranks get what it chose.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "tests/support/attempts.hpp"
#include "tests/support/config_rows.hpp"
#include "tests/support/process.hpp"

namespace echelon::test {
namespace {

constexpr const char* kConfig = R"(name = "measured"
[data]
train = "{0}/images/train"
[batch]
global = 6
[train]
epochs = 0
steps = 2
[device]
kind = "onednn"
threads = 1
measure_layouts = true
[run]
results = "{0}/results"
progress = "none"
[[model.layers]]
type = "conv"
channels = 64
kernel = [3]
padding = [1]
[[model.layers]]
type = "conv"
channels = 64
kernel = [3]
padding = [1]
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
units = 5
)";

}  // namespace

TEST_CASE("all ranks use the layouts that rank 0 measured", "[contract]") {
  const TempFolder folder;
  write_row_data(folder.path());
  set_log_level(LogLevel::error);
  write_file_whole(folder.path() + "/config.toml", fmt::format(kConfig, folder.path()));
  const ConvTable blocked({ConvLayout::blocked});
  std::mutex mutex;
  std::map<std::thread::id, std::vector<ConvTable>> opened;  // by rank
  // Every other table than `blocked` is slow: the plain loops of the reference.
  const auto open = [&](std::string_view kind, const DeviceOptions& options) {
    const std::lock_guard lock(mutex);
    opened[std::this_thread::get_id()].push_back(options.conv_table);
    return open_device(options.conv_table == blocked ? kind : "reference", options);
  };
  REQUIRE(train_on_threads(folder.path() + "/config.toml", {}, 3, {}, open) == 0);
  REQUIRE(opened.size() == 3);
  int measured = 0;
  for (const auto& [rank, tables] : opened) {
    measured += tables.size() > 2 ? 1 : 0;
    CHECK(tables.back() == blocked);
  }
  CHECK(measured == 1);
}

}  // namespace echelon::test

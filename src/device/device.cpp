// SPDX-License-Identifier: Apache-2.0
#include "device/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "device/cuda_entry.hpp"
#include "device/onednn/onednn.hpp"
#include "device/paced/paced.hpp"
#include "device/reference/reference.hpp"

namespace echelon::inline device {
namespace {

struct DeviceKind {
  const char* name;
  std::unique_ptr<Device> (*open)(const DeviceOptions&);
};

// The table of all kinds of device.
constexpr std::array kDeviceKinds = {
    DeviceKind{"reference", make_reference_device},
    DeviceKind{"onednn", make_onednn_device},
    DeviceKind{"cuda", open_cuda},
    DeviceKind{"paced", make_paced_device},
};

}  // namespace

std::vector<std::string> device_kinds() {
  std::vector<std::string> names = {"auto"};
  for (const DeviceKind& kind : kDeviceKinds) names.emplace_back(kind.name);
  return names;
}

std::unique_ptr<Device> open_device(std::string_view kind, const DeviceOptions& options) {
  const std::string_view requested = kind != "auto" ? kind : auto_device_kind();
  for (const DeviceKind& known : kDeviceKinds)
    if (requested == known.name) return known.open(options);
  throw ConfigError(unknown_name("device", requested, device_kinds()));
}

bool means_gpu(std::string_view kind) { return kind == "cuda" || (kind == "auto" && visible_gpus() > 0); }

void Device::to_device(void* dst, const void* src, std::size_t bytes) {
  to_device_async(dst, src, bytes);
  synchronize();
}

void Device::to_host(void* dst, const void* src, std::size_t bytes) {
  to_host_async(dst, src, bytes);
  synchronize();
}

LayoutWish Device::layouts(const OpSpec& spec) const {
  LayoutWish wish{spec.layouts};
  if (spec.kind == OpKind::reorder) return wish;
  const std::vector<ArgInfo> args = signature(spec);
  const auto first = std::find_if(args.begin(), args.end(), [](const ArgInfo& arg) { return arg.movable; });
  if (first == args.end()) return wish;
  const Layout like = spec.layouts[static_cast<std::size_t>(first - args.begin())];
  for (std::size_t a = 0; a < args.size(); ++a)
    if (args[a].movable && args[a].role == ArgRole::output) wish.layouts[a] = like;
  return wish;
}

std::string Device::allreduce_problem() const {
  return fmt::format("device {} has no library that sums over ranks", name());
}

std::unique_ptr<DeviceAllreduce> Device::make_allreduce(const DeviceGroup&) { throw ConfigError(allreduce_problem()); }

std::unique_ptr<Recording> Device::record_ops(const std::function<void()>&) {
  ECHELON_CHECK(false, "device {} cannot record ops", name());
}

}  // namespace echelon::inline device

// SPDX-License-Identifier: Apache-2.0
// Devices that open_device knows and that this ring leaves out.
#include "base/error.hpp"
#include "device/cuda_entry.hpp"
#include "device/onednn/onednn.hpp"
#include "device/paced/paced.hpp"

namespace echelon::inline device {

std::unique_ptr<Device> make_onednn_device(const DeviceOptions&) { throw EnvironmentError("no part of this ring"); }
std::unique_ptr<Device> make_paced_device(const DeviceOptions&) { throw EnvironmentError("no part of this ring"); }
std::unique_ptr<Device> open_cuda(const DeviceOptions&) { throw EnvironmentError("no part of this ring"); }
std::string_view auto_device_kind() { return "reference"; }
int visible_gpus(std::string*) { return 0; }

}  // namespace echelon::inline device

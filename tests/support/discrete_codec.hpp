// SPDX-License-Identifier: Apache-2.0
// The codecs of a discrete device: the host's own codecs with raw indices, on memory that pretends to be out of reach
// of the host.
#pragma once

#include <functional>
#include <memory>

#include "device/device_codec.hpp"

namespace echelon::test {

// `late` registers a copy (to, from, bytes) for when the host has waited; `from` lives until the next encoding.
std::unique_ptr<DeviceCodec> make_discrete_codec(const DeviceCodecSpec& spec,
                                                 std::function<void(void*, const void*, std::size_t)> late);

}  // namespace echelon::test

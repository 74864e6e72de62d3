// SPDX-License-Identifier: Apache-2.0
// Compares a codec of a device with the host's own.
#pragma once

#include <string>

#include "comm/codec/codec.hpp"
#include "device/device.hpp"

namespace echelon::test {

// Encodes several buckets of n values one after another, among them inf and NaN, and decodes the messages. Messages,
// residuals and values must equal the host's bit for bit, or a Catch2 check fails. `parts`: messages that a bucket is
// cut into; 0: three on route direct, else one.
void check_device_codec(Device& device, const std::string& name, std::int64_t n, const CodecOptions& options,
                        int parts = 0);

}  // namespace echelon::test

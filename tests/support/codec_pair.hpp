// A codec of a device beside the host's own.
#pragma once

#include <string>

#include "comm/codec/codec.hpp"
#include "device/device.hpp"

namespace echelon::test {

// Encodes several buckets of n values one after another, inf and NaN among them, and decodes what comes of them: bit
// for bit the messages, residuals and values of the host, or a Catch failure.
void check_device_codec(Device& device, const std::string& name, std::int64_t n, const CodecOptions& options);

}  // namespace echelon::test

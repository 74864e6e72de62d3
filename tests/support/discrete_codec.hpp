// What a discrete device makes of codecs: the host's own codecs with raw places, on memory that pretends to be out of
// the host's reach.
#pragma once

#include <functional>
#include <memory>

#include "device/device_codec.hpp"

namespace echelon::test {

// `late` takes a copy (to, from, bytes) that happens once the host has waited; `from` stays until the next encoding.
std::unique_ptr<DeviceCodec> make_discrete_codec(const DeviceCodecSpec& spec,
                                                 std::function<void(void*, const void*, std::size_t)> late);

}  // namespace echelon::test

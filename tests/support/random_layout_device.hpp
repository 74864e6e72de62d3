// SPDX-License-Identifier: Apache-2.0
// A device that asks for its activations in randomly drawn layouts, for tests of where reorders are inserted.
//
// Its ops unpack, run the op of `reference` and pack. In mixed precision they convert and run f32's; losses, pools and
// ops on sequences do not exist in halves. A forward op stamps what it saves with its layouts, and its backward twin
// refuses another stamp.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.hpp"

namespace echelon::test {

std::unique_ptr<Device> make_random_layout_device(std::uint64_t seed);

}  // namespace echelon::test

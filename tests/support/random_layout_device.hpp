// A device that wants its activations in layouts drawn by chance, for tests of who inserts reorders where.
//
// Its ops are those of `reference` between an unpacking and a packing; in mixed precision f32's between conversions,
// where losses, pools and what works on sequences are not to be had in halves. What a forward op saves is stamped with
// its layouts, and the backward twin refuses another stamp.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.hpp"

namespace echelon::test {

std::unique_ptr<Device> make_random_layout_device(std::uint64_t seed);

}  // namespace echelon::test

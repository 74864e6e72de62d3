// SPDX-License-Identifier: Apache-2.0
// The `reference` device, pretending that its memory is out of the host's reach and that it works later than it is
// told: ops, updates, copies in both directions and codecs happen on a stream (late_streams.hpp), in the stream's
// order, at random moments. Code that reads or overwrites memory without waiting for the pending work gets wrong values
// in some runs. The host can read its memory; the memory of the device beside it faults (far_device.hpp).
#pragma once

#include <memory>
#include <string>

#include "device/device.hpp"

namespace echelon::test {

// `card` names the card; empty: a name of its own. The card "bare" has no library that sums, "shut" exports no memory,
// and "deaf" imports none; sums of cards whose names begin with "stuck" never end.
std::unique_ptr<Device> make_discrete_device(const std::string& card = {});

}  // namespace echelon::test

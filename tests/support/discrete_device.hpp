// `reference` pretending that its memory is out of the host's reach: for tests of staging.
//
// A copy to the host happens only when the event recorded after it is asked about, on whatever thread asks, and not at
// the first time: who uses the host's memory without waiting for the event reads stale values. The device beside it is
// stricter (far_device.hpp).
#pragma once

#include <memory>
#include <string>

#include "device/device.hpp"

namespace echelon::test {

// `card`: its name (empty: one of its own); the card "bare" has no library that sums, "shut" exports no memory, "deaf"
// imports none.
std::unique_ptr<Device> make_discrete_device(const std::string& card = {});

}  // namespace echelon::test

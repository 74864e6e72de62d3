// Likewise for the tests (src/base/precompiled.hpp).
#pragma once

#include <catch2/catch.hpp>

#include "base/precompiled.hpp"

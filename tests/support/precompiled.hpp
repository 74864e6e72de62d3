// SPDX-License-Identifier: Apache-2.0
// Standard headers that most tests include, precompiled once per build (src/base/precompiled.hpp does so for src/).
#pragma once

#include <catch2/catch.hpp>

#include "base/precompiled.hpp"

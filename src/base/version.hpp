// SPDX-License-Identifier: Apache-2.0
// Version and commit of this build, as shown in `echelon --version`, status.json, checkpoints and results.
#pragma once

namespace echelon::inline base {

inline constexpr const char* kVersion = "0.3.0";
const char* commit();  // hash of HEAD at build time, with "-dirty" if files had changes; "unknown" outside a checkout

}  // namespace echelon::inline base

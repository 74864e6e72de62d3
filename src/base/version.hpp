// Version and commit of this build: in `echelon --version`, status.json, checkpoints and results.
#pragma once

namespace echelon::inline base {

inline constexpr const char* kVersion = "0.3.0";
const char* commit();  // hash of HEAD when it was built, "-dirty" where files had changes; "unknown" outside a checkout

}  // namespace echelon::inline base

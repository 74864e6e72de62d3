// Which echelon this is.
#pragma once

namespace echelon::inline base {

inline constexpr const char* kVersion = "0.1.0";
const char* commit();  // of git, "-dirty" where the tree had changes; "unknown" outside a checkout

}  // namespace echelon::inline base

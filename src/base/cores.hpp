// The cores of this process.
#pragma once

namespace echelon::inline base {

int usable_cores();  // in the affinity mask of this process, at least 1

}  // namespace echelon::inline base

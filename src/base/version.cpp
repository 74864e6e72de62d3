#include "base/version.hpp"

namespace echelon {

const char* commit() { return ECHELON_COMMIT; }

}  // namespace echelon

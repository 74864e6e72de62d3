#include "comm/network_shape.hpp"

#include <fmt/format.h>

namespace echelon::inline comm {

std::string NetworkShape::text() const {
  const double mbit = bytes_per_s * 8 / 1e6;
  std::string text = mbit >= 1000 ? fmt::format("{:.4g} Gbit/s", mbit / 1000) : fmt::format("{:.4g} Mbit/s", mbit);
  if (delay_s > 0) text += fmt::format(", {:.4g} us", 1e6 * delay_s);
  if (ranks_per_host > 1) text += fmt::format(", {} ranks a host", ranks_per_host);
  return text;
}

}  // namespace echelon::inline comm

// SPDX-License-Identifier: Apache-2.0
#include "comm/network_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace echelon::inline comm {

namespace {

std::string rate_text_of(double bytes_per_s) {
  const double mbit = bytes_per_s * 8 / 1e6;
  return mbit >= 1000 ? fmt::format("{:.4g} Gbit/s", mbit / 1000) : fmt::format("{:.4g} Mbit/s", mbit);
}

}  // namespace

NetworkShape NetworkShape::of_host(int host) const {
  NetworkShape own = *this;
  own.rates.clear();
  if (!rates.empty()) own.bytes_per_s = rates[std::min(static_cast<std::size_t>(host), rates.size() - 1)];
  return own;
}

std::string NetworkShape::text() const {
  std::string text;
  for (const double rate : rates) text += (text.empty() ? "" : ", ") + rate_text_of(rate);
  text = rates.empty() ? rate_text_of(bytes_per_s) : text + " by host";
  if (delay_s > 0) text += fmt::format(", {:.4g} us", 1e6 * delay_s);
  if (ranks_per_host > 1) text += fmt::format(", {} ranks a host", ranks_per_host);
  return text;
}

}  // namespace echelon::inline comm

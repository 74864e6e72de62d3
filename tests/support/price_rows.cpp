// SPDX-License-Identifier: Apache-2.0
#include "tests/support/price_rows.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace echelon::test {
namespace {

constexpr std::int64_t kDefault = 65536, kSlots = 4;

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
int floor_log2(std::int64_t k) { return static_cast<int>(std::floor(std::log2(static_cast<double>(k)) + 1e-9)); }
int ceil_log2(std::int64_t k) { return static_cast<int>(std::ceil(std::log2(static_cast<double>(k)) - 1e-9)); }

// Scratch elements for messages of at most n elements.
std::int64_t slots(std::int64_t n, std::int64_t segment) {
  return kSlots * std::min(n, segment > 0 ? segment : kDefault);
}

Row ring(std::int64_t k, std::int64_t n, std::int64_t segment) {
  const std::int64_t m = n < k ? 1 : up(n / k, segment > 0 ? segment : kDefault);
  return {.messages = 2 * (k - 1) * m * std::min(n, k),
          .payload_elems = 2 * (k - 1) * n,
          .most_sent_elems = 2 * (k - 1) * up(n, k),
          .scratch_elems = kSlots * up(up(n, k), m),
          .steps = static_cast<int>(2 * (k - 1))};
}

Row naive(std::int64_t k, std::int64_t n) {
  return {.messages = k * (k - 1),
          .payload_elems = k * (k - 1) * n,
          .most_sent_elems = (k - 1) * n,
          .scratch_elems = k * n,
          .steps = 1};
}

Row rooted(std::int64_t k, std::int64_t n, std::int64_t segment, int high, std::int64_t most_messages) {
  return {.messages = 2 * (k - 1) * pieces(n, segment),
          .payload_elems = 2 * (k - 1) * n,
          .most_sent_elems = most_messages * n,
          .scratch_elems = slots(n, segment),
          .steps = 2 * high};
}

Row butterfly(std::int64_t k, std::int64_t n, std::int64_t segment) {
  const int rounds = floor_log2(k);
  const std::int64_t p = std::int64_t{1} << rounds, r = k - p, times = p * rounds + 2 * r;
  return {.messages = times * pieces(n, segment),
          .payload_elems = times * n,
          .most_sent_elems = (rounds + (r > 0 ? 1 : 0)) * n,
          .scratch_elems = slots(n, segment),
          .steps = rounds + (r > 0 ? 2 : 0)};
}

// Returns the messages in the halvings of n elements that p ranks sum.
std::int64_t halvings(std::int64_t p, std::int64_t n, std::int64_t segment) {
  if (p == 1) return 0;
  const std::int64_t lower = up(n, 2), upper = n - lower;
  return p / 2 * (pieces(lower, segment) + pieces(upper, segment)) + halvings(p / 2, lower, segment) +
         halvings(p / 2, upper, segment);
}

Row halving_doubling(std::int64_t k, std::int64_t n, std::int64_t segment) {
  const int rounds = floor_log2(k);
  const std::int64_t p = std::int64_t{1} << rounds, r = k - p;
  std::int64_t most = r > 0 ? n : 0;  // sent to the rank that stepped aside
  for (std::int64_t parts = 2; parts <= p; parts *= 2) most += 2 * up(n, parts);
  return {.messages = 2 * (halvings(p, n, segment) + r * pieces(n, segment)),
          .payload_elems = 2 * (k - 1) * n,
          .most_sent_elems = most,
          .scratch_elems = slots(n, segment),
          .steps = 2 * rounds + (r > 0 ? 2 : 0),
          .full_steps_from = p};
}

Row server(std::int64_t k, std::int64_t n, std::int64_t segment) {
  std::int64_t messages = 0;
  for (std::int64_t s = 0; s < k; ++s) messages += 2 * (k - 1) * pieces(n / k + (s < n % k ? 1 : 0), segment);
  return {.messages = messages,
          .payload_elems = 2 * (k - 1) * n,
          .most_sent_elems = 2 * (k - 1) * up(n, k),
          .scratch_elems = slots(up(n, k), segment),
          .steps = 2};
}

}  // namespace

std::int64_t pieces(std::int64_t n, std::int64_t segment) { return up(n, segment > 0 ? segment : kDefault); }

Row row_of(const std::string& name, std::int64_t k, std::int64_t n, std::int64_t segment) {
  if (k == 1 || n == 0) return {};
  if (name == "naive") return naive(k, n);
  if (name == "ring" || name == "hierarchical") return ring(k, n, segment);
  if (name == "tree") return rooted(k, n, segment, floor_log2(k), std::min<std::int64_t>(3, k - 1));
  if (name == "binomial") return rooted(k, n, segment, ceil_log2(k), ceil_log2(k));
  if (name == "butterfly") return butterfly(k, n, segment);
  if (name == "halving_doubling") return halving_doubling(k, n, segment);
  if (name == "server") return server(k, n, segment);
  if (name == "shared") return {};
  if (name == "mpi") return {.library_elems = n};
  throw std::runtime_error("no row for all-reduce '" + name + "'");
}

}  // namespace echelon::test

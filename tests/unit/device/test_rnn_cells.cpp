// SPDX-License-Identifier: Apache-2.0
// The pass over the gates of a recurrent step: vectors of 16 floats (AVX-512) give the bits of vectors of 8. The
// contract ring tests whether these bits are right.
#include "device/onednn/rnn_cells.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "base/processor.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"

using namespace echelon;

namespace {

constexpr std::int64_t kRows = 3;
constexpr std::int32_t kLengths[kRows] = {1, 0, 1};  // the second row is not active

using Floats = std::vector<float>;

Floats drawn(std::int64_t n, const std::string& name) {
  Floats all;
  for (const double value : test::random_values(static_cast<std::size_t>(n), name))
    all.push_back(static_cast<float>(3 * value));
  return all;
}

onednn::RnnStep step_of(Cell cell, std::int64_t H, bool avx512) {
  const std::int64_t parts = parts_of(cell) * H;
  return {.cell = cell,
          .N = kRows,
          .H = H,
          .h_row = H,
          .parts_row = parts + 5,
          .dparts_row = parts + 2,
          .threads = 1,
          .lengths = kLengths,
          .avx512 = avx512};
}

// Returns all values that a step forward and a step back write.
std::vector<Floats> both_ways(Cell cell, std::int64_t H, bool avx512) {
  const onednn::RnnStep step = step_of(cell, H, avx512);
  const std::int64_t states = kRows * H, wide = kRows * 4 * H;
  Floats parts = drawn(kRows * step.parts_row, "parts"), h_next(static_cast<std::size_t>(states), -1.0f),
         c_next = h_next, y = h_next;
  const Floats product = drawn(wide, "product"), bias = drawn(4 * H, "bias"), h = drawn(states, "h"),
               c = drawn(states, "c");
  rnn_step_forward(step, {.parts = parts.data(),
                          .product = product.data(),
                          .bias = bias.data(),
                          .h = h.data(),
                          .c = c.data(),
                          .h_next = h_next.data(),
                          .c_next = c_next.data(),
                          .y = y.data(),
                          .y_stride = H});
  const Floats dy = drawn(states, "dy"), back = drawn(states, "back");
  Floats passed = drawn(states, "passed"), dc = drawn(states, "dc"),
         dparts(static_cast<std::size_t>(kRows * step.dparts_row), -1.0f),
         dproduct(static_cast<std::size_t>(wide), -1.0f);
  rnn_step_backward(step, {.parts = parts.data(),
                           .h = h.data(),
                           .c = c.data(),
                           .c_next = c_next.data(),
                           .dy = dy.data(),
                           .dy_stride = H,
                           .product = back.data(),
                           .passed = passed.data(),
                           .dc = dc.data(),
                           .dparts = dparts.data(),
                           .dproduct = dproduct.data()});
  return {parts, h_next, c_next, y, passed, dc, dparts, dproduct};
}

}  // namespace

TEST_CASE("gates in vectors of 16 have the bits of those in vectors of 8", "[onednn][rnn]") {
  if (test::skip_without(processor_has(Isa::avx512), test::Lacks::processor, "needs a processor with AVX-512")) return;
  for (const Cell cell : {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru})
    for (const std::int64_t H : {1, 7, 16, 31, 40}) {
      CAPTURE(cell, H);
      CHECK(both_ways(cell, H, true) == both_ways(cell, H, false));
    }
}

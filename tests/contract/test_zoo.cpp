// SPDX-License-Identifier: Apache-2.0
// Runs every ready-made model on the CPU fast path, on the smallest images that use all of its layers.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/fallback.hpp"
#include "tests/support/trainer.hpp"
#include "tests/support/zoo_forms.hpp"

namespace echelon {
namespace {

using test::Trainer;

std::int64_t small_side(const std::string& name) {
  if (name == "digits_cnn") return 8;
  if (name == "lenet") return 12;
  if (name == "alexnet") return 63;
  if (name == "inception_v3") return 75;
  return 32;
}

TEST_CASE("no layer of a ready-made model falls back to a library's unoptimised body", "[zoo][onednn][slow]") {
  for (const std::string& name : zoo_names()) DYNAMIC_SECTION(name) {
      const SampleForm form = test::zoo_form_of_side(name, small_side(name));
      Trainer trainer(build_zoo(name, form), 2, {.device = "onednn", .dtype = DType::f32});
      for (const OpReport& op : trainer.program().ops()) {
        CAPTURE(op.node, op.spec.text(), op.implementation);
        CHECK_FALSE(test::falls_back(op.implementation));
      }
      const test::PlainBatch batch = test::hashed_batch(form, 0, 2, 1);
      trainer.gradients(batch, 2, true);
      CHECK(std::isfinite(trainer.program().losses().loss));
      double largest = 0;
      for (double gradient : trainer.read_gradients()) largest = std::max(largest, std::fabs(gradient));
      CHECK(std::isfinite(largest));
      CHECK(largest > 0);
    }
}

}  // namespace
}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Checks of updates, vector operations and memory.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "device/update_rules/list.hpp"
#include "verify/device_contract.hpp"
#include "verify/random.hpp"
#include "verify/stored.hpp"

namespace echelon::verify {
namespace {

using Failures = std::vector<std::string>;

// A flat span of values on the device, one element past its alignment.
class Span {
 public:
  Span(Device& device, DType dtype, const std::vector<double>& values)
      : dtype_(dtype),
        n_(values.size()),
        memory_(device, to_stored(values, dtype, shape(), Layout::plain), size_of(dtype)) {}
  void* data() const { return memory_.data(); }
  std::vector<double> values() const { return from_stored(memory_.content(), dtype_, shape(), Layout::plain); }
  bool guards_hold() const { return memory_.guards_hold(); }

 private:
  Shape shape() const { return Shape{static_cast<std::int64_t>(n_)}; }
  DType dtype_;
  std::size_t n_;
  Guarded memory_;
};

// States of an update rule: `values` in double, and a copy of them on the device.
struct States {
  States(Device& device, DType dtype, std::vector<std::vector<double>> begin) : values(std::move(begin)) {
    spans.reserve(values.size());
    for (std::vector<double>& state : values) {
      spans.emplace_back(device, dtype, state);
      on_device.push_back(spans.back().data());
      at.push_back(state.data());
    }
  }
  void check(double tolerance, const std::string& name, Failures& failures) const;

  std::vector<std::vector<double>> values;
  std::vector<Span> spans;
  std::vector<void*> on_device;
  std::vector<double*> at;
};

void expect(Failures& failures, bool holds, const std::string& message) {
  if (!holds) failures.push_back(fmt::format("{}; ECHELON_TEST_SEED={}", message, test_seed()));
}

// Returns max|a - b| over the larger of 1 and max|b|: terms have size 1, even if they cancel.
double distance_of(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double apart = 0, size = 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!std::isfinite(a[i])) return std::numeric_limits<double>::infinity();
    apart = std::max(apart, std::fabs(a[i] - b[i]));
    size = std::max(size, std::fabs(b[i]));
  }
  return apart / size;
}

void States::check(double tolerance, const std::string& name, Failures& failures) const {
  for (std::size_t s = 0; s < values.size(); ++s)
    expect(failures, distance_of(spans[s].values(), values[s]) <= tolerance, name + ": a state differs");
}

constexpr std::size_t kSizes[] = {1, 7, 64, 1023, 100003};

template <class Rule>
void check_rule(Device& device, DType dtype, double tolerance, std::size_t n, Failures& failures) {
  const std::string name = fmt::format("update {} {} n {}", Rule::kName, name_of(dtype), n);
  auto w = rounded(random_values(n, name + " w"), dtype);
  States states(device, dtype, {static_cast<std::size_t>(Rule::kStates), std::vector<double>(n)});
  const Span device_w(device, dtype, w);
  const auto update = device.make_update(Rule::kName, dtype);
  for (int step = 0; step < 4; ++step) {
    const auto g = rounded(random_values(n, name + std::to_string(step)), dtype);
    const Span device_g(device, dtype, g);
    RuleScalars scalars{.learning_rate = 0.125, .momentum = 0.75, .weight_decay = 0.0625, .nesterov = step % 2 == 1};
    scalars.beta1 = 0.75;
    scalars.beta2 = 0.875;
    scalars.epsilon = 0.0625;
    scalars.unbias1 = 2;
    scalars.unbias2 = 1.5;
    scalars.clip = step == 2 ? 0.5 : 1.0;
    scalars.trust = step == 3 ? 0.25 : 1.0;
    scalars.step = step;
    update->apply(device_w.data(), device_g.data(), states.on_device, n, scalars);
    device.synchronize();
    for (std::size_t i = 0; i < n; ++i) Rule::apply(w[i], g[i], states.at.data(), i, scalars);
    expect(failures, device_g.values() == g, name + ": the gradient changed");
  }
  expect(failures, distance_of(device_w.values(), w) <= tolerance, name + ": weights differ from the rule");
  states.check(tolerance, name, failures);
  expect(failures, device_w.guards_hold(), name + ": memory around the weights was written");
}

// Marked rows of a table must take a step as `apply` does; the other rows keep weights and states.
template <class Rule>
void check_rows_of_rule(Device& device, DType dtype, double tolerance, std::int64_t rows, std::int64_t width,
                        Failures& failures) {
  const std::string name = fmt::format("update of rows {} {} {} x {}", Rule::kName, name_of(dtype), rows, width);
  const auto n = static_cast<std::size_t>(rows * width);
  auto w = rounded(random_values(n, name + " w"), dtype);
  const auto g = rounded(random_values(n, name + " g"), dtype);
  std::vector<std::vector<double>> begin;
  for (int s = 0; s < Rule::kStates; ++s) {
    begin.push_back(rounded(random_values(n, name + " state" + std::to_string(s)), dtype));
    for (double& value : begin.back()) value = std::fabs(value);  // second moments
  }
  const Span device_w(device, dtype, w), device_g(device, dtype, g);
  States states(device, dtype, std::move(begin));
  std::vector<std::uint32_t> words(static_cast<std::size_t>(row_words(rows)));
  for (std::int64_t row : random_integers(n / static_cast<std::size_t>(width) / 3 + 1, 0, rows - 1, name))
    mark_row(words.data(), row);
  const Memory marks = device.allocate(words.size() * 4, "test marks");
  device.to_device(marks.data(), words.data(), words.size() * 4);
  const RuleScalars scalars{.learning_rate = 0.125, .momentum = 0.75, .weight_decay = 0.0625};
  device.make_update(Rule::kName, dtype)
      ->apply_rows(device_w.data(), device_g.data(), states.on_device,
                   {static_cast<std::uint32_t*>(marks.data()), rows, width}, scalars);
  device.synchronize();
  for (std::size_t i = 0; i < n; ++i)
    if (row_marked(words.data(), static_cast<std::int64_t>(i) / width))
      Rule::apply(w[i], g[i], states.at.data(), i, scalars);
  expect(failures, distance_of(device_w.values(), w) <= tolerance, name + ": weights differ from the rule");
  states.check(tolerance, name, failures);
}

// Compares dst after `run` with the values of `formula`, element by element.
template <class Run, class Formula>
void check_map(Device& device, DType dtype, double tolerance, std::size_t n, const std::string& name, Run&& run,
               Formula&& formula, Failures& failures) {
  const auto a = rounded(random_values(n, name + " dst"), dtype), b = rounded(random_values(n, name + " src"), dtype);
  const Span dst(device, dtype, a), src(device, dtype, b);
  run(device.vector_ops(), dst.data(), src.data());
  device.synchronize();
  std::vector<double> expected(n);
  for (std::size_t i = 0; i < n; ++i) expected[i] = formula(a[i], b[i]);
  const std::string where = fmt::format("vector {} {} n {}", name, name_of(dtype), n);
  expect(failures, distance_of(dst.values(), expected) <= tolerance, where + ": wrong values");
  expect(failures, src.values() == b && dst.guards_hold(), where + ": something else was written");
}

void check_maps(Device& device, DType dtype, double tolerance, std::size_t n, Failures& failures) {
  const auto map = [&](const char* name, auto run, auto formula) {
    check_map(device, dtype, tolerance, n, name, run, formula, failures);
  };
  map(
      "fill", [&](VectorOps& ops, void* dst, const void*) { ops.fill(dtype, dst, 0.75, n); },
      [](double, double) { return 0.75; });
  map(
      "copy", [&](VectorOps& ops, void* dst, const void* src) { ops.copy(dtype, dst, src, n); },
      [](double, double b) { return b; });
  map(
      "add", [&](VectorOps& ops, void* dst, const void* src) { ops.add(dtype, dst, src, n); },
      [](double a, double b) { return a + b; });
  map(
      "add to itself", [&](VectorOps& ops, void* dst, const void*) { ops.add(dtype, dst, dst, n); },
      [](double a, double) { return a + a; });
  map(
      "scale", [&](VectorOps& ops, void* dst, const void*) { ops.scale(dtype, dst, -1.5, n); },
      [](double a, double) { return -1.5 * a; });
  map(
      "axpy", [&](VectorOps& ops, void* dst, const void* src) { ops.axpy(dtype, dst, 0.375, src, n); },
      [](double a, double b) { return a + 0.375 * b; });
}

// Compares with the formula in double, value by value, with guards around the output; in place and out of place.
void check_compensation(Device& device, DType dtype, double tolerance, std::size_t n, Failures& failures) {
  for (const double decay : {0.0, 0.75})
    for (const double rate : {0.0, 0.125})
      for (const bool in_place : {false, true}) {
        const std::string name =
            fmt::format("vector compensate {} n {} decay {} rate {}", name_of(dtype), n, decay, rate);
        const auto drawn = [&](const char* what) { return rounded(random_values(n, name + what), dtype); };
        const std::vector<double> values = drawn("values"), weights = drawn("weights"), pulled = drawn("pulled");
        std::vector<double> mean_square = drawn("mean square"), expected(n);
        for (double& value : mean_square) value = std::fabs(value);
        const Span at_values(device, dtype, values), at_weights(device, dtype, weights),
            at_pulled(device, dtype, pulled);
        const Span at_mean(device, dtype, mean_square), beside(device, dtype, values);
        const Span& out = in_place ? at_values : beside;
        device.vector_ops().compensate(dtype, {.lambda = 0.5, .decay = decay},
                                       {.out = out.data(),
                                        .values = at_values.data(),
                                        .rate = rate,
                                        .weights = at_weights.data(),
                                        .pulled = at_pulled.data(),
                                        .mean_square = decay > 0 ? at_mean.data() : nullptr},
                                       n);
        device.synchronize();
        for (std::size_t i = 0; i < n; ++i) {
          const double gradient = rate > 0 ? -values[i] / rate : values[i];
          double lambda = 0.5;
          if (decay > 0) {
            mean_square[i] = decay * mean_square[i] + (1 - decay) * gradient * gradient;
            lambda /= std::sqrt(mean_square[i] + 1e-7);
          }
          const double compensated = gradient + lambda * gradient * gradient * (weights[i] - pulled[i]);
          expected[i] = rate > 0 ? -rate * compensated : compensated;
        }
        expect(failures, distance_of(out.values(), expected) <= tolerance, name + ": wrong values");
        expect(failures, distance_of(at_mean.values(), mean_square) <= tolerance, name + ": wrong mean square");
        expect(failures, out.guards_hold() && at_mean.guards_hold() && at_weights.values() == weights,
               name + ": something else was written");
        expect(failures, at_pulled.values() == pulled && (in_place || at_values.values() == values),
               name + ": something else was written");
      }
}

void check_reductions(Device& device, DType dtype, std::size_t n, Failures& failures) {
  const std::string where = fmt::format("vector {} n {}", name_of(dtype), n);
  auto values = rounded(random_values(n, where), dtype);
  VectorOps& ops = device.vector_ops();
  double squares = 0, most = 0;
  for (double value : values) squares += value * value, most = std::max(most, std::fabs(value));
  const Span plain(device, dtype, values);
  const double is = ops.sum_squares(dtype, plain.data(), n);
  expect(failures, std::fabs(is - squares) <= 1e-12 * squares, where + ": sum_squares is not a sum in double");
  expect(failures, is == ops.sum_squares(dtype, plain.data(), n), where + ": sum_squares changes its order");
  std::vector<VectorRange> ranges;  // more than a device may take at once, with lengths down to zero
  for (std::size_t i = 0; i < 150; ++i) ranges.push_back({plain.data(), n - n * i / 149});
  std::vector<double> sums(ranges.size(), -1);
  ops.sums_of_squares(dtype, ranges, sums);
  for (std::size_t i = 0; i < ranges.size(); ++i)
    expect(failures, sums[i] == ops.sum_squares(dtype, ranges[i].data, ranges[i].n),
           fmt::format("{}: sums_of_squares of {} values is not sum_squares", where, ranges[i].n));
  expect(failures, ops.max_abs(dtype, plain.data(), n) == most, where + ": max_abs");
  expect(failures, ops.count_not_finite(dtype, plain.data(), n) == 0, where + ": count_not_finite of numbers");
  values[n / 2] = -std::numeric_limits<double>::infinity();
  const Span infinite(device, dtype, values);
  expect(failures, ops.count_not_finite(dtype, infinite.data(), n) == 1, where + ": count_not_finite misses inf");
  expect(failures, std::isinf(ops.max_abs(dtype, infinite.data(), n)), where + ": max_abs of inf");
  values[n - 1] = std::nan("");
  const Span broken(device, dtype, values);
  const std::size_t bad = n / 2 == n - 1 ? 1 : 2;
  expect(failures, ops.count_not_finite(dtype, broken.data(), n) == bad, where + ": count_not_finite misses NaN");
  expect(failures, std::isnan(ops.max_abs(dtype, broken.data(), n)), where + ": max_abs hides NaN");
  expect(failures, !std::isfinite(ops.sum_squares(dtype, broken.data(), n)), where + ": sum_squares hides NaN");
}

}  // namespace

Failures check_updates(Device& device, DType dtype, double tolerance) {
  Failures failures;
  for (std::size_t n : kSizes) {
#define X(Rule) check_rule<Rule>(device, dtype, tolerance, n, failures);
    ECHELON_UPDATE_RULES(X)
#undef X
  }
#define X(Rule)                                                                 \
  for (std::int64_t width : {1, 7, 300})                                        \
    for (std::int64_t rows : {std::int64_t{1}, std::int64_t{33}, 6000 / width}) \
      check_rows_of_rule<Rule>(device, dtype, tolerance, rows, width, failures);
  ECHELON_UPDATE_RULES(X)
#undef X
  return failures;
}

Failures check_vector_ops(Device& device, DType dtype, double tolerance) {
  Failures failures;
  for (std::size_t n : kSizes) {
    check_maps(device, dtype, tolerance, n, failures);
    check_compensation(device, dtype, tolerance, n, failures);
    check_reductions(device, dtype, n, failures);
  }
  expect(failures, device.vector_ops().sum_squares(dtype, nullptr, 0) == 0, "sum_squares of nothing");
  return failures;
}

Failures check_memory(Device& device) {
  Failures failures;
  const std::size_t before = device.allocated_bytes();
  constexpr std::size_t kBytes = 100001;
  Bytes pattern(kBytes), read(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) pattern[i] = static_cast<std::byte>(i * 7 + 1);
  {
    const Memory memory = device.allocate(kBytes, "test memory");
    expect(failures, reinterpret_cast<std::uintptr_t>(memory.data()) % 64 == 0, "memory is not aligned to 64 bytes");
    expect(failures, device.allocated_bytes() >= before + kBytes, "allocated_bytes does not count");
    device.to_host(read.data(), memory.data(), kBytes);
    expect(failures, read == Bytes(kBytes), "memory is not zero-filled");
    device.to_device(memory.data(), pattern.data(), kBytes);
    device.to_host(read.data(), memory.data(), kBytes);
    expect(failures, read == pattern, "to_device and to_host do not return what was written");
    device.zero(memory.bytes_at(3), kBytes - 5);
    device.to_host(read.data(), memory.data(), kBytes);
    Bytes zeroed(kBytes);
    for (std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{2}, kBytes - 2, kBytes - 1})
      zeroed[i] = pattern[i];
    expect(failures, read == zeroed, "zero() clears more or less than its range");

    const Memory host = device.allocate_host(kBytes), back = device.allocate_host(kBytes);
    std::copy(pattern.begin(), pattern.end(), static_cast<std::byte*>(host.data()));
    device.to_device_async(memory.data(), host.data(), kBytes);
    device.to_host_async(back.data(), memory.data(), kBytes);
    const auto event = device.record();
    event->wait();
    expect(failures, event->ready(), "an event is not ready after wait()");
    const auto* at = static_cast<const std::byte*>(back.data());
    expect(failures, std::equal(pattern.begin(), pattern.end(), at), "asynchronous copies do not keep stream order");
  }
  expect(failures, device.allocated_bytes() == before, "memory that was freed is still counted");
  expect(failures, device.peak_bytes() >= before + kBytes, "peak_bytes forgets");
  return failures;
}

}  // namespace echelon::verify

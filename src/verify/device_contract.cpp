// SPDX-License-Identifier: Apache-2.0
// Checks of ops against the f64 reference.
#include "verify/device_contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <set>

#include "verify/device_cases.hpp"
#include "verify/device_variants.hpp"
#include "verify/random.hpp"
#include "verify/stored.hpp"

namespace echelon::verify {
namespace {

// A violation of the contract; check_op catches it.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

OpSpec reference_of(OpSpec spec) {
  if (spec.kind == OpKind::reorder) spec.kind = OpKind::add;  // never run: see expected_outputs
  spec.dtype = DType::f64;
  spec.layouts = {};
  return spec;
}

// One op on one device, with the memory for its arguments.
class Bench {
 public:
  Bench(Device& device, const OpSpec& spec)
      : device_(device), spec_(spec), op_(device.make(spec)), args_(signature(spec)) {}

  const OpSpec& spec() const { return spec_; }
  const Op& op() const { return *op_; }

  // Takes and returns plain values of all arguments. `saved` belongs to the forward twin.
  Values run(const Values& values, const OpTrial& trial, void* saved) {
    std::vector<Bytes> before;
    std::vector<Guarded> memory;
    std::vector<void*> tensors;
    memory.reserve(args_.size());
    for (std::size_t a = 0; a < args_.size(); ++a) {
      before.push_back(to_stored(values[a], args_[a].dtype, args_[a].shape, spec_.layouts[a]));
      if (overwritten(a, trial)) std::fill(before[a].begin(), before[a].end(), kNaN);
      const bool late = trial.unaligned && !args_[a].movable;
      memory.emplace_back(device_, before[a], late ? size_of(args_[a].dtype) : 0);
      tensors.push_back(memory[a].data());
    }
    const Guarded scratch(device_, Bytes(op_->scratch_bytes(), trial.poison), 0);
    OpArgs args;
    args.tensors = tensors.data();
    args.accumulate = trial.accumulate;
    args.saved = saved;
    args.scratch = scratch.data();
    args.scale = trial.scale;
    args.count = trial.count;
    args.key = mix64(trial.version);
    args.parameter_version = trial.version;
    op_->run(args);
    device_.synchronize();
    if (!scratch.guards_hold()) throw Broken("memory around the scratch was written");
    return read_back(before, memory);
  }

 private:
  bool overwritten(std::size_t a, const OpTrial& trial) const {
    return args_[a].role == ArgRole::output && !args_[a].in_part && (trial.accumulate >> a & 1U) == 0;
  }

  Values read_back(const std::vector<Bytes>& before, const std::vector<Guarded>& memory) const {
    Values after;
    for (std::size_t a = 0; a < args_.size(); ++a) {
      const ArgInfo& arg = args_[a];
      const Bytes content = memory[a].content();
      if (!memory[a].guards_hold()) throw Broken(fmt::format("memory around {} was written", arg.name));
      if (arg.role == ArgRole::input && content != before[a]) throw Broken(fmt::format("input {} changed", arg.name));
      after.push_back(from_stored(content, arg.dtype, arg.shape, spec_.layouts[a]));
      if (arg.role == ArgRole::output && spec_.layouts[a] != Layout::plain) check_padding(a, content, after[a]);
    }
    return after;
  }

  // The padded channels of a blocked output must be zero: storing its plain values again must give the same memory.
  void check_padding(std::size_t a, const Bytes& content, const std::vector<double>& plain) const {
    const Shape flat{static_cast<std::int64_t>(content.size() / size_of(args_[a].dtype))};
    const Bytes anew = to_stored(plain, args_[a].dtype, args_[a].shape, spec_.layouts[a]);
    const auto is = from_stored(content, args_[a].dtype, flat, Layout::plain);
    const auto expected = from_stored(anew, args_[a].dtype, flat, Layout::plain);
    for (std::size_t i = 0; i < is.size(); ++i)
      if (expected[i] == 0 && is[i] != 0)
        throw Broken(fmt::format("padded channels of {} are not zero", args_[a].name));
  }

  Device& device_;
  OpSpec spec_;
  std::unique_ptr<Op> op_;
  std::vector<ArgInfo> args_;
};

// Whether the op reads the memory `saved` by a forward twin.
bool has_twin(const OpSpec& spec) {
  const std::optional<Twin> twin = cases_of(spec.kind).twin;
  return twin && twin->backward == spec.kind;
}

// The twin, with its argument z in the layout of z or dz.
OpSpec twin_of(const OpSpec& spec) {
  OpSpec twin = spec;
  twin.kind = cases_of(spec.kind).twin->forward;
  twin.layouts = {};
  const std::vector<ArgInfo> own = signature(spec), args = signature(twin);
  for (std::size_t a = 0; a < args.size(); ++a) {
    const int same = argument_index(own, args[a].name),
              gradient = argument_index(own, fmt::format("d{}", args[a].name));
    if (same >= 0 || gradient >= 0) twin.layouts[a] = spec.layouts[static_cast<std::size_t>(std::max(same, gradient))];
  }
  return twin;
}

// The twin's inputs: those of the backward op with the same name, others are drawn.
Values twin_values(const OpSpec& spec, const Values& values, const OpTrial& trial) {
  OpSpec key = twin_of(spec);  // gives the same inputs for every dtype and layout
  key.dtype = DType::f32;
  key.layouts = {};
  const auto args = signature(spec);
  Values given;
  for (const ArgInfo& arg : signature(key)) {
    const auto same = std::find_if(args.begin(), args.end(), [&](const ArgInfo& own) { return own.name == arg.name; });
    if (arg.role == ArgRole::output)
      given.emplace_back(elems(arg.shape));
    else if (same != args.end())
      given.push_back(values[static_cast<std::size_t>(same - args.begin())]);
    else
      given.push_back(rounded(make_input(key, arg, trial, {}), trial.operands));
  }
  return given;
}

// Runs `spec` after its twin, if it has one, and returns all arguments.
Values run_with_twin(Device& device, Bench& bench, const Values& values, const OpTrial& trial) {
  const std::size_t saved_bytes = bench.op().saved_bytes();
  const Guarded saved(device, Bytes(saved_bytes, kNaN), 0);
  if (has_twin(bench.spec())) {
    Bench twin(device, twin_of(bench.spec()));
    if (twin.op().saved_bytes() != saved_bytes)
      throw Broken(fmt::format("saved_bytes {} is not the forward twin's {}", saved_bytes, twin.op().saved_bytes()));
    (void)twin.run(twin_values(bench.spec(), values, trial), OpTrial{}, saved.data());
  }
  Values after = bench.run(values, trial, saved.data());
  if (!saved.guards_hold()) throw Broken("memory around what the forward twin saved was written");
  return after;
}

// The values that an output is added to; bits if the output consists of bits.
std::vector<double> added_to(const ArgInfo& arg, const std::string& name) {
  if (arg.dtype != DType::i32) return random_values(elems(arg.shape), name);
  const auto bits = random_integers(elems(arg.shape), -2'147'483'647, 2'147'483'647, name);
  return {bits.begin(), bits.end()};
}

// Draws the inputs by the signature, and for outputs the values they are added to.
Values make_values(const OpSpec& spec, const OpTrial& trial) {
  Values values;
  for (const ArgInfo& arg : signature(spec)) {
    const std::string name = fmt::format("{}/{}/{}", spec.text(), trial.name, arg.name);
    if (arg.role == ArgRole::input)
      values.push_back(
          rounded(make_input(spec, arg, trial, values), arg.dtype == spec.dtype ? trial.operands : arg.dtype));
    else
      values.push_back(rounded((trial.accumulate >> values.size() & 1U) != 0 || arg.in_part
                                   ? added_to(arg, name)
                                   : std::vector<double>(elems(arg.shape)),
                               arg.dtype));
  }
  if (const auto clear = cases_of(spec.kind).clear_kinks) clear(spec, values);
  return values;
}

Values expected_outputs(const OpSpec& spec, const Values& values, const OpTrial& trial) {
  if (spec.kind == OpKind::reorder) return {values[0], values[0]};
  Bench bench(oracle(), reference_of(spec));
  return run_with_twin(oracle(), bench, values, trial);
}

// Inputs have size 1, so an output that adds n terms has size sqrt(n). If it is much smaller only because its terms
// happen to cancel, its own size is no measure of the error. Where operands are halves, the terms themselves are
// rounded, and often the values they are added to.
double usual_size(DType operands, const std::vector<ArgInfo>& args, const ArgInfo& output) {
  double terms = 1;
  for (const ArgInfo& arg : args)
    if (arg.role == ArgRole::input)
      terms = std::max(terms, static_cast<double>(arg.shape.elems()) / static_cast<double>(output.shape.elems()));
  return (is_half(operands) ? 1 : 0.05) * std::sqrt(terms);
}

// Returns max|is - expected| relative to the larger of max|expected| and `size`; infinite if a value is not finite.
double distance_to(const std::vector<double>& is, const std::vector<double>& expected, double size) {
  double distance = 0;
  for (std::size_t i = 0; i < is.size(); ++i) {
    if (!std::isfinite(is[i])) return std::numeric_limits<double>::infinity();
    distance = std::max(distance, std::fabs(is[i] - expected[i]));
    size = std::max(size, std::fabs(expected[i]));
  }
  return distance / size;
}

std::optional<std::size_t> first_not_finite(const std::vector<double>& values) {
  const auto found = std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
  if (found == values.end()) return {};
  return static_cast<std::size_t>(found - values.begin());
}

void compare(const OpSpec& spec, DType operands, const Values& is, const Values& expected, double tolerance,
             OpCheck& check) {
  const auto args = signature(spec);
  for (std::size_t a = 0; a < args.size(); ++a) {
    if (args[a].role != ArgRole::output) continue;
    const double distance = distance_to(is[a], expected[a], usual_size(operands, args, args[a]));
    check.worst = std::max(check.worst, distance);
    if (distance <= tolerance) continue;
    if (const auto lost = first_not_finite(is[a]))
      throw Broken(fmt::format("{} is not finite at element {} of {}: {} not {}", args[a].name, *lost, is[a].size(),
                               is[a][*lost], expected[a][*lost]));
    std::size_t at = 0;
    for (std::size_t i = 0; i < is[a].size(); ++i)
      if (std::fabs(is[a][i] - expected[a][i]) > std::fabs(is[a][at] - expected[a][at])) at = i;
    throw Broken(fmt::format("{} is off by {:.2e} of its largest value (limit {:.0e}); worst at element {}: {} not {}",
                             args[a].name, distance, tolerance, at, is[a][at], expected[a][at]));
  }
}

// Overwrites all outputs twice (aligned and not); or overwrites all, adds to all and, if several outputs add, each
// mixture of the first and the others, and every other one. A gradient and the bits that mark its rows go together.
std::vector<unsigned> accumulate_masks(const OpSpec& spec) {
  unsigned all = 0;
  bool marks = false;
  const auto args = signature(spec);
  for (std::size_t a = 0; a < args.size(); ++a) {
    if (!args[a].adds) continue;
    all |= 1U << a;
    marks = marks || args[a].dtype == DType::i32;
  }
  std::vector<unsigned> masks = {0, all};
  if (marks) return masks;
  const unsigned first = all & (~all + 1);
  if (all != first) masks.insert(masks.end(), {first, all & ~first});
  constexpr unsigned kEven = 0x55555555U;
  if (const unsigned others = all & ~first; (others & kEven) != 0 && (others & ~kEven) != 0)
    masks.push_back(all & kEven);
  return masks;
}

std::string layouts_text(const OpSpec& spec) {
  std::string text;
  const auto args = signature(spec);
  for (std::size_t a = 0; a < args.size(); ++a)
    if (args[a].movable)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", args[a].name, name_of(spec.layouts[a]));
  return text.empty() ? "plain" : text;
}

void check_variant(Device& device, const OpSpec& spec, double tolerance, DType operands, OpCheck& check) {
  std::string stage = "building";
  try {
    Bench bench(device, spec);
    check.implementation = bench.op().implementation();
    const auto run = [&](const OpTrial& trial) {
      OpSpec key = spec;  // gives the same inputs in every layout
      key.layouts = {};
      const Values values = make_values(key, trial);
      compare(spec, operands, run_with_twin(device, bench, values, trial), expected_outputs(spec, values, trial),
              tolerance, check);
    };
    const auto own_count = cases_of(spec.kind).own_count;
    std::uint64_t version = 1;
    for (unsigned mask : accumulate_masks(spec)) {
      OpTrial trial{
          .name = fmt::format("trial {}", version), .accumulate = mask, .version = version, .operands = operands};
      trial.unaligned = version % 2 == 0;
      trial.poison = version % 2 == 0 ? kHuge : kNaN;
      if (mask != 0) trial.scale = 0.375;
      if (own_count && version % 2 == 0) trial.count = 2 * own_count(spec) + 3;
      stage = fmt::format("accumulate {:#b}, {}, scratch of {}", mask, trial.unaligned ? "unaligned arena" : "aligned",
                          trial.poison == kNaN ? "NaN" : "3e38");
      run(trial);
      ++version;
    }
    if (own_count) {
      OpTrial group{.name = "group", .version = version, .unaligned = true, .operands = operands};
      group.count = 3 * own_count(spec) + 1;
      stage = "count of a larger group";
      run(group);
    }
  } catch (const std::exception& error) {
    check.ok = false;
    check.message += fmt::format("{} [{}] ({}) {}: {}; ECHELON_TEST_SEED={}\n", spec.text(), layouts_text(spec),
                                 check.implementation, stage, error.what(), test_seed());
  }
}

}  // namespace

OpCheck check_op(Device& device, const OpSpec& spec, double tolerance, std::optional<DType> operands) {
  OpCheck check;
  if (is_half(spec.dtype)) tolerance *= cases_of(spec.kind).half_tolerance;
  for (const OpSpec& variant : variants(device, spec))
    check_variant(device, variant, tolerance, operands.value_or(spec.dtype), check);
  return check;
}

std::vector<std::string> check_device(Device& device, DType dtype, double tolerance) {
  std::vector<std::string> failures = check_memory(device);
  const auto append = [&](const std::vector<std::string>& more) {
    failures.insert(failures.end(), more.begin(), more.end());
  };
  if (!is_half(dtype)) append(check_vector_ops(device, dtype, tolerance));
  if (!is_half(dtype)) append(check_updates(device, dtype, tolerance));
  const std::vector<OpSpec> specs = contract_specs(dtype);
  for (const std::string& kind : kinds_without_spec(specs))
    failures.push_back(fmt::format("{} has no row in src/verify/ops/", kind));
  for (const OpSpec& spec : specs) {
    if (is_half(dtype) && !device.has(spec.kind, dtype)) continue;
    if (const OpCheck check = check_op(device, spec, tolerance); !check.ok) failures.push_back(check.message);
  }
  return failures;
}

}  // namespace echelon::verify

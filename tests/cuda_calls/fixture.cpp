// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_calls/fixture.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/check.hpp"
#include "device/cuda_entry.hpp"
#include "tests/support/zoo_forms.hpp"
#include "verify/device_cases.hpp"

namespace echelon::test {
namespace {

namespace fs = std::filesystem;

void* library() {
  static void* const handle = [] {
    const fs::path file = fs::read_symlink("/proc/self/exe").parent_path() / kCudaLibrary;
    void* opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    ECHELON_CHECK(opened != nullptr, "{}", dlerror());
    return opened;
  }();
  return handle;
}

LossScaling scaling_of(DType activations) {
  if (activations != DType::f16) return {};
  return {.dynamic = true, .start = 65536};
}

std::optional<DType> mixed(DType activations) {
  if (!is_half(activations)) return {};
  return activations;
}

}  // namespace

void* standin_symbol(const char* name) {
  void* symbol = dlsym(library(), name);
  ECHELON_CHECK(symbol != nullptr, "{}", name);
  return symbol;
}

calls::Ledger& ledger() {
  static auto& found = reinterpret_cast<calls::LedgerFunction*>(standin_symbol(calls::kLedgerSymbol))();
  return found;
}

std::string complaints() {
  std::string text;
  for (const std::string& rule : ledger().broken_rules()) text += rule + "\n";
  for (const std::string& object : ledger().alive()) text += "not given back: " + object + "\n";
  return text;
}

std::unique_ptr<Device> open_gpu(DeviceOptions options) { return open_device("cuda", options); }

Training::Training(const Graph& graph, const Options& options)
    : graph_(graph),
      options_(options),
      device_(open_gpu({.index = kGpu, .allow_fallback = options.allow_fallback})),
      arenas_(*device_, graph.parameters(), options.dtype),
      program_(graph_, arenas_,
               {.batch = options.batch, .dtype = mixed(options.activations), .replay = options.replay}),
      optimiser_(options.optimiser, arenas_, scaling_of(options.activations)),
      batch_(hashed_batch(form_of(graph), 0, options.batch, 1)) {}

void Training::step() {
  optimiser_.begin_step(steps_, 0.1);
  load_batch(*device_, program_, batch_);
  program_.reset_losses();
  PassScalars pass;
  pass.loss_scale = optimiser_.loss_scale() / static_cast<double>(options_.batch);
  pass.key = step_key(steps_);
  program_.forward(pass);
  program_.backward(pass);
  (void)program_.losses();
  if (optimiser_.accept() == Optimiser::Verdict::apply) optimiser_.apply({0, arenas_.elems()});
  ++steps_;
}

Graph small_zoo_model(const std::string& name) {
  SampleForm form = zoo_form(name);
  if (form.shape.rank() >= 3) {
    const std::map<std::string, std::int64_t> sides{
        {"digits_cnn", 8}, {"cnn_32_64", 12}, {"alexnet", 63}, {"inception_v3", 75}};
    const std::int64_t side = sides.count(name) == 1 ? sides.at(name) : 32;
    form = zoo_form_of_side(name, side);
    if (form.classes > 0) form.classes = 10;
  } else {
    if (form.tokens()) form.vocabulary = 20;
    if (form.classes > 20) form.classes = 20;
    if (name != "ranking") form.shape = form.shape.rank() == 2 ? Shape{4, form.shape[1]} : Shape{4};
    if (form.label.rank() == 1) form.label = {4};
    if (form.target > 0) form.target = 4;
  }
  return build_zoo(name, form);
}

OpRun::OpRun(Device& device, const OpSpec& spec, std::uint64_t version, bool unaligned)
    : device_(device), op_(device.make(spec)), version_(version) {
  tensors_ = arguments(spec, unaligned);
  saved_ = device.allocate(op_->saved_bytes(), "saved");
  scratch_ = device.allocate(op_->scratch_bytes(), "scratch");
  const std::optional<verify::Twin> twin = verify::cases_of(spec.kind).twin;
  if (!twin || twin->backward != spec.kind) return;
  OpSpec forward = spec;
  forward.kind = twin->forward;
  const std::vector<ArgInfo> args = signature(forward);
  forward.layouts = {};
  for (std::size_t a = 0; a < args.size(); ++a)
    if (args[a].movable) forward.layouts[a] = spec.layouts[0];
  twin_ = device.make(forward);
  twin_tensors_ = arguments(forward, unaligned);
  twin_scratch_ = device.allocate(twin_->scratch_bytes(), "scratch");
}

std::vector<void*> OpRun::arguments(const OpSpec& spec, bool unaligned) {
  OpSpec key = spec;
  key.dtype = DType::f32;
  key.layouts = {};
  if (auto* reordered = std::get_if<ReorderDims>(&key.dims)) reordered->from = {};
  const verify::OpTrial trial{.name = "calls", .version = version_};
  verify::Values values;
  std::vector<void*> tensors;
  for (const ArgInfo& arg : signature(spec)) {
    const auto count = static_cast<std::size_t>(stored_elems(arg.shape, spec.layouts[tensors.size()]));
    const std::size_t late = unaligned && !arg.movable ? 1 : 0;
    memory_.push_back(device_.allocate((count + late) * size_of(arg.dtype), arg.name));
    tensors.push_back(memory_.back().bytes_at(late * size_of(arg.dtype)));
    if (arg.role != ArgRole::input) continue;
    values.push_back(verify::make_input(key, arg, trial, values));
    if (arg.dtype != DType::i32) continue;
    const std::vector<std::int32_t> integers(values.back().begin(), values.back().end());
    device_.to_device(tensors.back(), integers.data(), integers.size() * sizeof(std::int32_t));
  }
  return tensors;
}

void OpRun::run(unsigned accumulate) {
  OpArgs args;
  args.saved = saved_.data();
  args.parameter_version = version_;
  args.key = version_;
  if (twin_) {
    args.tensors = twin_tensors_.data();
    args.scratch = twin_scratch_.data();
    twin_->run(args);
  }
  args.tensors = tensors_.data();
  args.scratch = scratch_.data();
  args.accumulate = accumulate;
  op_->run(args);
}

}  // namespace echelon::test

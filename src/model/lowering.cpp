// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "device/packs_weights.hpp"
#include "device/row_bits.hpp"
#include "model/graph_lowering.hpp"

namespace echelon::inline model {

Lowered lower(const Graph& graph, Device& device, DType dtype, const LowerOptions& options) {
  return GraphLowering(graph, device, dtype, options).run();
}

GraphLowering::GraphLowering(const Graph& graph, Device& device, DType dtype, const LowerOptions& options)
    : graph_(graph), device_(device), dtype_(dtype), options_(options), table_(graph, options.batch, dtype) {}

Lowered GraphLowering::run() {
  lowered_.gradients_done.assign(graph_.nodes().size(), -1);
  lower_forward();
  if (options_.training) lower_backward();
  keep_readable();
  for (std::size_t id = 0; id < graph_.values().size(); ++id)
    lowered_.values.push_back(readable(static_cast<ValueId>(id)));
  lowered_.tensors = table_.take();
  return std::move(lowered_);
}

void GraphLowering::lower_forward() {
  for (node_ = 0; node_ < static_cast<int>(graph_.nodes().size()); ++node_) {
    present_.clear();
    lowered_.forward_begin.push_back(static_cast<int>(lowered_.ops.size()));
    node().layer->forward(*this);
  }
  copy_read();
  lowered_.forward_ops = static_cast<int>(lowered_.ops.size());
  lowered_.forward_begin.push_back(lowered_.forward_ops);
}

void GraphLowering::lower_backward() {
  backward_ = true;
  for (node_ = static_cast<int>(graph_.nodes().size()) - 1; node_ >= 0; --node_) {
    if (!graph_.values()[static_cast<std::size_t>(output_value(0))].wants_gradient) continue;
    present_.clear();
    node().layer->backward(*this);
    for (const auto& [value, partial] : partials_) add_to_gradient(value, partial);
    partials_.clear();
  }
}

TensorRef GraphLowering::input(int i) {
  const int tensor = table_.value(input_value(i));
  if (backward_) present_[tensor] = used_layout(i);
  return {tensor};
}

TensorRef GraphLowering::output(int i) { return {table_.value(output_value(i))}; }

bool GraphLowering::wants_grad_input(int i) const {
  return graph_.values()[static_cast<std::size_t>(input_value(i))].wants_gradient;
}

TensorRef GraphLowering::grad_input(int i) {
  const ValueId value = input_value(i);
  const std::string name = "d " + graph_.values()[static_cast<std::size_t>(value)].name;
  int tensor = wants_grad_input(i) ? gradient(value) : -1;
  if (tensor < 0 || table_.gradient_shared(value)) {
    const int old = tensor;
    tensor =
        table_.fresh(name, input_shape(i), wants_grad_input(i) ? table_.dtype_of_value(value) : dtype(), Layout::plain);
    if (table_.gradient_plain(value)) fixed_plain_.insert(tensor);
    if (old >= 0)
      partials_.emplace_back(value, tensor);
    else if (wants_grad_input(i))
      table_.set_gradient(value, tensor, false);
  } else if (!(table_.at(tensor).shape == input_shape(i))) {
    tensor = table_.view(tensor, input_shape(i));
  }
  present_[tensor] = used_layout(i);
  if (wants_grad_input(i)) gradient_of_[tensor] = value;
  return {tensor};
}

TensorRef GraphLowering::grad_output(int i) {
  int tensor = gradient(output_value(i));
  ECHELON_CHECK_GE(tensor, 0, "no op wrote the gradient of '{}'", node().name);
  if (!(table_.at(tensor).shape == output_shape(i))) tensor = table_.view(tensor, output_shape(i));
  present_[tensor] = table_.at(table_.value(output_value(i))).layout;
  return {tensor};
}

std::vector<TensorRef> GraphLowering::grad_output_terms(int i) {
  if (last_term_.first != output_value(i)) return {grad_output(i)};
  const int last = std::exchange(last_term_, {-1, -1}).second;
  const TensorRef others = grad_output(i);
  present_[last] = present_[others.id];
  return {others, {last}};
}

TensorRef GraphLowering::parameter(int j) { return {table_.weight(parameter_index(j))}; }

TensorRef GraphLowering::unread(std::string_view what, int j, const Shape& shape, DType dtype) {
  const int tensor = table_.kept(node_, fmt::format("{} {}", what, j), shape, dtype);
  unread_.insert(tensor);
  return {tensor};
}

TensorRef GraphLowering::grad_parameter(int j) {
  if (frozen(j)) return unread("unread gradient", j, graph_.parameters()[parameter_index(j)].shape, wide_of(dtype_));
  return {table_.parameter_gradient(parameter_index(j))};
}

TensorRef GraphLowering::row_marks(int j) {
  const Shape& shape = graph_.parameters()[parameter_index(j)].shape;
  if (frozen(j)) return unread("unread marks", j, Shape{row_words(shape[0])}, DType::i32);
  return {table_.row_marks(parameter_index(j))};
}

TensorRef GraphLowering::kept(std::string_view tag, const Shape& shape, DType dtype) {
  const int tensor = table_.kept(node_, tag, shape, dtype);
  if (node_ == graph_.loss() && tag == "sums") {
    table_.at(tensor).persistent = true;
    lowered_.loss_sums = tensor;
  }
  return {tensor};
}

TensorRef GraphLowering::state(std::string_view tag, const Shape& shape) {
  const int tensor = table_.kept(node().owner, tag, shape, wide_of(dtype_));
  LoweredTensor& made = table_.at(tensor);
  if (made.home == Home::activation) {
    made.name = fmt::format("states/{}.{}", node().of, tag);
    made.home = Home::state;
    lowered_.states.push_back(tensor);
  }
  return {tensor};
}

void GraphLowering::alias(int output, int input) {
  const int plain = in_layout(table_.value(input_value(input)), Layout::plain);
  table_.alias_value(output_value(output), input_value(input), plain);
}

void GraphLowering::pass_gradient(int output, int input) { give_gradient(input, grad_output(output), true); }

void GraphLowering::give_gradient(int input, TensorRef tensor, bool shared) {
  const ValueId value = input_value(input);
  if (table_.gradient(value) >= 0) return add_to_gradient(value, tensor.id);
  if (table_.gradient_plain(value)) {
    if (shared) tensor.id = in_layout(tensor.id, Layout::plain);
    if (!shared) fixed_plain_.insert(tensor.id);
  }
  table_.set_gradient(value, tensor.id, shared);
}

TensorRef GraphLowering::zeros(std::string_view tag, const Shape& shape, bool wide) {
  const int tensor = table_.kept(node_, tag, shape, wide ? wide_of(dtype()) : dtype());
  table_.at(tensor).persistent = true;
  table_.at(tensor).zeros = true;
  return {tensor};
}

// The gradient of the previous node's output is added up only when that node, which is lowered next, asks for it by
// grad_output_terms.
void GraphLowering::add_to_gradient(ValueId value, int partial) {
  add_last_term();
  last_term_ = {value, partial};
  const bool next = graph_.values()[static_cast<std::size_t>(value)].producer == node_ - 1;
  if (!next || table_.gradient_plain(value)) add_last_term();
}

void GraphLowering::add_last_term() {
  const auto [value, term] = std::exchange(last_term_, {-1, -1});
  if (value >= 0) table_.set_gradient(value, sum(table_.gradient(value), term), false);
}

// Returns the complete gradient so far; -1 before its first writer is lowered.
int GraphLowering::gradient(ValueId value) {
  if (last_term_.first == value) add_last_term();
  return table_.gradient(value);
}

int GraphLowering::sum(int a, int b) {
  const LoweredTensor first = table_.at(a);
  b = in_form(b, first.layout, first.dtype);
  if (!(table_.at(b).shape == first.shape)) b = table_.view(b, first.shape);
  const int total = table_.fresh(first.name, first.shape, first.dtype, first.layout);
  OpSpec spec{.kind = OpKind::add, .dtype = first.dtype, .dims = ElementwiseDims{first.shape}};
  spec.layouts[0] = spec.layouts[1] = spec.layouts[2] = first.layout;
  if (fixed_plain_.contains(a)) fixed_plain_.insert(total);
  emit(spec, signature(spec), {a, b, total}, ScaleSource::one, -1);
  return total;
}

// Converts a shape: features (N, F) may be an op's (N, C, 1, 1), rows of images its channels.
int GraphLowering::seen_as(int tensor, const Shape& shape) {
  if (table_.at(tensor).shape == shape || same_in_layouts(table_.at(tensor).shape, shape)) return tensor;
  const int seen = table_.view(in_layout(tensor, Layout::plain), shape);
  if (const auto found = gradient_of_.find(tensor); found != gradient_of_.end()) gradient_of_[seen] = found->second;
  return seen;
}

bool GraphLowering::writes_unread_alone(const std::vector<ArgInfo>& infos, const std::vector<TensorRef>& args) const {
  bool any = false;
  for (std::size_t a = 0; a < args.size(); ++a) {
    if (infos[a].role != ArgRole::output) continue;
    if (!unread_.contains(args[a].id)) return false;
    any = true;
  }
  return any;
}

void GraphLowering::op(const OpSpec& spec, const std::vector<TensorRef>& refs, ScaleSource scale, int pair) {
  OpSpec placed = spec;
  if (!device_.has(spec.kind, spec.dtype)) placed.dtype = wide_of(spec.dtype);
  const std::vector<ArgInfo> infos = signature(placed);
  ECHELON_CHECK_EQ(refs.size(), infos.size(), "layer '{1}' gave {0} the wrong number of arguments", spec.text(),
                   node().name);
  if (writes_unread_alone(infos, refs)) return;
  std::vector<int> args;
  for (TensorRef ref : refs) {
    const ArgInfo& info = infos[args.size()];
    ECHELON_CHECK(!info.in_part || table_.at(ref.id).dtype == info.dtype, "argument {} of {} has dtype {}, not {}",
                  info.name, placed.text(), name_of(table_.at(ref.id).dtype), name_of(info.dtype));
    args.push_back(seen_as(ref.id, info.shape));
  }
  choose_layouts(placed, infos, args);
  emit(placed, infos, std::move(args), scale, pair);
  finish_detours();
}

void GraphLowering::emit(const OpSpec& spec, const std::vector<ArgInfo>& infos, std::vector<int> args,
                         ScaleSource scale, int pair) {
  const int index = static_cast<int>(lowered_.ops.size());
  LoweredOp op{.node = node_, .backward = backward_, .spec = spec, .op = device_.make(spec), .tensors = {}};
  share_weights(*op.op, spec);
  op.scale = scale;
  if (const auto* norm = std::get_if<NormDims>(&spec.dims)) {
    const auto cells = cells_.find(node_);
    const double each = static_cast<double>(cells == cells_.end() ? norm->H * norm->W : cells->second);
    if (synchronised_.contains(node_)) op.count_per_sample = each;
    if (cells != cells_.end()) op.count = each * static_cast<double>(norm->N);
  }
  for (std::size_t a = 0; a < args.size(); ++a) {
    LoweredTensor& memory = table_.storage(args[a]);
    const bool written = memory.first >= 0 && memory.home != Home::state;
    if (infos[a].role == ArgRole::output && !infos[a].in_part) {
      const unsigned bit = 1U << a;
      if (written || args[a] == lowered_.loss_sums) op.accumulate |= bit;
      if (memory.home == Home::gradient || memory.home == Home::row_marks) {
        if (!written) op.first_writes |= bit;
        lowered_.gradients_done[static_cast<std::size_t>(node().owner)] = index;
      }
      ECHELON_CHECK(infos[a].adds || (op.accumulate & bit) == 0,
                    "output {} of {} has two writers, but the op cannot add to it", infos[a].name, spec.text());
    }
    if (!written) memory.first = index;
    memory.last = index;
  }
  op.tensors = std::move(args);
  op.saved = saved_memory(*op.op, pair);
  if (op.saved >= 0) {
    LoweredTensor& saved = table_.at(op.saved);
    if (saved.first < 0) saved.first = index;
    saved.last = index;
  }
  lowered_.scratch_bytes = std::max(lowered_.scratch_bytes, op.op->scratch_bytes());
  lowered_.ops.push_back(std::move(op));
}

// The time chunks of a layer share its weights. A layer has at most one op of each kind that takes parameters.
void GraphLowering::share_weights(Op& op, const OpSpec& spec) {
  if (node().parameters.empty()) return;
  const auto [first, fresh] = packers_.try_emplace({node().owner, spec.kind}, &op);
  if (auto* packer = fresh ? nullptr : dynamic_cast<PacksWeights*>(&op)) packer->share_weights(*first->second);
}

void GraphLowering::sum_over_replicas(TensorRef tensor) {
  synchronised_.insert(node_);
  lowered_.ops.back().summed = tensor.id;
}

void GraphLowering::transfer(int cut, TensorRef from, TensorRef to, bool wide) {
  const auto travels = [&](int tensor) { return wide ? wide_of(table_.at(tensor).dtype) : table_.at(tensor).dtype; };
  if (from.id >= 0) from.id = in_form(from.id, Layout::plain, travels(from.id));
  if (to.id >= 0 && travels(to.id) != table_.at(to.id).dtype) to.id = detour(to.id, Layout::plain, travels(to.id));
  if (to.id >= 0) to.id = written_whole(to.id);
  const int index = static_cast<int>(lowered_.ops.size());
  if (to.id >= 0) table_.storage(to.id).first = table_.storage(to.id).last = index;
  if (from.id >= 0) table_.storage(from.id).last = index;
  LoweredOp op{.node = node_, .backward = backward_, .spec = {}, .op = nullptr, .tensors = {from.id, to.id}};
  op.cut = cut;
  lowered_.ops.push_back(std::move(op));
  finish_detours();
}

// A received tensor is plain and overwrites. If the gradient already has a writer or another layout, the received
// tensor goes into a separate one, which is added to the gradient after the node.
int GraphLowering::written_whole(int tensor) {
  if (table_.storage(tensor).first < 0 && table_.at(tensor).layout == Layout::plain) return tensor;
  const auto value = gradient_of_.find(tensor);
  ECHELON_CHECK(value != gradient_of_.end(), "{} has two writers, one of which is a transfer from another rank",
                table_.at(tensor).name);
  const LoweredTensor like = table_.at(tensor);
  const int partial = table_.fresh(like.name, like.shape, like.dtype, Layout::plain);
  partials_.emplace_back(value->second, partial);
  return partial;
}

int GraphLowering::saved_memory(const Op& op, int pair) {
  if (op.saved_bytes() == 0) return -1;
  const auto found = pair < 0 ? saved_.end() : saved_.find({node_, pair});
  if (found != saved_.end()) {
    ECHELON_CHECK_LE(op.saved_bytes(), table_.at(found->second).bytes,
                     "the backward op of layer '{}' saves more than its forward op", node().name);
    return found->second;
  }
  ECHELON_CHECK(!backward_, "layer '{}' has no forward op that saves for this backward op", node().name);
  const int tensor = table_.bytes_tensor(node().name + " saved", op.saved_bytes());
  if (pair >= 0) saved_[{node_, pair}] = tensor;
  return tensor;
}

}  // namespace echelon::inline model

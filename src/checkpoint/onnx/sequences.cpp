// SPDX-License-Identifier: Apache-2.0
// Ops on sequences: recurrent layers, attention, pooling over positions.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "checkpoint/onnx/ops.hpp"

namespace echelon::inline checkpoint::onnx {
namespace {

using Integers = std::vector<std::int64_t>;

// Returns our gate in device/ops/rnn.hpp for each gate in ONNX's order (i o f c, where c is our g; z r h, where h is
// our n).
Integers gates_in_order(Cell cell) {
  switch (cell) {
    case Cell::lstm: return {0, 3, 1, 2};
    case Cell::gru: return {1, 0, 2};
    case Cell::tanh:
    case Cell::relu: break;
  }
  return {0};
}

const char* type_of(Cell cell) { return cell == Cell::lstm ? "LSTM" : cell == Cell::gru ? "GRU" : "RNN"; }

// Reorders the rows of a weight (G*H, ..) or bias (G*H) to ONNX's order of gates.
std::string reordered(Builder& to, const RnnDims& d, const std::string& value) {
  const Integers gates = gates_in_order(d.cell);
  if (gates.size() == 1) return value;
  Integers rows;
  for (const std::int64_t gate : gates)
    for (std::int64_t unit = 0; unit < d.H; ++unit) rows.push_back(gate * d.H + unit);
  return to.add("Gather", {value, to.integers(rows)}, {{"axis", std::int64_t{0}}});
}

std::string with_axis(Builder& to, const std::string& value, std::int64_t axis) {
  return to.add("Unsqueeze", {value, to.integers({axis})});
}

std::string transposed(Builder& to, const std::string& value, const Integers& axes) {
  return to.add("Transpose", {value}, {{"perm", axes}});
}

std::string minus_infinity(Builder& to) { return to.number(-std::numeric_limits<float>::infinity()); }

// Splits a sequence (N, T, D) into (N, heads, T, features of a head); `axes`: order of the axes.
std::string in_heads(Builder& to, const AttentionDims& d, const std::string& value, std::int64_t positions,
                     const Integers& axes) {
  return transposed(to, to.add("Reshape", {value, to.integers({0, positions, d.heads, d.head()})}), axes);
}

// A (T, T) mask: 0, or -infinity if the key comes after the query.
std::string causal_mask(Builder& to, std::int64_t positions) {
  return to.once(fmt::format("causal/{}", positions), [&] {
    std::vector<float> mask(static_cast<std::size_t>(positions * positions));
    for (std::int64_t query = 0; query < positions; ++query)
      for (std::int64_t key = query + 1; key < positions; ++key)
        mask[static_cast<std::size_t>(query * positions + key)] = -std::numeric_limits<float>::infinity();
    return to.numbers({positions, positions}, mask);
  });
}

}  // namespace

std::string positions_in_use(Builder& to, const std::string& lengths, std::int64_t positions) {
  return to.once(fmt::format("in use/{}/{}", lengths, positions), [&] {
    return to.add("Less", {to.indices(0, positions), with_axis(to, lengths, 1)});
  });
}

// ONNX takes (T, N, F), and returns the positions as (T, directions, N, H) and states as (directions, N, H).
void write_form(Builder& to, const RnnDims& d, const Arguments& args) {
  ECHELON_CHECK_EQ(d.first, 0, "a time chunk");
  const auto state = [&](const char* name) { return d.initial ? with_axis(to, args[name], 0) : std::string(); };
  const std::string x = transposed(to, args["x"], {1, 0, 2});
  const std::string weight_x = with_axis(to, reordered(to, d, args["weight_x"]), 0);
  const std::string weight_h = with_axis(to, reordered(to, d, args["weight_h"]), 0);
  const std::string biases = to.add("Concat", {reordered(to, d, args["bias_x"]), reordered(to, d, args["bias_h"])},
                                    {{"axis", std::int64_t{0}}});
  std::vector<std::string> inputs = {x, weight_x, weight_h, with_axis(to, biases, 0), args["lengths"], state("h0")};
  if (d.has_c()) inputs.push_back(state("c0"));
  std::vector<Attribute> attributes = {{"hidden_size", d.H},
                                       {"direction", std::string(d.reverse ? "reverse" : "forward")}};
  if (d.cell == Cell::gru) attributes.push_back({"linear_before_reset", std::int64_t{1}});
  if (d.cell == Cell::relu) attributes.push_back({"activations", std::vector<std::string>{"Relu"}});

  std::vector<std::string> outputs;
  for (const char* name : {"all", "h", "c"})
    if (d.has_c() || name != std::string("c")) outputs.push_back(to.name(args["y"] + "/" + name));
  to.write(type_of(d.cell), inputs, outputs, attributes);
  const std::string positions = to.add("Squeeze", {outputs[0], to.integers({1})});
  to.write("Transpose", {positions}, {args["y"]}, {{"perm", Integers{1, 0, 2}}});
  to.write("Squeeze", {outputs[1], to.integers({0})}, {args["hn"]});
  if (d.has_c()) to.write("Squeeze", {outputs[2], to.integers({0})}, {args["cn"]});
}

void write_form(Builder& to, const AttentionDims& d, const Arguments& args) {
  const std::string q = in_heads(to, d, args["q"], d.T, {0, 2, 1, 3}),
                    k = in_heads(to, d, args["k"], d.S, {0, 2, 3, 1}),
                    v = in_heads(to, d, args["v"], d.S, {0, 2, 1, 3});
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d.head())));
  std::string scores = to.add("Mul", {to.add("MatMul", {q, k}), to.number(scale)});  // (N, heads, T, S)
  if (d.causal) scores = to.add("Add", {scores, causal_mask(to, d.T)});
  if (d.lengths) {
    const std::string keys = positions_in_use(to, args["lengths"], d.S);
    const std::string mask = to.add("Unsqueeze", {keys, to.integers({1, 2})});
    scores = to.add("Where", {mask, scores, minus_infinity(to)});
  }
  const std::string parts = to.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  const std::string seen = transposed(to, to.add("MatMul", {parts, v}), {0, 2, 1, 3});
  to.write("Reshape", {seen, to.integers({0, d.T, d.D})}, {args["y"]});
}

void write_form(Builder& to, const SequencePoolDims& d, const Arguments& args) {
  const std::string x = args["x"], lengths = args["lengths"];
  if (!d.lengths && d.mode == SequencePool::last)
    return to.write("Gather", {x, to.integer(d.T - 1)}, {args["y"]}, {{"axis", std::int64_t{1}}});
  std::string counted = x;
  if (d.lengths) {
    std::string positions = positions_in_use(to, lengths, d.T);
    if (d.mode == SequencePool::last) positions = to.add("Equal", {to.indices(1, d.T), with_axis(to, lengths, 1)});
    counted = to.add("Where", {with_axis(to, positions, 2), x, to.number(0)});
  }
  const std::vector<Attribute> removes = {{"keepdims", std::int64_t{0}}};
  if (d.mode != SequencePool::mean) return to.write("ReduceSum", {counted, to.integers({1})}, {args["y"]}, removes);
  std::string count = to.number(static_cast<float>(d.T));
  if (d.lengths) count = with_axis(to, to.add("Cast", {lengths}, {{"to", static_cast<std::int64_t>(Element::f32)}}), 1);
  to.write("Div", {to.add("ReduceSum", {counted, to.integers({1})}, removes), count}, {args["y"]});
}

}  // namespace echelon::inline checkpoint::onnx

// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention (Vaswani et al. 2017) without its projections, which are dense layers: queries (T, D),
// keys (S, D) and values (S, D) -> (T, D), softmax(q k^T / sqrt(D / heads)) v for each head. If the data has
// sequences of different lengths, keys beyond a sample's length are masked; `causal` masks later positions, and padding
// with them.
#include <fmt/format.h>

#include <set>
#include <string>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {
namespace {

enum Input : int { kQueries = 0, kKeys = 1, kValues = 2, kLengths = 3 };

class Attention final : public Layer {
 public:
  explicit Attention(const LayerConfig& config) : heads_(config.heads), causal_(config.causal) {
    if (heads_ < 1) throw ConfigError(fmt::format("heads = {} must be at least 1", heads_));
    if (std::set<std::string>(config.inputs.begin(), config.inputs.end()).size() != 3)
      throw ConfigError(
          "an attention layer takes queries, keys and values, the outputs of three different layers: inputs = [\"q\", "
          "\"k\", "
          "\"v\"]");
  }

  std::string_view kind() const override { return "attention"; }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("{} head{}{}", heads_, heads_ == 1 ? "" : "s", causal_ ? " causal" : "");
  }
  int arity() const override { return 3; }
  bool wants_lengths() const override { return !causal_; }
  int lengths_of() const override { return kKeys; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const Shape &q = inputs[kQueries], &k = inputs[kKeys], &v = inputs[kValues];
    for (const Shape* shape : {&q, &k, &v})
      if (shape->rank() != 2)
        throw ConfigError(
            fmt::format("an attention layer takes sequences of features (T, F), but an input is {}", shape->text()));
    if (!(k == v) || q[1] != k[1])
      throw ConfigError(
          fmt::format("queries {}, keys {} and values {} do not fit together: keys and values must have one shape, and "
                      "all three the same number of features",
                      q.text(), k.text(), v.text()));
    if (q[1] % heads_ != 0)
      throw ConfigError(fmt::format("{} features cannot be divided into {} heads; nearest valid: heads = {}", q[1],
                                    heads_, nearest_divisor(q[1])));
    if (causal_ && q[0] != k[0])
      throw ConfigError(fmt::format(
          "causal attention needs as many queries as keys, but there are {} queries and {} keys", q[0], k[0]));
    return {q};
  }

  void forward(Lowering& lowering) const override {
    std::vector<TensorRef> args = inputs(lowering);
    args.push_back(lowering.output(0));
    lowering.op(spec(OpKind::attention_forward, lowering), args, ScaleSource::one, 0);
  }

  void backward(Lowering& lowering) const override {
    std::vector<TensorRef> args = inputs(lowering);
    args.push_back(lowering.grad_output(0));
    for (int i : {kQueries, kKeys, kValues}) args.push_back(lowering.grad_input(i));
    lowering.op(spec(OpKind::attention_backward, lowering), args, ScaleSource::one, 0);
  }

 private:
  static bool lengths(const Lowering& lowering) { return lowering.inputs() > kLengths; }

  static std::vector<TensorRef> inputs(Lowering& lowering) {
    std::vector<TensorRef> refs;
    for (int i = 0; i < lowering.inputs(); ++i) refs.push_back(lowering.input(i));
    return refs;
  }

  std::int64_t nearest_divisor(std::int64_t features) const {
    for (std::int64_t away = 1;; ++away) {
      if (heads_ > away && features % (heads_ - away) == 0) return heads_ - away;
      if (features % (heads_ + away) == 0) return heads_ + away;
    }
  }

  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape q = lowering.input_shape(kQueries), k = lowering.input_shape(kKeys);
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = AttentionDims{.N = q[0],
                                  .T = q[1],
                                  .S = k[1],
                                  .D = q[2],
                                  .heads = heads_,
                                  .causal = causal_,
                                  .lengths = lengths(lowering)}};
  }

  std::int64_t heads_;
  bool causal_;
};

}  // namespace

LayerPtr make_attention(const LayerConfig& config) { return std::make_shared<Attention>(config); }

}  // namespace echelon::inline model

// SPDX-License-Identifier: Apache-2.0
// Embedding: a learned row of `units` features for each token, (T) -> (T, F). The table is (vocabulary, units). With
// `sparse` only the rows of the gradient that a step touches are zeroed, applied and sent.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

class Embedding final : public SplittableLayer {
 public:
  explicit Embedding(const LayerConfig& config)
      : units_(config.units), vocabulary_(config.vocabulary), sparse_(config.sparse) {
    if (units_ < 1)
      throw ConfigError("an embedding layer needs the key units, the number of features of a token, at least 1");
  }

  std::string_view kind() const override { return "embedding"; }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("{} of {} tokens{}", units_, vocabulary_, sparse_ ? ", sparse" : "");
  }
  bool reads_indices(int) const override { return true; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() != 1)
      throw ConfigError(
          fmt::format("an embedding takes a sequence of tokens (T), but its input is {}", inputs[0].text()));
    if (vocabulary_ < 1)
      throw ConfigError(
          "an embedding layer needs the key vocabulary, the number of tokens, because the data has no vocabulary");
    return {Shape{inputs[0][0], units_}};
  }

  // PyTorch's initial values: normal with standard deviation 1.
  std::vector<ParameterDecl> parameters(std::span<const Shape>) const override {
    ParameterDecl table{"weight", Shape{vocabulary_, units_}, Init{Init::Kind::normal, 1.0}};
    table.sparse = sparse_;
    return {table};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::embedding_forward, lowering),
                {lowering.input(0), lowering.parameter(0), lowering.output(0)});
  }

  void backward(Lowering& lowering) const override {
    OpSpec op = spec(OpKind::embedding_backward, lowering);
    std::vector<TensorRef> args = {lowering.input(0), lowering.grad_output(0), lowering.grad_parameter(0)};
    if (sparse_) {
      std::get<EmbeddingDims>(op.dims).sparse = true;
      args.push_back(lowering.row_marks(0));
    }
    lowering.op(op, args);
  }

  std::int64_t table_rows() const override { return vocabulary_; }
  LayerPtr with_inputs(const Units& units) const override {
    auto part = std::make_shared<Embedding>(*this);
    part->vocabulary_ = units.count();
    part->part_ = units;
    return part;
  }
  std::vector<ParameterSlice> slices(std::span<const Shape>) const override {
    if (part_.all == 0) return {};
    return {{.whole = Shape{part_.all, units_}, .offset = Shape{part_.begin, 0}}};
  }
  LayerPtr on_steps(const Units&) const override { return std::make_shared<Embedding>(*this); }

 private:
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = EmbeddingDims{
                .rows = lowering.input_shape(0).elems(), .V = vocabulary_, .F = units_, .first = part_.begin}};
  }

  std::int64_t units_, vocabulary_;
  bool sparse_;
  Units part_;  // the rows of the table of a part; count 0: all
};

}  // namespace

LayerPtr make_embedding(const LayerConfig& config) { return std::make_shared<Embedding>(config); }

}  // namespace echelon::inline model

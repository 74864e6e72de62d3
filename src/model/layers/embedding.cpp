// Embedding: a learned row of `units` features for each token, (T) -> (T, F). The table is (vocabulary, units).
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

class Embedding final : public Layer {
 public:
  explicit Embedding(const LayerConfig& config) : units_(config.units), vocabulary_(config.vocabulary) {
    if (units_ < 1) throw ConfigError("needs units, the features of a token, at least 1");
  }

  std::string_view kind() const override { return "embedding"; }
  std::string attributes() const override { return fmt::format("{} of {} tokens", units_, vocabulary_); }
  bool reads_indices(int) const override { return true; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() != 1)
      throw ConfigError(fmt::format("an embedding takes a sequence of tokens (T), its input is {}", inputs[0].text()));
    if (vocabulary_ < 1) throw ConfigError("needs vocabulary, the number of tokens; this data says none");
    return {Shape{inputs[0][0], units_}};
  }

  // As PyTorch: normal with standard deviation 1.
  std::vector<ParameterDecl> parameters(std::span<const Shape>) const override {
    return {{"weight", Shape{vocabulary_, units_}, Init{Init::Kind::normal, 1.0}}};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::embedding_forward, lowering),
                {lowering.input(0), lowering.parameter(0), lowering.output(0)});
  }

  void backward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::embedding_backward, lowering),
                {lowering.input(0), lowering.grad_output(0), lowering.grad_parameter(0)});
  }

 private:
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = EmbeddingDims{.rows = lowering.input_shape(0).elems(), .V = vocabulary_, .F = units_}};
  }

  std::int64_t units_, vocabulary_;
};

}  // namespace

LayerPtr make_embedding(const LayerConfig& config) { return std::make_shared<Embedding>(config); }

}  // namespace echelon

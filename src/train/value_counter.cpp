// SPDX-License-Identifier: Apache-2.0
#include "train/value_counter.hpp"

#include <algorithm>
#include <cmath>

#include "base/dtype.hpp"
#include "train/host_values.hpp"

namespace echelon::inline train {
namespace {

const Node& loss_node(const Graph& graph) { return graph.nodes()[static_cast<std::size_t>(graph.loss())]; }
const Value& input_of_loss(const Graph& graph, std::size_t input) {
  return graph.values()[static_cast<std::size_t>(loss_node(graph).inputs[input])];
}

}  // namespace

ValueFigures chosen_figures(ValueFigures all, const std::vector<std::string>& metrics) {
  const auto requested = [&](const char* name) {
    return std::find(metrics.begin(), metrics.end(), name) != metrics.end();
  };
  if (!requested("mae")) all.mae = kUnknown;
  if (!requested("r2")) all.r2 = kUnknown;
  return all;
}

bool gives_numbers(const Graph& whole) { return !loss_node(whole).layer->reads_logits() && !whole.counts_correct(); }

ValueCounter::ValueCounter(const Graph& whole) : whole_(whole) {
  const Shape& label = input_of_loss(whole, 1).shape;
  elems_ = label.elems();
  const bool steps = input_of_loss(whole, 0).along_samples;  // the labels of a step are (K), else those of a sample
  const std::int64_t columns = label.rank() == 0 ? 1 : steps ? elems_ / label[0] : label.rank() == 1 ? elems_ : 1;
  columns_ = columns <= kMostColumns ? columns : 1;
}

void ValueCounter::count(Device& device, const Program& program, const Batch& batch, double* sums) {
  const Tensor outputs = program.value(input_of_loss(whole_, 0).name);
  const void* values = host_values(device, outputs, host_);
  std::fill(sums, sums + this->sums(), 0.0);
  with_float(outputs.dtype, [&]<class T>(T) {
    const auto* x = static_cast<const T*>(values);
    with_float(program.input("weights").dtype, [&]<class L>(L) {
      const auto *labels = static_cast<const L*>(batch.labels), *weights = static_cast<const L*>(batch.weights);
      for (std::int64_t i = 0; i < batch.n * elems_; ++i) {
        const auto w = static_cast<double>(weights[i]), t = static_cast<double>(labels[i]);
        if (!(w > 0)) continue;
        const double apart = static_cast<double>(x[i]) - t;
        double* own = sums + i % columns_ * kSums;
        own[kWeight] += w, own[kAbsolute] += w * std::fabs(apart), own[kSquare] += w * apart * apart;
        own[kLabel] += w * t, own[kLabelSquare] += w * t * t;
      }
    });
  });
}

ValueFigures ValueCounter::figures(std::span<const double> batches) const {
  std::vector<double> all(sums());
  for (std::size_t i = 0; i < batches.size(); ++i) all[i % all.size()] += batches[i];
  double weight = 0, absolute = 0, explained = 0;
  for (std::size_t column = 0; column < all.size(); column += kSums) {
    const double* own = all.data() + column;
    weight += own[kWeight], absolute += own[kAbsolute];
    const double spread = own[kLabelSquare] - own[kLabel] * own[kLabel] / own[kWeight];
    explained += spread > 0 ? 1 - own[kSquare] / spread : kUnknown;
  }
  if (!(weight > 0)) return {};
  return {.mae = absolute / weight, .r2 = explained / static_cast<double>(columns_)};
}

}  // namespace echelon::inline train

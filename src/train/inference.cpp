#include "train/inference.hpp"

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "train/feed.hpp"
#include "train/run_plan.hpp"

namespace echelon {
namespace {

// The loss's node says what its first input means.
bool gives_classes(const Graph& graph) {
  return graph.nodes()[static_cast<std::size_t>(graph.loss())].layer->kind() == "softmax_loss";
}

const Value& outputs_of(const Graph& graph) {
  const Node& loss = graph.nodes()[static_cast<std::size_t>(graph.loss())];
  return graph.values()[static_cast<std::size_t>(loss.inputs.front())];
}

std::vector<float> fetch(Device& device, const Tensor& tensor) {
  return with_float(tensor.dtype, [&]<class T>(T) {
    std::vector<T> values(static_cast<std::size_t>(tensor.elems()));
    device.to_host(values.data(), tensor.data, tensor.bytes());
    return std::vector<float>(values.begin(), values.end());
  });
}

// Logits into probabilities, row by row; the likeliest of each.
std::vector<std::int32_t> softmax_rows(std::vector<float>& values, std::int64_t classes) {
  std::vector<std::int32_t> chosen;
  for (auto row = values.begin(); row != values.end(); row += classes) {
    const auto most = std::max_element(row, row + classes);
    chosen.push_back(static_cast<std::int32_t>(most - row));
    const float top = *most;
    double sum = 0;
    for (auto value = row; value != row + classes; ++value) sum += static_cast<double>(*value = std::exp(*value - top));
    for (auto value = row; value != row + classes; ++value) *value = static_cast<float>(*value / sum);
  }
  return chosen;
}

// The first pass of a program builds what the library runs: it is not timed.
void warm_up(Device& device, Program& program, const Batch& batch) {
  feed(device, program, batch);
  program.forward({});
  program.reset_states();
  program.reset_losses();
}

}  // namespace

double InferenceSummary::latency(double part) const {
  if (latencies.empty()) return 0;
  const auto last = static_cast<double>(latencies.size() - 1);
  return latencies[static_cast<std::size_t>(std::lround(part * last))];
}

InferenceSummary infer(LoadedModel& model, const Dataset& data, const Config& config,
                       const std::function<void(const InferenceBatch&)>& take) {
  const ShardPlan plan = evaluation_plan(data, config, 1);
  Loader loader(data, plan, evaluation_loading(config, model.arenas().dtype()));
  Program program(model.graph(), model.arenas(), {.batch = plan.batch(0), .training = false});
  const Value& output = outputs_of(model.graph());
  const std::int64_t classes = output.shape[output.shape.rank() - 1];

  InferenceSummary summary;
  summary.samples = data.samples();
  for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const Batch& given = loader.next();
    if (step == 0) warm_up(model.device(), program, given);
    const double start = now_s();
    feed(model.device(), program, given);
    program.forward({});
    InferenceBatch result;
    result.shape = output.shape;
    result.outputs = fetch(model.device(), program.value(output.name));
    summary.latencies.push_back(now_s() - start);
    for (const SampleSlot& slot : plan.ids(0, step, 0))  // what fills the last step up comes last
      if (slot.counts) result.ids.push_back(slot.id);
    result.outputs.resize(result.ids.size() * static_cast<std::size_t>(output.shape.elems()));
    if (gives_classes(model.graph())) result.chosen = softmax_rows(result.outputs, classes);
    take(result);
  }
  summary.sums = program.losses();
  std::sort(summary.latencies.begin(), summary.latencies.end());
  return summary;
}

}  // namespace echelon

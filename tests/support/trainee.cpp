#include "tests/support/trainee.hpp"

#include <numeric>

#include "base/check.hpp"
#include "base/hash_rng.hpp"

namespace echelon::test {
namespace {

template <class T>
void fill(Device& device, const Tensor& tensor, const std::vector<T>& values) {
  ECHELON_CHECK_EQ(static_cast<std::int64_t>(values.size()), tensor.elems());
  if (tensor.dtype == dtype_of<T>) return device.to_device(tensor.data, values.data(), tensor.bytes());
  const std::vector<float> narrow(values.begin(), values.end());
  device.to_device(tensor.data, narrow.data(), tensor.bytes());
}

std::vector<double> fetch(Device& device, const void* data, std::int64_t elems, DType dtype) {
  return with_float(dtype, [&]<class T>(T) {
    std::vector<T> values(static_cast<std::size_t>(elems));
    device.to_host(values.data(), data, values.size() * sizeof(T));
    return std::vector<double>(values.begin(), values.end());
  });
}

}  // namespace

double PlainBatch::weight() const { return std::accumulate(weights.begin(), weights.end(), 0.0); }

PlainBatch hashed_batch(const Shape& sample, std::int64_t classes, std::int64_t first_id, std::int64_t n,
                        std::uint64_t name) {
  PlainBatch batch;
  for (std::int64_t id = first_id; id < first_id + n; ++id) {
    const HashRng rng = HashRng(name, "sample").at(static_cast<std::uint64_t>(id));
    const auto elems = static_cast<std::uint64_t>(sample.elems());
    for (std::uint64_t i = 0; i < elems; ++i) batch.samples.push_back(2 * rng.uniform(i) - 1);
    batch.labels.push_back(static_cast<std::int32_t>(rng.below(elems, static_cast<std::uint64_t>(classes))));
    batch.weights.push_back(1);
    batch.ids.push_back(static_cast<std::int32_t>(id));
  }
  return batch;
}

PlainBatch part_of(const PlainBatch& batch, std::int64_t first, std::int64_t n) {
  const auto slice = [&]<class T>(const std::vector<T>& all) {
    const auto row = static_cast<std::ptrdiff_t>(all.size()) / batch.n();
    return std::vector<T>(all.begin() + first * row, all.begin() + (first + n) * row);
  };
  return {slice(batch.samples), slice(batch.labels), slice(batch.weights), slice(batch.ids)};
}

Trainee::Trainee(const Graph& graph, std::int64_t batch, const TraineeOptions& options)
    : Trainee(graph, batch, options, open_device(options.device, {})) {}

Trainee::Trainee(const Graph& graph, std::int64_t batch, const TraineeOptions& options, std::unique_ptr<Device> device)
    : graph_(graph),
      device_(std::move(device)),
      arenas_(std::make_unique<Arenas>(*device_, graph.parameters(), options.dtype)) {
  arenas_->initialise(options.seed);
  program_ = std::make_unique<Program>(graph_, *arenas_, ProgramOptions{batch, options.training, options.keep_values});
}

void Trainee::load(const PlainBatch& batch) {
  fill(*device_, program_->input("samples"), batch.samples);
  fill(*device_, program_->input("weights"), batch.weights);
  const Tensor labels = program_->input("labels");
  ECHELON_CHECK_EQ(batch.n(), labels.elems());
  device_->to_device(labels.data, batch.labels.data(), labels.bytes());
  if (!program_->has_input("ids")) return;
  const Tensor ids = program_->input("ids");
  ECHELON_CHECK_EQ(static_cast<std::int64_t>(batch.ids.size()), ids.elems());
  device_->to_device(ids.data, batch.ids.data(), ids.bytes());
}

PassScalars Trainee::scalars() const {
  PassScalars scalars;
  scalars.key = HashRng(1, "trainee").at(static_cast<std::uint64_t>(step_)).key();
  return scalars;
}

double Trainee::loss(const PlainBatch& batch) {
  load(batch);
  program_->reset_losses();
  program_->forward(scalars());
  return program_->losses().loss;
}

void Trainee::gradients(const PlainBatch& batch, double step_weight, bool first,
                        const std::function<void(ArenaRange)>& ready) {
  load(batch);
  PassScalars pass = scalars();
  pass.loss_scale = 1 / step_weight;
  pass.group_weight = batch.weight() / step_weight;
  pass.first = first;
  program_->forward(pass);
  program_->backward(pass, ready);
}

void Trainee::write_weight(std::int64_t elem, double value) {
  with_float(arenas_->dtype(), [&]<class T>(T) {
    const T narrow = static_cast<T>(value);
    device_->to_device(arenas_->weights_at(elem), &narrow, sizeof(T));
  });
  arenas_->touch();
}

std::vector<double> Trainee::read(const Tensor& tensor) const {
  return fetch(*device_, tensor.data, tensor.elems(), tensor.dtype);
}

std::vector<double> Trainee::read(const void* arena) const {
  return fetch(*device_, arena, arenas_->elems(), arenas_->dtype());
}

}  // namespace echelon::test

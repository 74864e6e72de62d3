// SPDX-License-Identifier: Apache-2.0
#include "data/collate.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "base/error.hpp"

#include "base/tensor_region.hpp"

namespace echelon::inline data {
namespace {

std::size_t bytes(std::int64_t elems, std::size_t size) { return static_cast<std::size_t>(elems) * size; }

constexpr int kBoxAxes = 3;

// Writes `count` values, and zeros up to `room`.
template <class S, class T>
void copy_padded(const S* src, std::int64_t count, T* dst, std::int64_t room) {
  std::copy(src, src + count, dst);
  std::fill(dst + count, dst + room, T{});
}

std::int64_t seen_elems(const Dataset& dataset) { return dataset.seen_shape().elems(); }

std::size_t sample_size(const Dataset& dataset, DType dtype) {
  return dataset.vocabulary.size() > 0 ? sizeof(std::int32_t) : size_of(dtype);
}

}  // namespace

// The system clears a huge page at once; 512 small ones take longer than a pass over them.
Aligned::Aligned(std::size_t bytes) {
  constexpr std::size_t kHugePage = 2 << 20, kMany = 4;
  const std::size_t unit = bytes >= kMany * kHugePage ? kHugePage : 64;
  const std::size_t all = (bytes + 64 + unit - 1) / unit * unit;
  data_.reset(std::aligned_alloc(unit, all));
  if (data_ == nullptr) throw std::bad_alloc();
  if (unit == kHugePage) static_cast<void>(::madvise(data_.get(), all, MADV_HUGEPAGE));
}

BatchMemory::BatchMemory(const Dataset& dataset, std::int64_t n, DType dtype)
    : samples(bytes(n * seen_elems(dataset), sample_size(dataset, dtype))),
      labels(bytes(n * dataset.form().label.elems(), std::max(sizeof(std::int32_t), size_of(dtype)))),
      weights(bytes(n * dataset.form().label.elems(), size_of(dtype))),
      lengths(bytes(n, sizeof(std::int32_t))),
      begins(bytes(n, 1)),
      target(bytes(n * dataset.target_length, sizeof(std::int32_t))),
      ids(bytes(n, sizeof(std::int32_t))),
      others(bytes(dataset.mixes ? n : 1, sizeof(std::int32_t))),
      other_weights(bytes(dataset.mixes ? n : 1, size_of(dtype))),
      weighed(static_cast<std::size_t>(n)),
      label_counts(dataset.label_weights.counts()) {}

Collator::Collator(const Dataset& dataset, DType dtype, const Augmentation& augmentation)
    : dataset_(dataset),
      dtype_(dtype),
      normalise_(dataset),
      pixels_(normalise_.pixels()),
      augment_(augmentation, dataset.view, {dataset.mean, dataset.std}),
      mixer_(augmentation.keys, augmentation.seed),
      mixes_(augmentation.keys.mixes()),
      still_(bytes(augment_.any() && !dataset.encoded ? dataset.sample_shape.elems() : 0, size_of(dtype))),
      whole_(bytes(dataset.kept.any() ? dataset.view.shape_of(dataset.sample_shape).elems() : 0, size_of(dtype))),
      other_(bytes(mixes_ ? seen_elems(dataset) : 0, size_of(dtype))) {
  if (dataset.kind != DataKind::pairs) return;
  start_ = dataset.target_vocabulary.find(kStartToken);
  end_ = dataset.target_vocabulary.find(kEndToken);
}

void Collator::begin(BatchMemory& memory, std::int64_t epoch, std::int64_t step, std::int64_t n,
                     std::int64_t bucket) const {
  const auto padded = [&](std::int64_t most) { return bucket > 0 ? std::min(bucket, most) : most; };
  std::fill(memory.label_counts.begin(), memory.label_counts.end(), 0.0);
  memory.batch = {.epoch = epoch,
                  .step = step,
                  .n = n,
                  .length = padded(dataset_.length()),
                  .target_length = padded(dataset_.target_length),
                  .samples = memory.samples.get(),
                  .labels = memory.labels.get(),
                  .weights = memory.weights.get(),
                  .others = mixes_ ? memory.others.get() : nullptr,
                  .other_weights = mixes_ ? memory.other_weights.get() : nullptr,
                  .lengths = dataset_.starts ? memory.lengths.as<std::int32_t>() : nullptr,
                  .begins = dataset_.series ? memory.begins.get() : nullptr,
                  .target = dataset_.target_starts ? memory.target.as<std::int32_t>() : nullptr,
                  .ids = memory.ids.as<std::int32_t>(),
                  .label_counts = dataset_.label_weights.any() ? memory.label_counts.data() : nullptr};
}

void Collator::put(BatchMemory& memory, std::int64_t row, const Record& record, const SampleSlot& slot) const {
  memory.ids.as<std::int32_t>()[row] = static_cast<std::int32_t>(static_cast<std::uint32_t>(slot.id));
  if (dataset_.series) memory.begins.get()[row] = dataset_.begins_series(slot.id) ? 1 : 0;
  if (dataset_.kind == DataKind::text) {
    const std::int64_t steps = memory.batch.length;
    const auto* tokens = reinterpret_cast<const std::int32_t*>(record.sample);
    std::copy(tokens, tokens + steps, memory.samples.as<std::int32_t>() + row * steps);
    std::copy(tokens + 1, tokens + 1 + steps, memory.labels.as<std::int32_t>() + row * steps);
  } else if (dataset_.kind == DataKind::pairs) {
    put_steps(memory, row, record);
    put_target(memory, row, record);
  } else {
    dataset_.has_numbers() ? put_numbers(memory, row, record) : put_classes(memory, row, record);
    if (!draws()) put_steps(memory, row, record);
  }
  const bool counts = slot.counts && dataset_.labelled;
  put_weights(memory, row, counts ? labels_of(memory, record) : 0, record.weight);
  if (record.labels != nullptr && dataset_.label_weights.any()) weigh_labels(memory, row, record, counts);
}

std::int64_t Collator::label_room(const BatchMemory& memory) const {
  if (dataset_.kind == DataKind::text) return memory.batch.length;
  if (dataset_.kind == DataKind::pairs) return memory.batch.target_length;
  return dataset_.label_shape.elems() * (dataset_.step_labels ? memory.batch.length : 1);
}

std::int64_t Collator::labels_of(const BatchMemory& memory, const Record& record) const {
  if (dataset_.kind == DataKind::pairs) return std::min(record.target_length + 1, memory.batch.target_length);
  if (!dataset_.step_labels) return label_room(memory);
  return dataset_.label_shape.elems() * std::min(record.length, memory.batch.length);
}

void Collator::put_classes(BatchMemory& memory, std::int64_t row, const Record& record) const {
  const std::int64_t all = label_room(memory);
  copy_padded(record.labels, record.labels == nullptr ? 0 : labels_of(memory, record),
              memory.labels.as<std::int32_t>() + row * all, all);
}

// Ignored labels become class 0 with weight 0, also those of a slot that does not count.
void Collator::weigh_labels(BatchMemory& memory, std::int64_t row, const Record& record, bool counts) const {
  const LabelWeights& by = dataset_.label_weights;
  auto* const labels = memory.labels.as<std::int32_t>() + row * label_room(memory);
  with_float(dtype_, [&]<class T>(T) {
    T* const weights = memory.weights.as<T>() + row * label_room(memory);
    for (std::int64_t i = 0; i < labels_of(memory, record); ++i) {
      const std::int32_t label = record.labels[i];
      if (by.ignores(label)) {
        labels[i] = 0, weights[i] = T{};
        memory.batch.weight -= counts ? 1 : 0;
        continue;
      }
      weights[i] = static_cast<T>(static_cast<double>(weights[i]) * by.of(label));
      memory.label_counts[by.count_of(label)] += counts ? 1 : 0;
    }
  });
}

void Collator::put_sample(const Record& record, std::int64_t epoch, std::int64_t id, void* dst) {
  const SlabRange& cut = dataset_.kept;
  if (!cut.any()) return put_whole(record, epoch, id, dst);
  put_whole(record, epoch, id, whole_.data());
  const Shape shape = dataset_.view.shape_of(dataset_.sample_shape);
  Shape offset = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) offset = offset.with(axis, axis == cut.axis ? cut.begin : 0);
  copy_from_whole({cut.shape_of(shape), shape, offset}, size_of(dtype_), whole_.data(), dst);
}

void Collator::put_whole(const Record& record, std::int64_t epoch, std::int64_t id, void* dst) {
  if (dataset_.encoded) {
    const std::string_view bytes(reinterpret_cast<const char*>(record.sample), static_cast<std::size_t>(record.length));
    try {
      return augment_.encoded(bytes, pixels_, dst, dataset_.sample_shape, dtype_, epoch, id);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: record {} {}", dataset_.shards[record.file].path, record.index, error.what()));
    }
  }
  normalise_(record.sample, augment_.any() ? still_.data() : dst, dtype_);
  if (augment_.any()) augment_(still_.data(), dst, dataset_.sample_shape, dtype_, epoch, id);
}

std::size_t Collator::stored_bytes(const Record& record) const {
  return dataset_.encoded ? static_cast<std::size_t>(record.length)
                          : bytes(dataset_.sample_shape.elems(), size_of(dataset_.stored));
}

std::uint8_t* Collator::place_of(BatchMemory& memory, std::int64_t row) const {
  if (!draws() || dataset_.encoded || dataset_.kept.any() || augment_.any() || dataset_.stored != dtype_)
    return nullptr;
  return memory.samples.get() + bytes(row * seen_elems(dataset_), size_of(dtype_));
}

void Collator::draw(BatchMemory& memory, std::int64_t row, const Record& record, const SampleSlot& slot) {
  put_sample(record, memory.batch.epoch, slot.id,
             memory.samples.get() + bytes(row * seen_elems(dataset_), size_of(dtype_)));
}

void Collator::mix_labels(BatchMemory& memory, std::int64_t row, const SampleSlot& slot, const Record& record) const {
  const Shape shape = dataset_.view.shape_of(dataset_.sample_shape);
  const Mixture mixture = mixer_.mixture(shape, memory.batch.epoch, slot.id);
  memory.others.as<std::int32_t>()[row] = *record.labels;
  with_float(dtype_, [&]<class T>(T) {
    const double weight = slot.counts ? 1 : 0;
    memory.weights.as<T>()[row] = static_cast<T>(weight * mixture.own);
    memory.other_weights.as<T>()[row] = static_cast<T>(weight * (1 - mixture.own));
  });
}

void Collator::mix(BatchMemory& memory, std::int64_t row, const SampleSlot& slot, const Record& record,
                   std::int64_t other) {
  const Shape shape = dataset_.seen_shape();
  Mixture mixture = mixer_.mixture(dataset_.view.shape_of(dataset_.sample_shape), memory.batch.epoch, slot.id);
  if (const SlabRange& cut = dataset_.kept; cut.any()) {
    const auto axis = static_cast<std::size_t>(kBoxAxes - shape.rank() + cut.axis);
    for (auto* end : {&mixture.box.begin, &mixture.box.end})
      (*end)[axis] = std::clamp<std::int64_t>((*end)[axis] - cut.begin, 0, cut.count());
  }
  put_sample(record, memory.batch.epoch, other, other_.data());
  SampleMixer::apply(mixture, memory.samples.get() + bytes(row * shape.elems(), size_of(dtype_)), other_.data(), shape,
                     dtype_);
}

void Collator::put_steps(BatchMemory& memory, std::int64_t row, const Record& record) const {
  const std::int64_t room = memory.batch.length, steps = std::min(record.length, room);
  memory.lengths.as<std::int32_t>()[row] = static_cast<std::int32_t>(steps);
  if (dataset_.vocabulary.size() > 0)
    return copy_padded(reinterpret_cast<const std::int32_t*>(record.sample), steps,
                       memory.samples.as<std::int32_t>() + row * room, room);
  const std::int64_t features = dataset_.sample_shape[1];
  std::uint8_t* dst = memory.samples.get() + bytes(row * room * features, size_of(dtype_));
  normalise_.rows(record.sample, steps, dst, dtype_);
  std::memset(dst + bytes(steps * features, size_of(dtype_)), 0, bytes((room - steps) * features, size_of(dtype_)));
}

// Decoder input: <s> w1 w2 ..; labels: w1 w2 .. </s>.
void Collator::put_target(BatchMemory& memory, std::int64_t row, const Record& record) const {
  const std::int64_t room = memory.batch.target_length, label_count = std::min(record.target_length + 1, room);
  std::int32_t* fed = memory.target.as<std::int32_t>() + row * room;
  std::int32_t* labels = memory.labels.as<std::int32_t>() + row * room;
  fed[0] = start_;
  copy_padded(record.target, label_count - 1, fed + 1, room - 1);
  copy_padded(record.target, std::min(record.target_length, label_count), labels, room);
  if (record.target_length < room) labels[record.target_length] = end_;
}

void Collator::put_numbers(BatchMemory& memory, std::int64_t row, const Record& record) const {
  const std::int64_t all = label_room(memory), count = record.numbers == nullptr ? 0 : labels_of(memory, record);
  with_float(dtype_, [&]<class T>(T) { copy_padded(record.numbers, count, memory.labels.as<T>() + row * all, all); });
}

void Collator::put_weights(BatchMemory& memory, std::int64_t row, std::int64_t counting, float weight) const {
  memory.batch.weight += static_cast<double>(counting);
  // Weights of each place are many, and mostly those that the batch before had here.
  const bool kept = draws() && !mixes_ && !dataset_.label_weights.any();
  BatchMemory::RowWeights& now = memory.weighed[static_cast<std::size_t>(row)];
  const BatchMemory::RowWeights wanted{counting, weight};
  if (kept && now == wanted) return;
  now = wanted;
  const std::int64_t all = label_room(memory);
  with_float(dtype_, [&]<class T>(T) {
    T* weights = memory.weights.as<T>() + row * all;
    std::fill(weights, weights + counting, static_cast<T>(weight));
    std::fill(weights + counting, weights + all, T{});
  });
}

}  // namespace echelon::inline data

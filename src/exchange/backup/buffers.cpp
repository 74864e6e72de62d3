// SPDX-License-Identifier: Apache-2.0
#include "exchange/backup/buffers.hpp"

#include <cstring>

#include "base/check.hpp"
#include "base/spans.hpp"

namespace echelon::inline exchange {

BackupBuffers::BackupBuffers(int rank, int workers, std::vector<ArenaRange> buckets, std::vector<Parts> parts,
                             Arenas& arenas, Optimiser& optimiser, Staging& gradients, Staging& weights)
    : rank_(rank),
      workers_(workers),
      buckets_(std::move(buckets)),
      parts_(std::move(parts)),
      arenas_(arenas),
      optimiser_(optimiser),
      gradients_(gradients),
      weights_(weights),
      newest_(buckets_.size()),
      kept_(buckets_.size()) {
  if (!serves()) return;
  // A paced device allows updates by one thread only, and would delay them.
  if (!arenas.device().on_host() || !arenas.device().computes()) host_ = open_device("reference", {});
  Device& device = host_ ? *host_ : arenas.device();
  served_.emplace(device, arenas.parameters(), arenas.dtype());
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b)
    for (int w = 0; w < workers; ++w)
      if (w != rank && bytes_of(b, rank) > 0)
        rooms_[{b, w}] = device.allocate(bytes_of(b, rank), "gradients at a server");
}

bool BackupBuffers::serves() const {
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b)
    if (bytes_of(b, rank_) > 0) return true;
  return false;
}

ArenaRange BackupBuffers::range_at(int b, int server) const {
  const std::int64_t begin = buckets_[static_cast<std::size_t>(b)].begin;
  const ElemRange part = parts_[static_cast<std::size_t>(b)].at(static_cast<std::size_t>(server));
  return {begin + part.begin, begin + part.end};
}

std::size_t BackupBuffers::bytes_of(int b, int server) const {
  return static_cast<std::size_t>(range_at(b, server).elems()) * size_of(arenas_.dtype());
}

void BackupBuffers::begin() {
  if (const auto fetched = weights_.fetch({0, arenas_.elems()})) fetched->wait();
  if (!served_) return;
  steps_.emplace(optimiser_, *served_);
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b)
    std::memcpy(served_->weights_at(range_at(b, rank_).begin), weights_.at(range_at(b, rank_).begin),
                bytes_of(b, rank_));
  copy_states(true);
}

void BackupBuffers::store_states() { copy_states(false); }

void BackupBuffers::store_weights() {
  if (rank_ < workers_ || !served_) return;
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
    take_own(b);
    weights_.store(range_at(b, rank_));
  }
}

void BackupBuffers::keep_weights() {
  const auto* weights = static_cast<const std::byte*>(weights_.at(0));
  before_.assign(weights, weights + static_cast<std::size_t>(arenas_.elems()) * size_of(arenas_.dtype()));
}

void BackupBuffers::take_back_weights() {
  arenas_.device().to_device(arenas_.weights_at(0), before_.data(), before_.size());
}

void BackupBuffers::copy_states(bool to_server) {
  if (!served_ || arenas_.device().on_host()) return;  // a host device has only one copy of them
  for (int s = 0; s < optimiser_.states(); ++s)
    for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
      const std::size_t begin = static_cast<std::size_t>(range_at(b, rank_).begin) * size_of(arenas_.dtype());
      std::byte* on_device = static_cast<std::byte*>(optimiser_.state(s)) + begin;
      std::byte* on_host = static_cast<std::byte*>(steps_->state(s)) + begin;
      if (to_server)
        arenas_.device().to_host(on_host, on_device, bytes_of(b, rank_));
      else
        arenas_.device().to_device(on_device, on_host, bytes_of(b, rank_));
    }
}

BackupMemory::Bytes BackupBuffers::push_room(int b, int worker) {
  const Memory& room = rooms_.at({b, worker});
  return {room.data(), room.bytes()};
}

const void* BackupBuffers::pushed(int b, int worker) const {
  return worker == rank_ ? gradients_.at(range_at(b, rank_).begin) : rooms_.at({b, worker}).data();
}

void BackupBuffers::take_step(int b, const BackupCommand& command) {
  const SpanScope span(SpanKind::serve);
  const ArenaRange own = range_at(b, rank_);
  const auto n = static_cast<std::size_t>(own.elems());
  const DType dtype = arenas_.dtype();
  VectorOps& ops = host_vector_ops();
  void* sum = served_->gradients_at(own.begin);
  ops.copy(dtype, sum, pushed(b, command.entered.front()), n);
  for (std::size_t i = 1; i < command.entered.size(); ++i) ops.add(dtype, sum, pushed(b, command.entered[i]), n);
  if (command.factor != 1) ops.scale(dtype, sum, command.factor, n);
  if (step_ != command.step) steps_->begin_step(command.step, command.learning_rate);
  step_ = command.step;
  steps_->apply(own);
  newest_[static_cast<std::size_t>(b)] = nullptr;
}

// Reuses the memory of a message that nobody holds any more.
BackupMemory::Message BackupBuffers::weights(int b) {
  Message& newest = newest_[static_cast<std::size_t>(b)];
  if (newest) return newest;
  std::vector<Message>& kept = kept_[static_cast<std::size_t>(b)];
  for (const Message& message : kept)
    if (message.use_count() == 1) newest = message;
  if (!newest) newest = kept.emplace_back(std::make_shared<std::vector<std::byte>>(bytes_of(b, rank_)));
  std::memcpy(newest->data(), served_->weights_at(range_at(b, rank_).begin), newest->size());
  return newest;
}

void BackupBuffers::take_own(int b) {
  std::memcpy(weights_.at(range_at(b, rank_).begin), served_->weights_at(range_at(b, rank_).begin), bytes_of(b, rank_));
}

}  // namespace echelon::inline exchange

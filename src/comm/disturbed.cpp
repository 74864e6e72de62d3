// SPDX-License-Identifier: Apache-2.0
#include "comm/disturbed.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "comm/wrapped_transport.hpp"

namespace echelon::inline comm {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class DisturbedTransport final : public WrappedTransport {
 public:
  DisturbedTransport(std::unique_ptr<Transport> inner, Disturbance disturbance)
      : WrappedTransport(std::move(inner)),
        disturbance_(std::move(disturbance)),
        random_(HashRng(disturbance_.seed, "disturbed").at(static_cast<std::uint64_t>(rank()))) {}

  std::string name() const override { return inner().name() + ", disturbed"; }

  double wakes_at_s() const override {
    double first = inner().wakes_at_s();
    for (const auto& [channel, queue] : held_) first = std::min(first, queue.front().go_s);
    const double now = clock().now_s();
    if (now < disturbance_.stop_at_s) return first;
    const double over_s = disturbance_.stop_at_s + disturbance_.stop_for_s;
    return now < over_s ? over_s : first;
  }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    const double now = clock().now_s();
    const std::int64_t id = next_id_++;
    MessageFaults::Fate fate;
    if (disturbance_.faults != nullptr) fate = disturbance_.faults->fate_of(peer, tag, bytes);
    if (fate.lost || (disturbance_.drop > 0 && random_.at(1).uniform(draws_++) < disturbance_.drop)) {
      ops_[id] = {.lost = true, .peer = peer, .bytes = bytes};
      return {id};
    }
    double go_s = now + fate.delay_s;
    if (disturbance_.delay_s > 0) go_s -= disturbance_.delay_s * std::log1p(-random_.at(2).uniform(draws_++));
    Op& op = ops_[id] = {.held = true, .peer = peer, .bytes = bytes};
    if (fate.flipped_bit >= 0 && bytes > 0) {
      const auto* from = static_cast<const std::byte*>(data);
      op.damaged.assign(from, from + bytes);
      op.damaged[static_cast<std::size_t>(fate.flipped_bit) / 8 % bytes] ^= std::byte{1} << (fate.flipped_bit % 8);
      data = op.damaged.data();
    }
    held_[{peer, tag}].push_back({id, peer, tag, data, bytes, go_s});
    send_due();
    return {id};
  }

  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    const std::int64_t id = next_id_++;
    ops_[id] = {.inner = inner().irecv(peer, tag, data, bytes), .peer = peer, .bytes = bytes};
    return {id};
  }

  std::optional<Completion> test(Request& request) override {
    send_due();
    if (stopped()) return std::nullopt;
    Op& op = ops_.at(request.id);
    std::optional<Completion> completion;
    if (op.lost)
      completion = Completion{op.peer, op.bytes};
    else if (!op.held && !cut_off() && !(cut(op.peer) && op.peer != kAnySource))
      completion = inner().test(op.inner);
    if (!completion) return std::nullopt;
    ops_.erase(request.id);
    request.id = -1;
    return completion;
  }

  void cancel(Request& request) override {
    Op& op = ops_.at(request.id);
    if (op.held)
      for (auto& [channel, queue] : held_) std::erase_if(queue, [&](const Held& h) { return h.id == request.id; });
    std::erase_if(held_, [](const auto& entry) { return entry.second.empty(); });
    if (op.inner.valid()) inner().cancel(op.inner);
    ops_.erase(request.id);
    request.id = -1;
  }

  Request iallreduce(void* data, std::size_t elems, DType dtype) override {
    const std::int64_t id = next_id_++;
    ops_[id] = {.inner = inner().iallreduce(data, elems, dtype)};
    return {id};
  }
  std::unique_ptr<Transport> split(int color, int key) override {
    return make_disturbed(inner().split(color, key), disturbance_);
  }
  SharedChannel* shared_channel(int tag, int& missing) override {
    return stopped() || cut_off() ? nullptr : inner().shared_channel(tag, missing);
  }

 private:
  struct Op {
    Request inner = {};
    bool held = false, lost = false;
    int peer = -1;
    std::size_t bytes = 0;
    std::vector<std::byte> damaged = {};  // sent instead of the caller's data
  };
  struct Held {
    std::int64_t id;
    int peer, tag;
    const void* data;
    std::size_t bytes;
    double go_s;
  };

  bool stopped() const {
    const double now = clock().now_s();
    return now >= disturbance_.stop_at_s && now < disturbance_.stop_at_s + disturbance_.stop_for_s;
  }
  bool cut_off() const { return disturbance_.faults != nullptr && disturbance_.faults->is_cut(); }
  bool cut(int peer) const { return clock().now_s() >= disturbance_.cut_at_s && disturbance_.cut_from.contains(peer); }

  // Sends the messages whose delay has passed; none while the rank is stopped.
  void send_due() {
    if (held_.empty() || stopped()) return;
    const double now = clock().now_s();
    for (auto it = held_.begin(); it != held_.end();) {
      std::deque<Held>& queue = it->second;
      for (; !queue.empty() && queue.front().go_s <= now; queue.pop_front()) {
        Held& next = queue.front();
        if (cut_off() || cut(next.peer)) {
          next.go_s = kNever;
          break;
        }
        Op& op = ops_.at(next.id);
        op.held = false;
        op.inner = inner().isend(next.peer, next.tag, next.data, next.bytes);
      }
      it = queue.empty() ? held_.erase(it) : std::next(it);
    }
  }

  Disturbance disturbance_;
  HashRng random_;
  std::uint64_t draws_ = 0;
  std::int64_t next_id_ = 0;
  std::map<std::int64_t, Op> ops_;
  std::map<std::pair<int, int>, std::deque<Held>> held_;  // sends, by (peer, tag)
};

}  // namespace

std::unique_ptr<Transport> make_disturbed(std::unique_ptr<Transport> inner, Disturbance disturbance) {
  return std::make_unique<DisturbedTransport>(std::move(inner), std::move(disturbance));
}

}  // namespace echelon::inline comm

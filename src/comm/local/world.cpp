// SPDX-License-Identifier: Apache-2.0
#include "comm/local/world.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/numbered.hpp"
#include "comm/host_groups.hpp"
#include "comm/local/local.hpp"
#include "comm/mapped_block.hpp"
#include "comm/shared_channel.hpp"

namespace echelon::inline comm {
namespace {

template <class T>
void sum_in_rank_order(const std::vector<LocalOp*>& ops, std::size_t elems) {
  std::vector<T> sum(elems);
  for (const LocalOp* op : ops)
    for (std::size_t i = 0; i < elems; ++i) sum[i] += static_cast<const T*>(op->dst)[i];
  if (elems > 0)
    for (LocalOp* op : ops) std::memcpy(op->dst, sum.data(), elems * sizeof(T));
}

// Heap memory, which threads share anyway.
class HeapBlock final : public SharedBlock {
 public:
  HeapBlock(const std::vector<std::size_t>& bytes, std::shared_ptr<WorldEnd> end) : end_(std::move(end)) {
    for (const std::size_t part : bytes) parts_.emplace_back(part / sizeof(Line) + 1);
  }
  std::byte* of(int rank) const override {
    return reinterpret_cast<std::byte*>(parts_[static_cast<std::size_t>(rank)].data());
  }
  void check() const override { end_->check(); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  mutable std::vector<std::vector<Line>> parts_;
  std::shared_ptr<WorldEnd> end_;
};

}  // namespace

LocalWorld::LocalWorld(int ranks, const std::vector<int>& hosts, std::shared_ptr<WorldEnd> end)
    : boxes_(static_cast<std::size_t>(ranks)), end_(std::move(end)) {
  ECHELON_CHECK_GE(ranks, 1);
  hosts_ = hosts.empty() ? std::vector<int>(static_cast<std::size_t>(ranks), 0) : numbered(hosts);
  ECHELON_CHECK_EQ(static_cast<int>(hosts_.size()), ranks, "one host index for each rank");
  for (int i = 0; i <= *std::max_element(hosts_.begin(), hosts_.end()); ++i)
    host_names_.push_back("local" + std::to_string(i));
  machines_ = hosts_;
}

LocalWorld::LocalWorld(const std::vector<int>& hosts, const LocalWorld& whole)
    : boxes_(hosts.size()),
      hosts_(numbered(hosts)),
      machines_(whole.machines_),
      host_names_(names_of_groups(hosts_, machines_, whole.host_names_)),
      end_(whole.end_) {}

void LocalWorld::deliver(LocalOp& from, LocalOp& to) {
  const bool fits = from.bytes <= to.bytes;
  const std::size_t bytes = std::min(from.bytes, to.bytes);
  if (bytes > 0) std::memcpy(to.dst, from.src, bytes);
  to.peer = from.owner;
  to.bytes = from.bytes;
  to.state.store(fits ? OpState::done : OpState::truncated, std::memory_order_release);
  from.state.store(OpState::done, std::memory_order_release);
}

void LocalWorld::send(LocalOp& op) {
  Mailbox& box = boxes_[static_cast<std::size_t>(op.box)];
  const std::lock_guard lock(box.mutex);
  Queue& queue = box.by_tag[op.tag];
  for (auto it = queue.receives.begin(); it != queue.receives.end(); ++it)
    if ((*it)->peer == kAnySource || (*it)->peer == op.owner) {
      LocalOp& receive = **it;
      queue.receives.erase(it);
      return deliver(op, receive);
    }
  queue.sends.push_back(&op);
}

void LocalWorld::receive(LocalOp& op) {
  Mailbox& box = boxes_[static_cast<std::size_t>(op.box)];
  const std::lock_guard lock(box.mutex);
  Queue& queue = box.by_tag[op.tag];
  for (auto it = queue.sends.begin(); it != queue.sends.end(); ++it)
    if (op.peer == kAnySource || op.peer == (*it)->owner) {
      LocalOp& send = **it;
      queue.sends.erase(it);
      return deliver(send, op);
    }
  queue.receives.push_back(&op);
}

void LocalWorld::reduce(LocalOp& op, std::int64_t call, std::size_t elems, DType dtype) {
  const std::lock_guard lock(mutex_);
  Reduction& reduction = reductions_[call];
  const auto ranks_here = static_cast<std::size_t>(ranks());
  reduction.ops.resize(ranks_here);
  reduction.elems.resize(ranks_here);
  reduction.dtypes.resize(ranks_here);
  const auto rank = static_cast<std::size_t>(op.owner);
  reduction.ops[rank] = &op;
  reduction.elems[rank] = elems;
  reduction.dtypes[rank] = dtype;
  if (++reduction.arrived == ranks()) {
    finish(reduction);
    reductions_.erase(call);
  }
}

void LocalWorld::finish(Reduction& reduction) {
  bool alike = true;
  for (std::size_t r = 0; r < reduction.ops.size(); ++r)
    alike &= reduction.ops[r] != nullptr && reduction.elems[r] == reduction.elems[0] &&
             reduction.dtypes[r] == reduction.dtypes[0];
  if (alike)
    with_float(reduction.dtypes[0],
               [&](auto zero) { sum_in_rank_order<decltype(zero)>(reduction.ops, reduction.elems[0]); });
  for (LocalOp* op : reduction.ops)
    if (op) op->state.store(alike ? OpState::done : OpState::mismatched, std::memory_order_release);
}

void LocalWorld::withdraw(LocalOp& op) {
  if (op.library) {
    const std::lock_guard lock(mutex_);
    for (auto& [call, reduction] : reductions_)
      for (LocalOp*& entry : reduction.ops)
        if (entry == &op) entry = nullptr;
    return;
  }
  Mailbox& box = boxes_[static_cast<std::size_t>(op.box)];
  const std::lock_guard lock(box.mutex);
  Queue& queue = box.by_tag[op.tag];
  std::erase(op.sending ? queue.sends : queue.receives, &op);
}

std::unique_ptr<Transport> LocalWorld::split(int rank, std::int64_t call, int color, int key,
                                             const std::vector<int>& hosts) {
  std::unique_lock lock(mutex_);
  Split& split = splits_[call];
  const auto ranks_here = static_cast<std::size_t>(ranks());
  split.colours_and_keys.resize(ranks_here);
  split.parts.resize(ranks_here);
  split.colours_and_keys[static_cast<std::size_t>(rank)] = {color, key};
  split.hosts = hosts;
  if (++split.arrived == ranks()) {
    divide(split);
    split_done_.notify_all();
  }
  while (split.arrived < ranks()) {
    split_done_.wait_for(lock, std::chrono::milliseconds(20));
    end_->check();
  }
  std::unique_ptr<Transport> part = std::move(split.parts[static_cast<std::size_t>(rank)]);
  if (++split.taken == ranks()) splits_.erase(call);
  return part;
}

std::shared_ptr<SharedBlock> LocalWorld::share(int rank, std::int64_t call, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  if (host_names_.size() > 1) return nullptr;
  SharedAllocation& allocation = allocations_[call];
  allocation.bytes.resize(static_cast<std::size_t>(ranks()));
  allocation.bytes[static_cast<std::size_t>(rank)] = bytes;
  if (++allocation.arrived == ranks()) {
    allocation.block = std::make_shared<HeapBlock>(allocation.bytes, end_);
    split_done_.notify_all();
  }
  while (!allocation.block) {
    split_done_.wait_for(lock, std::chrono::milliseconds(20));
    end_->check();
  }
  std::shared_ptr<SharedBlock> block = allocation.block;
  if (++allocation.taken == ranks()) allocations_.erase(call);
  return block;
}

std::shared_ptr<SharedBlock> LocalWorld::channel_block(int tag) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBlock>& block = channels_[tag];
  if (!block) block = std::make_shared<MappedBlock>(-1, SharedChannel::bytes(), ranks());
  return block;
}

void LocalWorld::divide(Split& split) {
  std::map<int, std::vector<int>> members_by_color;
  for (int r = 0; r < ranks(); ++r)
    members_by_color[split.colours_and_keys[static_cast<std::size_t>(r)].first].push_back(r);
  for (auto& [color, members] : members_by_color) {
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return split.colours_and_keys[static_cast<std::size_t>(a)].second <
             split.colours_and_keys[static_cast<std::size_t>(b)].second;
    });
    std::vector<int> hosts, machines;
    for (int r : members) {
      hosts.push_back(hosts_[static_cast<std::size_t>(r)]);
      machines.push_back(machines_[static_cast<std::size_t>(r)]);
    }
    const auto world = split.hosts.empty() ? std::make_shared<LocalWorld>(static_cast<int>(members.size()), hosts, end_)
                                           : std::make_shared<LocalWorld>(split.hosts, *this);
    if (split.hosts.empty()) world->machines_ = numbered(machines);
    for (std::size_t i = 0; i < members.size(); ++i)
      split.parts[static_cast<std::size_t>(members[i])] = local_transport(world, static_cast<int>(i));
  }
}

void LocalWorld::end(const std::string& why) {
  const std::lock_guard lock(end_->mutex);
  if (end_->ended) return;
  end_->why = why;
  end_->ended = true;
}

void WorldEnd::check() const {
  if (!ended.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex);
  throw EnvironmentError(why);
}

}  // namespace echelon::inline comm

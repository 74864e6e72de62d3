// SPDX-License-Identifier: Apache-2.0
#include "comm/virtual/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "base/error.hpp"

namespace echelon::inline comm {

double VirtualActor::wakes_at_s() const { return std::numeric_limits<double>::infinity(); }

VirtualWorld::VirtualWorld(int ranks, VirtualNetwork network)
    : network_(std::move(network)), hosts_(network_.hosts), states_(static_cast<std::size_t>(ranks)) {
  ECHELON_CHECK_GE(ranks, 1);
  if (hosts_.empty()) {
    hosts_.resize(states_.size());
    std::iota(hosts_.begin(), hosts_.end(), 0);
  }
  ECHELON_CHECK_EQ(static_cast<int>(hosts_.size()), ranks, "one host index for each rank");
  const auto hosts = static_cast<std::size_t>(*std::max_element(hosts_.begin(), hosts_.end()) + 1);
  for (std::size_t i = 0; i < hosts; ++i) host_names_.push_back(fmt::format("virtual{}", i));
  out_free_s_.resize(hosts);
  in_free_s_.resize(hosts);
}

VirtualWorld::~VirtualWorld() = default;

std::vector<int> VirtualWorld::peers_touched() const {
  std::vector<int> peers(states_.size());
  for (const auto& [link, last_s] : last_arrival_s_) {
    const auto& [from, to] = link;
    if (from > to && last_arrival_s_.contains({to, from})) continue;  // already counted
    ++peers[static_cast<std::size_t>(from)];
    ++peers[static_cast<std::size_t>(to)];
  }
  return peers;
}

Request VirtualWorld::new_op(int rank, bool sending, int peer, int tag, void* dst, std::size_t bytes) {
  RankState& own = state_of(rank);
  if (own.free.empty()) {
    own.free.push_back(static_cast<std::int64_t>(own.ops.size()));
    own.ops.emplace_back();
  }
  const std::int64_t id = own.free.back();
  own.free.pop_back();
  Op& op = own.ops[static_cast<std::size_t>(id)];
  op = {.state = OpState::pending,
        .sending = sending,
        .peer = peer,
        .tag = tag,
        .dst = dst,
        .bytes = bytes,
        .use = op.use + 1};
  return {id};
}

void VirtualWorld::release(int rank, Request& request) {
  state_of(rank).ops[static_cast<std::size_t>(request.id)].state = OpState::free;
  state_of(rank).free.push_back(request.id);
  request.id = -1;
}

void VirtualWorld::at(double at_s, What what, int rank, std::int64_t id, std::uint64_t use) {
  queue_.push({at_s, order_++, what, rank, id, use});
}

double VirtualWorld::wire_s(int from, int to, std::size_t bytes) const {
  const VirtualLink& link = host(from) == host(to) ? network_.inside_host : network_.between_hosts;
  return bytes > 0 ? static_cast<double>(bytes) / link.bytes_per_s + link.overhead_s : 0;
}

double VirtualWorld::queue_at_card(int from, int to, std::size_t bytes) {
  if (host(from) == host(to)) return clock_.time_s;
  double& free_s = out_free_s_[static_cast<std::size_t>(host(from))];
  const double start_s = std::max(clock_.time_s, free_s);
  free_s = start_s + wire_s(from, to, bytes);
  return start_s;
}

// The message is on its way from now on. Requests of a rendezvous have no bytes.
void VirtualWorld::leave(std::int64_t id) {
  const auto found = messages_.find(id);
  if (found == messages_.end()) return;  // abandoned meanwhile
  const Message& message = found->second;
  const int from = message.from, to = message.to;
  const bool request = message.rendezvous && message.receive_op < 0, inside = host(from) == host(to);
  const VirtualLink& link = inside ? network_.inside_host : network_.between_hosts;
  double latency_s = link.latency_s;
  if (link.jitter > 0) latency_s *= 1 - link.jitter * std::log1p(-HashRng(network_.seed, "jitter").uniform(draws_++));
  double unused = 0;
  double& in_s = inside ? unused : in_free_s_[static_cast<std::size_t>(host(to))];
  double& last_s = last_arrival_s_[{from, to}];
  const double first_byte_s = std::max(clock_.time_s + latency_s, inside ? 0 : in_s);
  const double there_s = std::max(first_byte_s + wire_s(from, to, request ? 0 : message.data.size()), last_s);
  in_s = last_s = there_s;
  if (message.receive_op < 0) return at(there_s, What::arrival, to, id);
  at(there_s, What::sent, from, message.send_op, message.send_use);
  at(there_s, What::received, to, message.receive_op, message.receive_use);
}

Request VirtualWorld::send(int rank, int peer, int tag, const void* data, std::size_t bytes) {
  const Request request = new_op(rank, true, peer, tag, nullptr, bytes);
  Message message;
  message.from = rank, message.to = peer, message.tag = tag;
  message.data.resize(bytes);
  if (bytes > 0) std::memcpy(message.data.data(), data, bytes);
  message.send_op = request.id;
  message.send_use = state_of(rank).ops[static_cast<std::size_t>(request.id)].use;
  message.rendezvous = bytes > network_.eager_bytes;
  const double start_s = queue_at_card(rank, peer, message.rendezvous ? 0 : bytes);
  if (!message.rendezvous) at(start_s + wire_s(rank, peer, bytes), What::sent, rank, request.id, message.send_use);
  at(start_s, What::leaves, peer, next_message_);
  messages_.emplace(next_message_++, std::move(message));
  ++state_of(rank).counters.messages_sent;
  state_of(rank).counters.bytes_sent += bytes;
  return request;
}

Request VirtualWorld::receive(int rank, int peer, int tag, void* data, std::size_t room) {
  const Request request = new_op(rank, false, peer, tag, data, room);
  RankState& own = state_of(rank);
  for (auto it = own.unexpected.begin(); it != own.unexpected.end(); ++it) {
    const Message& message = messages_.at(*it);
    if (message.tag != tag || (peer != kAnySource && message.from != peer)) continue;
    const std::int64_t id = *it;
    own.unexpected.erase(it);
    match(rank, request.id, id);
    return request;
  }
  own.receives.push_back(request.id);
  return request;
}

void VirtualWorld::match(int rank, std::int64_t id, std::int64_t message_id) {
  Op& op = state_of(rank).ops[static_cast<std::size_t>(id)];
  Message& message = messages_.at(message_id);
  op.message = message_id;
  if (!message.rendezvous) return at(clock_.time_s, What::received, rank, id, op.use);
  message.receive_op = id, message.receive_use = op.use;
  at(queue_at_card(message.from, rank, message.data.size()), What::leaves, rank, message_id);
}

void VirtualWorld::cancel(int rank, Request& request) {
  std::erase(state_of(rank).receives, request.id);
  const Op& op = state_of(rank).ops[static_cast<std::size_t>(request.id)];
  if (!op.sending && op.message >= 0) {
    const Message& message = messages_.at(op.message);
    if (message.rendezvous) at(clock_.time_s, What::sent, message.from, message.send_op, message.send_use);
    messages_.erase(op.message);
  }
  release(rank, request);
}

void VirtualWorld::happen(const VirtualEvent& event) {
  if (event.what == What::leaves) return leave(event.id);
  RankState& own = state_of(event.rank);
  if (event.what == What::arrival) {
    const Message& message = messages_.at(event.id);
    const auto waits = [&](std::int64_t id) {
      const Op& op = own.ops[static_cast<std::size_t>(id)];
      return op.tag == message.tag && (op.peer == kAnySource || op.peer == message.from);
    };
    const auto it = std::find_if(own.receives.begin(), own.receives.end(), waits);
    if (it == own.receives.end()) {
      own.unexpected.push_back(event.id);
      return;
    }
    const std::int64_t op = *it;
    own.receives.erase(it);
    match(event.rank, op, event.id);
    return;
  }
  make_runnable(event.rank);
  if (event.what == What::wake) return;
  Op& op = own.ops[static_cast<std::size_t>(event.id)];
  if (op.use != event.use || op.state != OpState::pending) return;  // abandoned meanwhile
  op.state = OpState::done;
  if (event.what == What::sent) return;
  Message& message = messages_.at(op.message);
  if (message.data.size() > op.bytes)
    throw EnvironmentError(
        fmt::format("rank {}: a message of {} bytes from rank {} with tag {} does not fit its receive", event.rank,
                    message.data.size(), message.from, message.tag));
  if (!message.data.empty()) std::memcpy(op.dst, message.data.data(), message.data.size());
  op.bytes = message.data.size();
  op.peer = message.from;
  ++own.counters.messages_received;
  own.counters.bytes_received += op.bytes;
  messages_.erase(op.message);
}

void VirtualWorld::make_runnable(int rank) {
  if (state_of(rank).runnable) return;
  state_of(rank).runnable = true;
  ready_.push_back(rank);
}

// Runs the ready ranks in an order drawn from the seed, until no rank makes progress at this time.
void VirtualWorld::run_ready(const std::vector<VirtualActor*>& actors) {
  while (!ready_.empty()) {
    const auto pick = static_cast<std::size_t>(HashRng(network_.seed, "order").below(draws_++, ready_.size()));
    const int rank = ready_[pick];
    ready_[pick] = ready_.back();
    ready_.pop_back();
    state_of(rank).runnable = false;
    VirtualActor* actor = actors[static_cast<std::size_t>(rank)];
    if (!actor) continue;
    if (actor->pass()) make_runnable(rank);
    const double wake_s = actor->wakes_at_s();
    if (std::isinf(wake_s) || wake_s == state_of(rank).armed_s) continue;
    state_of(rank).armed_s = wake_s;
    at(std::max(wake_s, clock_.time_s), What::wake, rank, 0);
  }
}

void VirtualWorld::run(const std::vector<VirtualActor*>& actors, double limit_s) {
  ECHELON_CHECK_EQ(actors.size(), states_.size(), "one actor for each rank");
  // An actor that was not done when last checked: it is checked first, because it is usually still not done.
  std::size_t witness = 0;
  const auto all_done = [&] {
    const auto over = [&](std::size_t rank) { return !actors[rank] || actors[rank]->done(); };
    for (std::size_t looked_at = 0; looked_at < actors.size(); ++looked_at, witness = (witness + 1) % actors.size())
      if (!over(witness)) return false;
    return true;
  };
  for (int rank = 0; rank < ranks(); ++rank) make_runnable(rank);
  for (;;) {
    run_ready(actors);
    if (all_done()) return;
    if (queue_.empty()) stuck(actors, "nothing is under way");
    const double next_s = queue_.top().at_s;
    if (next_s > limit_s) stuck(actors, fmt::format("the limit of {} s of virtual time has passed", limit_s));
    clock_.time_s = std::max(clock_.time_s, next_s);
    while (!queue_.empty() && queue_.top().at_s <= clock_.time_s) {
      const VirtualEvent event = queue_.top();
      queue_.pop();
      happen(event);
    }
  }
}

void VirtualWorld::stuck(const std::vector<VirtualActor*>& actors, const std::string& why) const {
  std::string text = fmt::format("virtual time {:.6f} s: {}; not done:", clock_.time_s, why);
  for (std::size_t rank = 0; rank < actors.size(); ++rank) {
    if (!actors[rank] || actors[rank]->done()) continue;
    text += fmt::format(" rank {} (", rank);
    for (const std::int64_t id : states_[rank].receives) {
      const Op& op = states_[rank].ops[static_cast<std::size_t>(id)];
      text += op.peer == kAnySource ? fmt::format("receives from any rank, tag {};", op.tag)
                                    : fmt::format("receives from rank {}, tag {};", op.peer, op.tag);
    }
    text += ")";
  }
  throw EnvironmentError(text);
}

}  // namespace echelon::inline comm

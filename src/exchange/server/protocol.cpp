// SPDX-License-Identifier: Apache-2.0
#include "exchange/server/protocol.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline exchange {

ServerProtocol::ServerProtocol(int rank, int ranks, int workers, const std::vector<ServerBucket>& buckets,
                               ServerMemory& memory)
    : rank_(rank), ranks_(ranks), workers_(workers), memory_(memory) {
  for (const ServerBucket& with : buckets) {
    ECHELON_CHECK_EQ(static_cast<int>(with.parts.size()), ranks, "a part for each rank");
    Bucket bucket;
    bucket.parts = with.parts;
    bucket.tag = with.tag;
    bucket.priority = with.priority;
    for (int d = 1; d < ranks; ++d)
      if (const int from = (rank - d + ranks) % ranks; works(from)) bucket.pushers.push_back({.rank = from});
    buckets_.push_back(std::move(bucket));
  }
}

Token ServerProtocol::pack(const Key& key) {
  return static_cast<Token>(key.use) | static_cast<Token>(key.bucket) << 2 | static_cast<Token>(key.peer) << 18 |
         static_cast<Token>(key.piece) << 36;
}

ServerProtocol::Key ServerProtocol::unpack(Token token) {
  return {.use = static_cast<Use>(token & 3),
          .bucket = static_cast<int>(token >> 2 & 0xffff),
          .peer = static_cast<int>(token >> 18 & 0x3ffff),
          .piece = static_cast<std::int64_t>(token >> 36)};
}

std::int64_t ServerProtocol::pieces(const Bucket& bucket, int rank) const {
  const std::int64_t elems = bucket.parts[static_cast<std::size_t>(rank)].elems();
  return elems <= 0 ? 0 : (elems - 1) / bucket.piece_elems + 1;
}

ElemRange ServerProtocol::piece(const Bucket& bucket, int rank, std::int64_t index) const {
  const ElemRange part = bucket.parts[static_cast<std::size_t>(rank)];
  const std::int64_t begin = part.begin + index * bucket.piece_elems;
  return {begin, begin + std::min(bucket.piece_elems, part.end - begin)};
}

void ServerProtocol::on(const ProtocolEvent& event, ProtocolActions& actions) {
  switch (event.kind) {
    case ProtocolEvent::Kind::posted: {
      const int b = bucket_of(event.token);
      if (word_of(event.token) == Word::gradient) begin_push(b, event.now_s, actions);
      if (word_of(event.token) == Word::updated) begin_pull(b, event.now_s, actions);
      break;
    }
    case ProtocolEvent::Kind::sent: {
      const Key key = unpack(event.token);
      --buckets_[static_cast<std::size_t>(key.bucket)].to_send;
      key.use == Use::pushed ? notify_if_reduced(key.bucket, actions) : notify_if_settled(key.bucket, actions);
      break;
    }
    case ProtocolEvent::Kind::received: {
      const Key key = unpack(event.token);
      if (key.use == Use::push_came) {
        push_came(key, event.bytes, actions);
        break;
      }
      Bucket& bucket = buckets_[static_cast<std::size_t>(key.bucket)];
      memory_.take(key.bucket, key.peer, piece(bucket, key.peer, key.piece), event.bytes);
      if (key.piece + 1 == pieces(bucket, key.peer)) actions.wait_over(pack({Use::pull_came, key.bucket, key.peer, 0}));
      --bucket.to_take;
      notify_if_settled(key.bucket, actions);
      break;
    }
    case ProtocolEvent::Kind::started:
    case ProtocolEvent::Kind::timer: break;
  }
}

void ServerProtocol::send(int b, Use use, int to, const ServerMemory::Bytes& message, ProtocolActions& actions) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
  ++bucket.to_send;
  ++bucket.sent.messages_sent;
  bucket.sent.bytes_sent += message.bytes;
  if (use == Use::pulled) bucket.sent.answered_bytes += message.bytes;
  actions.send(pack({use, b, to, 0}), to, bucket.tag + (use == Use::pulled ? 1 : 0), message.data, message.bytes,
               bucket.priority);
}

// In round d every rank sends to rank + d and receives from rank - d (modulo ranks), so that all servers are busy at
// once.
void ServerProtocol::begin_push(int b, double now_s, ProtocolActions& actions) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
  ECHELON_CHECK(!bucket.open && !bucket.pulling, "bucket {} was pushed before its last step was settled", b);
  bucket.open = true;
  bucket.begun_s = now_s;
  bucket.piece_elems = std::max<std::int64_t>(1, memory_.piece_elems(b));
  const std::int64_t own = pieces(bucket, rank_);
  bucket.next.assign(static_cast<std::size_t>(own), 0);
  bucket.to_add = own * static_cast<std::int64_t>(bucket.pushers.size());
  for (std::size_t p = 0; p < bucket.pushers.size() && own > 0; ++p) {
    Pusher& pusher = bucket.pushers[p];
    pusher.asked = pusher.added = 0;
    ask(b, p, actions);
    actions.wait_for(pack({Use::push_came, b, static_cast<int>(p), 0}), pusher.rank, bucket.tag, bucket.step);
  }
  if (works(rank_))
    for (int d = 1; d < ranks_; ++d) {
      const int to = (rank_ + d) % ranks_;
      for (std::int64_t i = 0; i < pieces(bucket, to); ++i)
        send(b, Use::pushed, to, memory_.push(b, to, piece(bucket, to, i)), actions);
    }
  notify_if_reduced(b, actions);
}

// Posts receives for as many of a worker's next pieces as there are free slots.
void ServerProtocol::ask(int b, std::size_t p, ProtocolActions& actions) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
  Pusher& pusher = bucket.pushers[p];
  for (; pusher.asked < pieces(bucket, rank_); ++pusher.asked) {
    const int index = static_cast<int>(pusher.asked % ServerMemory::kSlots);
    Slot& slot = pusher.slots[index];
    if (slot.taken) return;
    slot = {.taken = true};
    const ServerMemory::Bytes room = memory_.push_room(b, pusher.rank, index, piece(bucket, rank_, pusher.asked));
    actions.receive(pack({Use::push_came, b, static_cast<int>(p), pusher.asked}), pusher.rank, bucket.tag, room.data,
                    room.bytes);
  }
}

// Adds the received messages of a piece, as far as the order of pushers allows.
void ServerProtocol::push_came(const Key& key, std::size_t bytes, ProtocolActions& actions) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(key.bucket)];
  const auto index = static_cast<int>(key.piece % ServerMemory::kSlots);
  Slot& own = bucket.pushers[static_cast<std::size_t>(key.peer)].slots[index];
  own.came = true;
  own.bytes = bytes;
  std::int64_t& turn = bucket.next[static_cast<std::size_t>(key.piece)];
  for (; turn < static_cast<std::int64_t>(bucket.pushers.size()); ++turn) {
    const auto p = static_cast<std::size_t>(turn);
    Pusher& pusher = bucket.pushers[p];
    Slot& slot = pusher.slots[index];
    const bool holds = pusher.asked > key.piece && pusher.asked - key.piece <= ServerMemory::kSlots;
    if (!holds || !slot.came) break;
    memory_.add(key.bucket, pusher.rank, index, piece(bucket, rank_, key.piece), slot.bytes,
                turn == 0 && !works(rank_));
    slot = {};
    --bucket.to_add;
    if (++pusher.added == pieces(bucket, rank_))
      actions.wait_over(pack({Use::push_came, key.bucket, static_cast<int>(p), 0}));
    ask(key.bucket, p, actions);
  }
  notify_if_reduced(key.bucket, actions);
}

void ServerProtocol::notify_if_reduced(int b, ProtocolActions& actions) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
  if (!bucket.open || bucket.to_add > 0 || bucket.to_send > 0) return;
  bucket.open = false;
  actions.notify_host(token(Word::summed, b));
}

void ServerProtocol::begin_pull(int b, double now_s, ProtocolActions& actions) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
  ECHELON_CHECK(!bucket.open && !bucket.pulling, "bucket {} was updated before it was summed", b);
  bucket.pulling = true;
  bucket.begun_s = now_s;
  for (int d = 1; d < ranks_ && works(rank_); ++d) {
    const int from = (rank_ - d + ranks_) % ranks_;
    const std::int64_t count = pieces(bucket, from);
    for (std::int64_t i = 0; i < count; ++i) {
      const ServerMemory::Bytes room = memory_.pull_room(b, from, piece(bucket, from, i));
      actions.receive(pack({Use::pull_came, b, from, i}), from, bucket.tag + 1, room.data, room.bytes);
      ++bucket.to_take;
    }
    if (count > 0) actions.wait_for(pack({Use::pull_came, b, from, 0}), from, bucket.tag + 1, bucket.step);
  }
  for (std::int64_t i = 0; i < pieces(bucket, rank_) && ranks_ > 1; ++i) {
    const ServerMemory::Bytes message = memory_.pull(b, piece(bucket, rank_, i));
    for (int d = 1; d < ranks_; ++d)
      if (const int to = (rank_ + d) % ranks_; works(to)) send(b, Use::pulled, to, message, actions);
  }
  notify_if_settled(b, actions);
}

void ServerProtocol::notify_if_settled(int b, ProtocolActions& actions) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
  if (!bucket.pulling || bucket.to_take > 0 || bucket.to_send > 0) return;
  bucket.pulling = false;
  ++bucket.step;
  actions.notify_host(token(Word::settled, b));
}

WireCounters ServerProtocol::take_sent(int b) { return std::exchange(buckets_[static_cast<std::size_t>(b)].sent, {}); }

}  // namespace echelon::inline exchange

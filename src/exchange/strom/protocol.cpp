// SPDX-License-Identifier: Apache-2.0
#include "exchange/strom/protocol.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline exchange {
namespace {

constexpr std::byte kNothing{};  // empty messages point to it

}  // namespace

StromProtocol::StromProtocol(int rank, int ranks, StromTraffic traffic)
    : rank_(rank), ranks_(ranks), traffic_(std::move(traffic)), slots_(strom_slots(traffic_.asynchronous)) {
  ECHELON_CHECK_GE(ranks, 2);
  const std::size_t buckets = traffic_.rooms.size(), slots = static_cast<std::size_t>(slots_);
  drafted_.resize(buckets);
  drafted_bytes_.resize(buckets * slots);
  gathering_.resize(buckets);
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  for (std::size_t b = 0; b < buckets; ++b)
    for (int origin = 0; origin < ranks; ++origin) {
      Stream& s = streams_.emplace_back();
      s.bucket = static_cast<int>(b);
      s.origin = origin;
      s.from = traffic_.ring ? before : origin;
      s.slots = std::make_unique_for_overwrite<std::byte[]>(traffic_.rooms[b] * slots);
      s.bytes.resize(slots);
      s.here.resize(slots);
      s.sends.resize(slots);
      if (traffic_.ring && next != origin) s.links.push_back({.to = next});
      for (int d = 1; d < ranks && !traffic_.ring && own(s); ++d) s.links.push_back({.to = (rank + d) % ranks});
    }
}

StromProtocol::~StromProtocol() = default;

Token StromProtocol::pack(const Key& key) {
  return static_cast<Token>(key.use) | static_cast<Token>(key.number & 0xffff) << 2 |
         static_cast<Token>(key.link) << 18 | static_cast<Token>(key.stream) << 34;
}

StromProtocol::Key StromProtocol::unpack(Token token) {
  return {.use = static_cast<Use>(token & 3),
          .stream = static_cast<std::size_t>(token >> 34),
          .link = static_cast<std::size_t>(token >> 18 & 0xffff),
          .number = static_cast<std::int64_t>(token >> 2 & 0xffff)};
}

std::byte* StromProtocol::draft(int b) {
  return room(streams_[index(b, rank_)], drafted_[static_cast<std::size_t>(b)]);
}

Token StromProtocol::commit(int b, std::size_t bytes) {
  ECHELON_CHECK(bytes > 0 && bytes <= traffic_.rooms[static_cast<std::size_t>(b)], "a message of {} bytes", bytes);
  const std::int64_t number = drafted_[static_cast<std::size_t>(b)]++;
  drafted_bytes_[static_cast<std::size_t>(b) * static_cast<std::size_t>(slots_) + slot(number)] = bytes;
  return token(Word::round, b);
}

Token StromProtocol::meet() {
  for (std::int64_t& number : drafted_) ++number;
  return token(Word::meet);
}

void StromProtocol::on(const ProtocolEvent& event, ProtocolActions& actions) {
  actions_ = &actions;
  switch (event.kind) {
    case ProtocolEvent::Kind::started: start(); break;
    case ProtocolEvent::Kind::posted: posted(event.token); break;
    case ProtocolEvent::Kind::sent:
      if (const Key key = unpack(event.token); key.use == Use::message) {
        --streams_[key.stream].sends[slot(key.number)];
        release(key.stream);
        check_if_gathered(streams_[key.stream].bucket);
      } else {
        --acks_out_;
      }
      break;
    case ProtocolEvent::Kind::received: received(event); break;
    case ProtocolEvent::Kind::timer: break;
  }
  check_if_met();
  check_if_ended();
}

void StromProtocol::start() {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    for (std::int64_t m = 0; m < slots_ && !own(streams_[i]); ++m) post_receive(i, m);
    for (std::size_t l = 0; l < streams_[i].links.size() && traffic_.asynchronous; ++l) post_ack_receive(i, l);
  }
}

void StromProtocol::posted(Token token) {
  const int b = bucket_of(token);
  switch (word_of(token)) {
    case Word::round: {
      ECHELON_CHECK(!meeting_ && !done_ && !gathering_[static_cast<std::size_t>(b)], "rank {} makes no message now",
                    rank_);
      const std::size_t i = index(b, rank_);
      gathering_[static_cast<std::size_t>(b)] = !traffic_.asynchronous;
      make(i, drafted_bytes_[static_cast<std::size_t>(b) * static_cast<std::size_t>(slots_) + slot(streams_[i].ready)]);
      for (int origin = 0; origin < ranks_ && !traffic_.asynchronous; ++origin) wait_for_missing(index(b, origin));
      check_if_gathered(b);
      break;
    }
    case Word::taken: take(b, origin_of(token)); break;
    case Word::meet:
      ECHELON_CHECK(traffic_.asynchronous && !meeting_ && !done_, "rank {} comes to no meeting now", rank_);
      meeting_ = true;
      for (std::size_t i = 0; i < streams_.size(); ++i) own(streams_[i]) ? make_marker(i) : wait_for_missing(i);
      break;
    default:
      ECHELON_CHECK(word_of(token) == Word::done && !meeting_, "rank {} posts nothing of this kind", rank_);
      done_ = true;
  }
}

// Tells the watchdog of a missing message of this round, or of a missing meeting marker.
void StromProtocol::wait_for_missing(std::size_t i) {
  const Stream& s = streams_[i];
  const std::int64_t round = streams_[index(s.bucket, rank_)].ready;
  if (own(s) || (traffic_.asynchronous ? s.marker : s.ready >= round)) return;
  wait_for({Use::message, i, 0, 0}, s.from, tag(i), round);
}

void StromProtocol::wait_for(const Key& key, int peer, int tag, std::int64_t step) {
  if (waits_.insert(pack(key)).second) actions_->wait_for(pack(key), peer, tag, step);
}

void StromProtocol::wait_over(const Key& key) {
  if (waits_.erase(pack(key)) > 0) actions_->wait_over(pack(key));
}

// Makes a message of this rank, which its own host has already taken.
void StromProtocol::make(std::size_t i, std::size_t bytes) {
  Stream& s = streams_[i];
  ECHELON_CHECK_LT(s.ready - s.released, slots_, "messages of bucket {} that have not left", s.bucket);
  s.bytes[slot(s.ready)] = bytes;
  s.delivered = s.taken = ++s.ready;
  forward(i);
}

void StromProtocol::make_marker(std::size_t i) {
  Stream& s = streams_[i];
  s.marker_due = s.ready - s.released == slots_;
  if (s.marker_due) return;
  make(i, 0);
  for (std::size_t l = 0; l < s.links.size(); ++l)
    wait_for({Use::marker_ack, i, l, 0}, s.links[l].to, tag(i) + 1, s.ready);
}

void StromProtocol::post_receive(std::size_t i, std::int64_t number) {
  const Stream& s = streams_[i];
  actions_->receive(pack({Use::message, i, 0, number}), s.from, tag(i), room(s, number),
                    traffic_.rooms[static_cast<std::size_t>(s.bucket)]);
}

void StromProtocol::post_ack_receive(std::size_t i, std::size_t link) {
  const Link& l = streams_[i].links[link];
  actions_->receive(pack({Use::ack, i, link, l.acked}), l.to, tag(i) + 1, &nothing_, 0);
}

void StromProtocol::received(const ProtocolEvent& event) {
  const Key key = unpack(event.token);
  Stream& s = streams_[key.stream];
  if (key.use == Use::ack) {
    Link& link = s.links[key.link];
    ++link.acked;
    ECHELON_CHECK_LE(link.acked, link.next, "messages that rank {} acknowledges", link.to);
    post_ack_receive(key.stream, key.link);
    if (meeting_ && own(s) && !s.marker_due && link.acked == s.ready)
      wait_over({Use::marker_ack, key.stream, key.link, 0});
    forward(key.stream);
    release(key.stream);
    return;
  }
  ECHELON_CHECK(event.bytes > 0 || traffic_.asynchronous, "an empty message of rank {} in a round", s.origin);
  const std::size_t at = slot(key.number);
  s.here[at] = 1;
  s.bytes[at] = event.bytes;
  for (; s.here[slot(s.ready)]; ++s.ready) s.here[slot(s.ready)] = 0;
  forward(key.stream);
  deliver(key.stream);
  if (!traffic_.asynchronous && s.ready >= streams_[index(s.bucket, rank_)].ready)
    wait_over({Use::message, key.stream, 0, 0});
  check_if_gathered(s.bucket);
}

// Sends the messages that have arrived to the next ranks, as far as they have room.
void StromProtocol::forward(std::size_t i) {
  Stream& s = streams_[i];
  for (std::size_t l = 0; l < s.links.size(); ++l)
    for (Link& link = s.links[l]; link.next < s.ready; ++link.next) {
      if (traffic_.asynchronous && link.next - link.acked == slots_) break;
      const std::size_t bytes = s.bytes[slot(link.next)];
      ++s.sends[slot(link.next)];
      send({Use::message, i, l, link.next}, link.to, tag(i), bytes > 0 ? room(s, link.next) : &kNothing, bytes);
    }
}

// Notifies the host of messages in order, up to the marker of a meeting that is not over.
void StromProtocol::deliver(std::size_t i) {
  Stream& s = streams_[i];
  while (s.delivered < s.ready && !s.marker) {
    const std::int64_t number = s.delivered++;
    s.marker = s.bytes[slot(number)] == 0;
    if (!s.marker)
      actions_->notify_host(token(Word::arrived, s.bucket, s.origin));
    else
      wait_over({Use::message, i, 0, 0});
  }
  absorb(i);
}

// Takes markers itself: the host does not take them.
void StromProtocol::absorb(std::size_t i) {
  Stream& s = streams_[i];
  while (!own(s) && s.taken < s.delivered && s.bytes[slot(s.taken)] == 0) ++s.taken;
  release(i);
}

void StromProtocol::take(int b, int origin) {
  Stream& s = streams_[index(b, origin)];
  ECHELON_CHECK_LT(s.taken, s.delivered, "rank {} takes a message of rank {} that is not here", rank_, origin);
  ++s.taken;
  absorb(index(b, origin));
}

// Frees the slots, oldest first, of messages that were taken here and forwarded; own ones once they are acknowledged.
void StromProtocol::release(std::size_t i) {
  Stream& s = streams_[i];
  const auto passed = [&](std::int64_t m) {
    return m < s.taken && s.sends[slot(m)] == 0 && std::all_of(s.links.begin(), s.links.end(), [&](const Link& link) {
             return link.next > m && (!traffic_.asynchronous || !own(s) || link.acked > m);
           });
  };
  while (s.released < s.taken && passed(s.released)) {
    const std::int64_t number = s.released++;
    if (own(s)) {
      if (traffic_.asynchronous && s.bytes[slot(number)] > 0) actions_->notify_host(token(Word::freed, s.bucket));
      if (s.marker_due) make_marker(i);
      continue;
    }
    if (traffic_.asynchronous) {
      ++acks_out_;
      send({Use::ack, i, 0, number}, s.from, tag(i) + 1, &kNothing, 0);
    }
    post_receive(i, number + slots_);
  }
}

void StromProtocol::check_if_gathered(int b) {
  char& open = gathering_[static_cast<std::size_t>(b)];
  if (!open) return;
  const std::int64_t rounds = streams_[index(b, rank_)].ready;
  for (int origin = 0; origin < ranks_; ++origin) {
    const Stream& s = streams_[index(b, origin)];
    if (s.ready < rounds || s.sends[slot(rounds - 1)] > 0) return;
  }
  open = 0;
  actions_->notify_host(token(Word::gathered, b));
}

void StromProtocol::check_if_met() {
  if (!meeting_ || acks_out_ > 0) return;
  for (const Stream& s : streams_)
    if (own(s) ? s.marker_due || s.released < s.ready : !s.marker || s.released < s.delivered) return;
  meeting_ = false;
  actions_->notify_host(token(Word::met));
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    streams_[i].marker = false;
    deliver(i);
  }
}

void StromProtocol::check_if_ended() {
  if (!done_ || acks_out_ > 0) return;
  for (const Stream& s : streams_)
    if (s.released < s.ready) return;
  actions_->notify_host(token(Word::ended));
  actions_->finish();
}

void StromProtocol::send(const Key& key, int to, int tag, const void* data, std::size_t bytes) {
  ++sent_.messages_sent;
  sent_.bytes_sent += bytes;
  actions_->send(pack(key), to, tag, data, bytes);
}

std::span<const std::byte> StromProtocol::newest(int b, int origin) const {
  const Stream& s = streams_[index(b, origin)];
  return {room(s, s.delivered - 1), s.bytes[slot(s.delivered - 1)]};
}

WireCounters StromProtocol::take_sent() { return std::exchange(sent_, {}); }

}  // namespace echelon::inline exchange

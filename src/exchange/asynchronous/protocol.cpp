// SPDX-License-Identifier: Apache-2.0
#include "exchange/asynchronous/protocol.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline exchange {
namespace {

AsyncHeader header_of(AsyncMemory::Payload message) {
  ECHELON_CHECK_GE(message.size(), sizeof(AsyncHeader), "bytes of a message with a header");
  AsyncHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  ECHELON_CHECK_LE(header.kind, static_cast<std::uint32_t>(AsyncKind::done), "kind of a message");
  return header;
}

constexpr std::size_t kLongLedger = 4096;  // bytes of a piece's ledger from which on the host is notified

AsyncMemory::Payload payload_of(AsyncMemory::Payload message) { return message.subspan(sizeof(AsyncHeader)); }

AsyncMemory::Payload write_header(const AsyncHeader& header, const AsyncMemory::Message& message) {
  ECHELON_CHECK_GE(message.bytes, sizeof header, "bytes of a message with a header");
  std::memcpy(message.data, &header, sizeof header);
  return {message.data, message.bytes};
}

}  // namespace

// This rank's piece of a bucket: carries out what AsyncPiece decides.
class AsyncProtocol::OwnPiece final : public AsyncPiece::Owner {
 public:
  OwnPiece(AsyncProtocol& protocol, int b, const AsyncRules& rules, LedgerBytes recorded)
      : piece(protocol.workers_, rules, std::move(recorded), *this),
        came(static_cast<std::size_t>(protocol.workers_)),
        rooms(static_cast<std::size_t>(protocol.workers_)),
        protocol_(protocol),
        b_(b) {}

  void apply(int worker, const AsyncUpdate& update) override {
    const AsyncMemory::Payload message = came[static_cast<std::size_t>(worker)];
    protocol_.memory_.apply(b_, worker, update, header_of(message), payload_of(message));
  }
  void flush() override { protocol_.memory_.flush(b_); }
  void answer(int worker, std::int64_t version) override {
    const AsyncHeader asked = header_of(came[static_cast<std::size_t>(worker)]);
    const AsyncMemory::Message message = protocol_.memory_.answer(b_, worker, asked);
    protocol_.send_answer(b_, worker,
                          {.version = version,
                           .clock = asked.clock,
                           .factor = message.factor,
                           .flags = message.flags,
                           .kind = asked.kind},
                          message);
  }
  void closed(bool meeting) override {
    closing = meeting;
    meeting ? ++protocol_.closings_ : --protocol_.open_pieces_;
  }

  AsyncPiece piece;
  std::vector<AsyncMemory::Payload> came;  // by worker: its last message
  std::vector<std::byte*> rooms;           // by worker: buffer for its next message
  std::int64_t answers = 0;                // number in flight
  bool closing = false;                    // the answers of a meeting are being sent
  std::int64_t meetings = 0;

 private:
  AsyncProtocol& protocol_;
  int b_;
};

AsyncProtocol::AsyncProtocol(int rank, int workers, const AsyncRules& rules, std::vector<AsyncBucket> buckets,
                             AsyncMemory& memory)
    : rank_(rank), workers_(workers), memory_(memory) {
  bool served = false;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    AsyncBucket& with = buckets[b];
    for (const ElemRange part : with.parts) served = served || !part.empty();
    Bucket& made = buckets_.emplace_back();
    made.tag = with.tag;
    made.priority = with.priority;
    const int ranks = static_cast<int>(with.parts.size());
    ECHELON_CHECK_GE(ranks, workers, "a part for each rank");
    // Links start with the rank after this one, so that not all workers begin with the same server; the own piece is
    // last.
    for (int d = 1; d <= ranks && works(); ++d)
      if (const int server = (rank + d) % ranks; !with.parts[static_cast<std::size_t>(server)].empty())
        made.links.emplace_back().server = server;
    if (with.parts.at(static_cast<std::size_t>(rank)).empty()) continue;
    made.own = std::make_unique<OwnPiece>(*this, static_cast<int>(b), rules, std::move(with.recorded));
    ++open_pieces_;
  }
  ECHELON_CHECK(served, "no rank serves anything: there is nobody to meet at");
}

AsyncProtocol::~AsyncProtocol() = default;

Token AsyncProtocol::pack(const Key& key) {
  return static_cast<Token>(key.use) | static_cast<Token>(key.bucket) << 1 | static_cast<Token>(key.peer) << 32;
}

AsyncProtocol::Key AsyncProtocol::unpack(Token token) {
  return {.use = static_cast<Use>(token & 1),
          .bucket = static_cast<int>(token >> 1 & 0x7fffffff),
          .peer = static_cast<int>(token >> 32)};
}

void AsyncProtocol::on(const ProtocolEvent& event, ProtocolActions& actions) {
  actions_ = &actions;
  now_s_ = event.now_s;
  const Key key = unpack(event.token);
  const int buckets = static_cast<int>(buckets_.size());
  switch (event.kind) {
    case ProtocolEvent::Kind::started:
      for (int b = 0; b < buckets; ++b)
        for (int w = 0; w < workers_ && bucket(b).own; ++w) post_room(b, w);
      break;
    case ProtocolEvent::Kind::posted:
      ECHELON_CHECK(works() && !meeting_ && !done_, "rank {} posts nothing now", rank_);
      if (word_of(event.token) == Word::push) {
        begin(bucket_of(event.token), AsyncKind::update);
        break;
      }
      done_ = word_of(event.token) == Word::done;
      meeting_ = !done_;
      for (int b = 0; b < buckets; ++b) begin(b, done_ ? AsyncKind::done : AsyncKind::meet);
      break;
    case ProtocolEvent::Kind::sent:
      --unsent_;
      if (key.use == Use::push) {
        --bucket(key.bucket).to_send;
        check_if_settled(key.bucket);
        break;
      }
      --bucket(key.bucket).own->answers;
      post_room(key.bucket, key.peer);
      break;
    case ProtocolEvent::Kind::received:
      if (key.use == Use::push) {
        OwnPiece& own = *bucket(key.bucket).own;
        message_came(key.bucket, key.peer, {own.rooms[static_cast<std::size_t>(key.peer)], event.bytes});
      } else {
        const auto link = static_cast<std::size_t>(key.peer);
        answer_came(key.bucket, link, {bucket(key.bucket).links[link].room, event.bytes});
      }
      break;
    case ProtocolEvent::Kind::timer: break;
  }
  check_if_met();
  check_if_ended();
}

// Sends this worker's message to every server of b.
void AsyncProtocol::begin(int b, AsyncKind kind) {
  Bucket& own = bucket(b);
  ECHELON_CHECK(!own.out, "bucket {} is posted before it is settled", b);
  own.begun_s = now_s_;
  if (kind != AsyncKind::done) {
    own.out = true;
    own.to_take = static_cast<std::int64_t>(own.links.size());
  }
  own.to_send += static_cast<std::int64_t>(own.links.size());
  for (std::size_t i = 0; i < own.links.size(); ++i) send_to_server(b, i, kind);
  check_if_settled(b);
}

void AsyncProtocol::send_to_server(int b, std::size_t i, AsyncKind kind) {
  Bucket& own = bucket(b);
  Link& link = own.links[i];
  AsyncMemory::Message message{.data = reinterpret_cast<std::byte*>(&link.control)};
  if (kind == AsyncKind::update) {
    message = memory_.push(b, link.server);
    ++link.pushes;
  }
  const AsyncMemory::Payload bytes = write_header({.version = link.version,
                                                   .clock = link.pushes,
                                                   .factor = message.factor,
                                                   .flags = message.flags,
                                                   .kind = static_cast<std::uint32_t>(kind)},
                                                  message);
  if (link.server == rank_) {
    --own.to_send;
    message_came(b, rank_, bytes);
    return;
  }
  const Key answer{Use::answer, b, static_cast<int>(i)};
  if (kind != AsyncKind::done) {
    const AsyncMemory::Room room = memory_.answer_room(b, link.server);
    link.room = room.data;
    actions_->receive(pack(answer), link.server, own.tag + 1, room.data, room.bytes);
    actions_->wait_for(pack(answer), link.server, own.tag + 1, link.pushes);
  }
  send({Use::push, b, static_cast<int>(i)}, link.server, own.tag, bytes);
}

void AsyncProtocol::send(const Key& key, int to, int tag, AsyncMemory::Payload message) {
  Bucket& of = bucket(key.bucket);
  ++unsent_;
  ++of.sent.messages_sent;
  of.sent.bytes_sent += message.size();
  if (key.use == Use::answer) of.sent.answered_bytes += message.size();
  actions_->send(pack(key), to, tag, message.data(), message.size(), of.priority);
}

// On a server: posts the receive for the next message of a worker on another rank.
void AsyncProtocol::post_room(int b, int worker) {
  if (worker == rank_) return;
  const AsyncMemory::Room room = memory_.push_room(b, worker);
  bucket(b).own->rooms[static_cast<std::size_t>(worker)] = room.data;
  actions_->receive(pack({Use::push, b, worker}), worker, bucket(b).tag, room.data, room.bytes);
}

void AsyncProtocol::message_came(int b, int worker, AsyncMemory::Payload message) {
  OwnPiece& own = *bucket(b).own;
  const AsyncHeader header = header_of(message);
  own.came[static_cast<std::size_t>(worker)] = message;
  own.piece.arrived(worker, static_cast<AsyncKind>(header.kind), header.version, header.clock, now_s_);
  if (own.piece.ledger().size() >= kLongLedger) actions_->notify_host(token(Word::recorded, b));
}

void AsyncProtocol::send_answer(int b, int worker, const AsyncHeader& header, const AsyncMemory::Message& message) {
  Bucket& own = bucket(b);
  const AsyncMemory::Payload bytes = write_header(header, message);
  if (worker == rank_) {
    answer_came(b, own.links.size() - 1, bytes);
    return;
  }
  ++own.own->answers;
  send({Use::answer, b, worker}, worker, own.tag + 1, bytes);
}

void AsyncProtocol::answer_came(int b, std::size_t i, AsyncMemory::Payload message) {
  Bucket& own = bucket(b);
  Link& link = own.links[i];
  const AsyncHeader header = header_of(message);
  ECHELON_CHECK_EQ(header.clock, link.pushes, "answer of rank {} for bucket {}", link.server, b);
  ECHELON_CHECK_GE(header.version, link.version, "answer of rank {} for bucket {}", link.server, b);
  link.version = header.version;
  memory_.take(b, link.server, header, payload_of(message));
  if (link.server != rank_) actions_->wait_over(pack({Use::answer, b, static_cast<int>(i)}));
  --own.to_take;
  check_if_settled(b);
}

void AsyncProtocol::check_if_settled(int b) {
  Bucket& own = bucket(b);
  if (!own.out || own.to_take > 0 || own.to_send > 0) return;
  own.out = false;
  if (!meeting_) actions_->notify_host(token(Word::settled, b));
}

// On a worker, a meeting is over when all its buckets are settled; on a server, when a piece's answers are sent.
void AsyncProtocol::check_if_met() {
  if (!meeting_ && closings_ == 0) return;
  bool all = meeting_ || !works() || done_;
  for (Bucket& b : buckets_) {
    all = all && !b.out;
    if (!b.own) continue;
    if (b.own->closing && b.own->answers == 0) {
      b.own->closing = false;
      ++b.own->meetings;
      --closings_;
    }
    all = all && b.own->meetings > meetings_;
  }
  if (!all) return;
  meeting_ = false;
  ++meetings_;
  actions_->notify_host(token(Word::met));
}

void AsyncProtocol::check_if_ended() {
  if (unsent_ > 0 || open_pieces_ > 0 || (works() && !done_)) return;
  actions_->notify_host(token(Word::ended));
  actions_->finish();
}

WireCounters AsyncProtocol::take_sent(int b) { return std::exchange(bucket(b).sent, {}); }

double AsyncProtocol::begun_s(int b) const { return buckets_[static_cast<std::size_t>(b)].begun_s; }

const AsyncPiece* AsyncProtocol::piece(int b) const {
  const Bucket& of = buckets_[static_cast<std::size_t>(b)];
  return of.own ? &of.own->piece : nullptr;
}

LedgerBytes AsyncProtocol::take_ledger(int b) {
  Bucket& of = bucket(b);
  return of.own ? of.own->piece.take_ledger() : LedgerBytes{};
}

StalenessTally AsyncProtocol::staleness(int worker) const {
  StalenessTally all;
  for (const Bucket& b : buckets_)
    if (b.own) all += b.own->piece.staleness(worker);
  return all;
}

std::int64_t AsyncProtocol::newest_version() const {
  std::int64_t newest = 0;
  for (const Bucket& b : buckets_) {
    if (b.own) newest = std::max(newest, b.own->piece.version());
    for (const Link& link : b.links) newest = std::max(newest, link.version);
  }
  return newest;
}

}  // namespace echelon::inline exchange

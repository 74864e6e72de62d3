// SPDX-License-Identifier: Apache-2.0
#include "exchange/backup/protocol.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline exchange {
namespace {

// Priority of small messages: they are sent before gradients and weights.
constexpr int kAhead = -1;

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  return {data, data + sizeof value};
}

}  // namespace

BackupProtocol::BackupProtocol(Setup setup, BackupMemory& memory)
    : setup_(std::move(setup)), memory_(memory), verdict_{.next_step = setup_.first_step} {
  std::vector<bool> serves;
  for (const BackupBucket& with : setup_.buckets) {
    Bucket& made = buckets_.emplace_back();
    made.tag = with.tag;
    made.priority = with.priority;
    const int ranks = static_cast<int>(with.parts.size());
    ECHELON_CHECK_GE(ranks, setup_.workers, "a part for each rank");
    serves.resize(static_cast<std::size_t>(ranks));
    // Links start with the rank after this one, so that not all workers begin with the same server; the own piece is
    // last.
    for (int d = 1; d <= ranks; ++d) {
      const int server = (setup_.rank + d) % ranks;
      if (with.parts[static_cast<std::size_t>(server)].empty()) continue;
      serves[static_cast<std::size_t>(server)] = true;
      if (works()) made.links.push_back({.server = server});
      if (server == setup_.rank) made.piece.emplace(setup_.workers, setup_.first_step);
    }
  }
  for (std::size_t rank = 0; rank < serves.size(); ++rank)
    if (serves[rank]) servers_.push_back(static_cast<int>(rank));
  ECHELON_CHECK(!servers_.empty(), "no rank serves anything: there is nobody to coordinate");
  const auto workers = static_cast<std::size_t>(setup_.workers);
  outbox_.resize(workers);
  if (servers_.front() != setup_.rank) return;
  BackupRounds::Owner& decisions = *this;
  rounds_ = std::make_unique<BackupRounds>(setup_.workers, setup_.needed, setup_.first_step, decisions);
  completes_.resize(workers);
}

BackupProtocol::~BackupProtocol() = default;

Token BackupProtocol::pack(const Key& key) {
  return static_cast<Token>(key.use) | static_cast<Token>(key.bucket) << 3 | static_cast<Token>(key.peer) << 40;
}

BackupProtocol::Key BackupProtocol::unpack(Token token) {
  return {.use = static_cast<Use>(token & 7),
          .bucket = static_cast<int>(token >> 3 & 0x7fffffff),
          .peer = static_cast<int>(token >> 40)};
}

void BackupProtocol::on(const ProtocolEvent& event, ProtocolActions& actions) {
  actions_ = &actions;
  now_s_ = event.now_s;
  switch (event.kind) {
    case ProtocolEvent::Kind::started: start(); break;
    case ProtocolEvent::Kind::posted: posted(event.token); break;
    case ProtocolEvent::Kind::sent: sent(unpack(event.token)); break;
    case ProtocolEvent::Kind::received: received(unpack(event.token), event.bytes); break;
    case ProtocolEvent::Kind::timer: break;
  }
  check_if_quiet();
}

void BackupProtocol::start() {
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b)
    for (int w = 0; w < setup_.workers && bucket(b).piece; ++w) post_room(b, w);
  for (int w = 0; w < setup_.workers && rounds_; ++w)
    if (w != setup_.rank)
      actions_->receive(pack({Use::complete, 0, w}), w, setup_.tag, &completes_[static_cast<std::size_t>(w)],
                        sizeof(BackupComplete));
  if (rounds_ || std::find(servers_.begin(), servers_.end(), setup_.rank) == servers_.end()) return;
  next_command_.resize(command_bytes(setup_.workers));
  actions_->receive(pack({Use::command, 0, 0}), servers_.front(), setup_.tag + 2, next_command_.data(),
                    next_command_.size());
}

void BackupProtocol::posted(Token token) {
  switch (word_of(token)) {
    case Word::push: return push(bucket_of(token));
    case Word::complete: return begin_completing();
    case Word::quiet: quiet_before_ = verdict_.next_step; return;
    case Word::resume: held_ = false; return follow_commands();
    case Word::end: return actions_->finish();
    default: ECHELON_CHECK(false, "word {} is not the host's to post", static_cast<int>(word_of(token)));
  }
}

void BackupProtocol::sent(const Key& key) {
  switch (key.use) {
    case Use::push: --pushes_unsent_; return check_if_completed();
    case Use::weights: outbox_[static_cast<std::size_t>(key.peer)].pop_front(); return send_weights(key.peer);
    default: small_.erase(key.bucket);
  }
}

void BackupProtocol::received(const Key& key, std::size_t bytes) {
  ECHELON_CHECK_EQ(bytes, length_of(key), "bytes of a message");
  switch (key.use) {
    case Use::push: return push_came(key.bucket, key.peer);
    case Use::weights: return take(key.bucket, static_cast<std::size_t>(key.peer));
    case Use::complete: {
      BackupComplete& arrived = completes_[static_cast<std::size_t>(key.peer)];
      const BackupComplete complete = arrived;
      actions_->receive(pack(key), key.peer, setup_.tag, &arrived, sizeof arrived);
      return rounds_->completed(key.peer, complete);
    }
    case Use::verdict:
      actions_->wait_over(pack(key));
      ECHELON_CHECK_GT(next_verdict_.next_step, own_complete_.step, "the step that a verdict leads to");
      verdict_ = next_verdict_;
      return verdict_came();
    case Use::command:
      commands_.push_back(decode(next_command_));
      actions_->receive(pack(key), servers_.front(), setup_.tag + 2, next_command_.data(), next_command_.size());
      return follow_commands();
  }
}

// The functions of a worker.

void BackupProtocol::push(int b) {
  Bucket& own = bucket(b);
  ECHELON_CHECK(!own.pushed && (completing_ || own.to_take == 0), "bucket {} is pushed before its weights are there",
                b);
  own.pushed = true;
  ++pushes_posted_;
  for (std::size_t i = 0; i < own.links.size(); ++i) {
    const int server = own.links[i].server;
    if (server == setup_.rank) {
      push_came(b, server);
      continue;
    }
    ++pushes_unsent_;
    const BackupMemory::Bytes gradient = memory_.push(b, server);
    send({Use::push, b, static_cast<int>(i)}, server, own.tag, gradient.data, gradient.bytes, own.priority);
  }
  check_if_completed();
}

void BackupProtocol::begin_completing() {
  ECHELON_CHECK(works() && judged_ && !completing_, "rank {} has no step to complete", setup_.rank);
  completed_s_ = now_s_;
  completing_ = true;
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
    Bucket& own = bucket(b);
    own.to_take = static_cast<std::int64_t>(own.links.size());
    for (std::size_t i = 0; i < own.links.size(); ++i) {
      Link& link = own.links[i];
      link.expected = true;
      if (link.server == setup_.rank) continue;
      const BackupMemory::Bytes room = memory_.weights_room(b, link.server);
      link.bytes = room.bytes;
      actions_->receive(pack({Use::weights, b, static_cast<int>(i)}), link.server, own.tag + 1, room.data, room.bytes);
    }
  }
  check_if_completed();
}

void BackupProtocol::check_if_completed() {
  if (!completing_ || pushes_unsent_ > 0 || pushes_posted_ < static_cast<std::int64_t>(buckets_.size())) return;
  completing_ = judged_ = false;
  pushes_posted_ = 0;
  for (Bucket& b : buckets_) b.pushed = false;
  if (rounds_) return rounds_->completed(setup_.rank, own_complete_);
  const int coordinator = servers_.front();
  const Token verdict = pack({Use::verdict, 0, 0});
  actions_->receive(verdict, coordinator, setup_.tag + 1, &next_verdict_, sizeof next_verdict_);
  actions_->wait_for(verdict, coordinator, setup_.tag + 1, own_complete_.step);
  send_small(Use::complete, coordinator, setup_.tag, own_complete_.step, bytes_of(own_complete_));
}

void BackupProtocol::verdict_came() {
  judged_ = true;
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b)
    for (std::size_t i = 0; i < bucket(b).links.size(); ++i) {
      Link& link = bucket(b).links[i];
      if (!link.expected || link.server == setup_.rank) continue;
      link.waiting = true;
      actions_->wait_for(pack({Use::weights, b, static_cast<int>(i)}), link.server, bucket(b).tag + 1,
                         verdict_.next_step);
    }
  actions_->notify_host(token(Word::verdict));
}

// A part of the new weights has arrived.
void BackupProtocol::take(int b, std::size_t i) {
  Link& link = bucket(b).links[i];
  ECHELON_CHECK(link.expected, "weights of rank {} for bucket {} come unasked", link.server, b);
  if (link.waiting) actions_->wait_over(pack({Use::weights, b, static_cast<int>(i)}));
  link.expected = link.waiting = false;
  if (--bucket(b).to_take == 0) actions_->notify_host(token(Word::pulled, b));
}

// The functions of the coordinator.

void BackupProtocol::decided(const BackupCommand& command) {
  for (std::size_t s = 1; s < servers_.size(); ++s)
    send_small(Use::command, servers_[s], setup_.tag + 2, command.step, encode(command));
  commands_.push_back(command);
  follow_commands();
}

void BackupProtocol::decided(int worker, const BackupVerdict& verdict) {
  if (worker != setup_.rank)
    return send_small(Use::verdict, worker, setup_.tag + 1, verdict.next_step, bytes_of(verdict));
  verdict_ = verdict;
  verdict_came();
}

// The functions of a server.

void BackupProtocol::post_room(int b, int worker) {
  if (worker == setup_.rank) return;
  const BackupMemory::Bytes room = memory_.push_room(b, worker);
  bucket(b).push_bytes = room.bytes;
  actions_->receive(pack({Use::push, b, worker}), worker, bucket(b).tag, room.data, room.bytes);
}

void BackupProtocol::push_came(int b, int worker) {
  if (bucket(b).piece->arrived(worker)) return follow_commands();
  post_room(b, worker);
}

void BackupProtocol::follow_commands() {
  while (!held_ && !commands_.empty() && follow(commands_.front())) commands_.pop_front();
}

// Returns true once the command is carried out on all pieces of this rank.
bool BackupProtocol::follow(const BackupCommand& command) {
  bool all = true;
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
    if (!bucket(b).piece) continue;
    BackupPiece& piece = *bucket(b).piece;
    if (command.joins >= 0) {
      ECHELON_CHECK_EQ(piece.step(), command.step, "step that worker {} joins", command.joins);
      piece.join(command.joins);
      give(b, command.joins);
      continue;
    }
    if (piece.step() > command.step) continue;
    ECHELON_CHECK_EQ(piece.step(), command.step, "step that a command closes");
    if (!piece.has(command.entered)) {
      all = false;
      continue;
    }
    memory_.take_step(b, command);
    for (const int worker : piece.close(command.entered)) post_room(b, worker);
    give_to_all(b, command.entered);
  }
  return all;
}

// Sends to the workers from the rank after this one on, so that not all servers send to the same worker at once.
// `workers` must be ascending.
void BackupProtocol::give_to_all(int b, std::vector<int> workers) {
  std::rotate(workers.begin(), std::upper_bound(workers.begin(), workers.end(), setup_.rank), workers.end());
  for (const int worker : workers) give(b, worker);
}

void BackupProtocol::give(int b, int worker) {
  if (worker == setup_.rank) {
    memory_.take_own(b);
    return take(b, bucket(b).links.size() - 1);
  }
  std::deque<Outgoing>& outbox = outbox_[static_cast<std::size_t>(worker)];
  outbox.push_back({.bucket = b, .step = bucket(b).piece->step(), .message = memory_.weights(b)});
  if (outbox.size() == 1) send_weights(worker);
}

// Sends one message of the outbox at a time, so that a worker that does not receive delays no other.
void BackupProtocol::send_weights(int worker) {
  std::deque<Outgoing>& outbox = outbox_[static_cast<std::size_t>(worker)];
  if (outbox.empty()) return;
  const auto first = std::min_element(outbox.begin(), outbox.end(), [&](const Outgoing& a, const Outgoing& b) {
    return bucket(a.bucket).priority < bucket(b.bucket).priority;
  });
  std::iter_swap(first, outbox.begin());
  const Outgoing& next = outbox.front();
  send({Use::weights, next.bucket, worker}, worker, bucket(next.bucket).tag + 1, next.message->data(),
       next.message->size(), bucket(next.bucket).priority);
}

// Notifies the host once everything that belongs to steps before `quiet_before_` is over.
void BackupProtocol::check_if_quiet() {
  if (quiet_before_ < 0) return;
  const std::int64_t step = quiet_before_;
  for (const Bucket& b : buckets_)
    if (b.piece && !b.piece->is_past(step)) return;
  for (const std::deque<Outgoing>& outbox : outbox_)
    for (const Outgoing& message : outbox)
      if (message.step <= step) return;
  for (const auto& [number, message] : small_)
    if (message.step <= step) return;
  quiet_before_ = -1;
  held_ = true;
  actions_->notify_host(token(Word::quiet));
}

void BackupProtocol::send(const Key& key, int to, int tag, const void* data, std::size_t bytes, int priority) {
  ++sent_.messages_sent;
  sent_.bytes_sent += bytes;
  if (key.use == Use::weights) sent_.answered_bytes += bytes;
  actions_->send(pack(key), to, tag, data, bytes, priority);
}

void BackupProtocol::send_small(Use use, int to, int tag, std::int64_t step, std::vector<std::byte> message) {
  small_number_ = (small_number_ + 1) & 0x7fffffff;
  const Small& kept = small_[small_number_] = {step, std::move(message)};
  send({use, small_number_, 0}, to, tag, kept.bytes.data(), kept.bytes.size(), kAhead);
}

WireCounters BackupProtocol::take_sent() { return std::exchange(sent_, {}); }

std::vector<BackupRounds::Count> BackupProtocol::counts() const {
  return rounds_ ? rounds_->counts() : std::vector<BackupRounds::Count>{};
}

}  // namespace echelon::inline exchange

#include "tests/support/async_world.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/watched_machine.hpp"

namespace echelon::test {
namespace {

constexpr std::size_t kLongest = 3;  // numbers that a message may have behind those of its part

// A rank: its memory, and its host, whose steps are pauses.
class AsyncRank final : public AsyncMemory, public ProtocolHost {
 public:
  AsyncRank(const AsyncSchedule& schedule, int rank, VirtualWorld& world, AsyncObserver& observer,
            const std::vector<LedgerBytes>& recorded)
      : schedule_(schedule),
        rank_(rank),
        random_(HashRng(schedule.network.seed, "async rank").at(at(rank))),
        observer_(observer),
        settled_(schedule.parts.size(), true) {
    std::vector<AsyncBucket> buckets;
    for (std::size_t b = 0; b < schedule.parts.size(); ++b)
      buckets.push_back({.parts = schedule.parts[b],
                         .tag = tag(static_cast<int>(b)),
                         .priority = static_cast<int>(b),
                         .recorded = recorded.empty() ? LedgerBytes{} : recorded[b]});
    protocol.emplace(rank, schedule.workers, schedule.rules, std::move(buckets), *this);
    watched_.emplace(*protocol);
    auto transport = make_disturbed(world.transport(rank), schedule.disturbance[at(rank)]);
    actor.emplace(
        std::move(transport), *watched_, *this, [this] { return ended_; }, schedule.sends);
    if (works()) begin_epoch();
  }

  Message push(int b, int server) override {
    const std::int64_t t = pushes_[b];
    const ElemRange part = parts(b)[at(server)];
    Integers numbers;
    for (std::int64_t i = part.begin; i < part.end; ++i) numbers.push_back(AsyncObserver::gradient(rank_, t, b, i));
    numbers.resize(numbers.size() + at(t % (kLongest + 1)));
    Message message = write(updates_[{b, server}], numbers);
    message.factor = static_cast<double>(t) / 8;
    message.flags = static_cast<std::uint32_t>(rank_);
    return message;
  }
  Room answer_room(int b, int server) override { return room(answers_[{b, server}], b, server); }
  void take(int b, int server, const AsyncHeader& header, Payload weights) override {
    ECHELON_CHECK_EQ(header.flags, 77u);
    observer_.taken(rank_, b, server, header, read(weights));
  }

  // One buffer of a worker and a piece, as the contract permits.
  Room push_room(int b, int worker) override {
    Buffer& buffer = served_[{b, worker}];
    ECHELON_CHECK(!buffer.posted, "a room is given twice");
    buffer.posted = true;
    return room(buffer, b, rank_);
  }
  void apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) override {
    ECHELON_CHECK_EQ(header.factor, static_cast<double>(update.clock) / 8);
    ECHELON_CHECK_EQ(static_cast<int>(header.flags), worker);
    Integers numbers = read(payload);
    ECHELON_CHECK_EQ(numbers.size(), at(own(b).elems() + update.clock % static_cast<std::int64_t>(kLongest + 1)));
    observer_.applied(b, rank_, worker, update, numbers);
  }
  void flush(int b) override { observer_.flushed(b, rank_); }
  Message answer(int b, int worker) override {
    Buffer& buffer = served_[{b, worker}];
    ECHELON_CHECK(worker == rank_ || buffer.posted, "an answer that nobody asked for");
    buffer.posted = false;
    Message message = write(buffer, observer_.weights(b, rank_));
    message.flags = 77;
    return message;
  }

  void on_notified(Token token, double now_s) override {
    const int b = AsyncProtocol::bucket_of(token);
    for (std::size_t i = 0; i < settled_.size(); ++i)
      messages += protocol->take_sent(static_cast<int>(i)).messages_sent;
    switch (AsyncProtocol::word_of(token)) {
      case AsyncProtocol::Word::settled:
        ECHELON_CHECK(!settled_[at(b)]);
        check_settled(b);
        settled_[at(b)] = true;
        for (auto& [key, buffer] : updates_)
          if (key.first == b) std::fill(buffer.bytes.begin(), buffer.bytes.end(), std::byte{0xee});
        observer_.settled(rank_, b);
        last_push_s = now_s;
        if (to_push_ == 0 && std::find(settled_.begin(), settled_.end(), false) == settled_.end()) begin_step();
        break;
      case AsyncProtocol::Word::met:
        ECHELON_CHECK(serves() || (works() && !done_), "told of a meeting that is not its own");
        ++meetings_;
        check_met();
        if (!works() || done_) break;
        observer_.left_meeting(rank_);
        ++epoch_;
        begin_epoch();
        break;
      case AsyncProtocol::Word::ended: ended_ = true; break;
      default: ECHELON_CHECK(false, "word {}", static_cast<int>(AsyncProtocol::word_of(token)));
    }
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<AsyncProtocol> protocol;
  std::optional<ProtocolActor> actor;
  std::uint64_t messages = 0;
  double last_push_s = 0;

 private:
  using Key = std::pair<int, int>;  // bucket, and server or worker
  struct Buffer {
    std::vector<std::byte> bytes;
    bool posted = false;
  };

  static int tag(int b) { return 20 + 2 * b; }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  bool works() const { return rank_ < schedule_.workers; }
  const Parts& parts(int b) const { return schedule_.parts[at(b)]; }
  ElemRange own(int b) const { return parts(b)[at(rank_)]; }
  bool serves() const {
    return std::any_of(schedule_.parts.begin(), schedule_.parts.end(),
                       [&](const Parts& p) { return !p[at(rank_)].empty(); });
  }

  // The update may be overwritten from now on, and nothing of it is waited for.
  void check_settled(int b) const {
    for (const auto& [token, send] : watched_->sends())
      ECHELON_CHECK_NE(send.tag, tag(b), "bucket {} is settled before it has left", b);
    for (const auto& [token, tag_of] : watched_->waits())
      ECHELON_CHECK_NE(tag_of, tag(b) + 1, "bucket {} is settled, and waited for", b);
  }
  // All workers have come to this rank's pieces, and have their answers.
  void check_met() const {
    for (const auto& [token, send] : watched_->sends()) {
      AsyncHeader header;
      std::memcpy(&header, send.data, sizeof header);
      ECHELON_CHECK_NE(header.kind, static_cast<std::uint32_t>(AsyncKind::meet), "tag {} is on its way", send.tag);
    }
    for (std::size_t b = 0; b < schedule_.parts.size(); ++b) {
      const AsyncPiece* piece = protocol->piece(static_cast<int>(b));
      if (!piece) continue;
      std::vector<std::int64_t> meetings(at(schedule_.workers));
      for (const LedgerRow& row : ledger_rows(piece->ledger()))
        if (row.entry.kind != AsyncKind::update)
          meetings[at(row.entry.worker)] += row.entry.kind == AsyncKind::meet ? 1 : 1'000'000;
      for (const std::int64_t count : meetings)
        ECHELON_CHECK_GE(count, meetings_, "the piece of bucket {} is not at the meeting", b);
    }
  }

  // Filled with other bytes, so that one that is used too early is noticed.
  Room room(Buffer& buffer, int b, int server) {
    const std::size_t numbers = at(parts(b)[at(server)].elems()) + kLongest;
    buffer.bytes.assign(sizeof(AsyncHeader) + numbers * sizeof(std::int64_t), std::byte{0xee});
    return {buffer.bytes.data(), buffer.bytes.size()};
  }
  static Message write(Buffer& buffer, const Integers& numbers) {
    buffer.bytes.resize(std::max(buffer.bytes.size(), sizeof(AsyncHeader) + numbers.size() * sizeof(std::int64_t)));
    if (!numbers.empty())
      std::memcpy(buffer.bytes.data() + sizeof(AsyncHeader), numbers.data(), numbers.size() * sizeof(std::int64_t));
    Message message;
    message.data = buffer.bytes.data();
    message.bytes = sizeof(AsyncHeader) + numbers.size() * sizeof(std::int64_t);
    return message;
  }
  static Integers read(Payload payload) {
    Integers numbers(payload.size() / sizeof(std::int64_t));
    if (!numbers.empty()) std::memcpy(numbers.data(), payload.data(), payload.size());
    return numbers;
  }

  void begin_epoch() {
    left_ = schedule_.steps[at(rank_)][at(epoch_)];
    begin_step();
  }
  double pause_s() {
    const double spread = 1 + schedule_.spread * (random_.uniform(draws_++) - 0.5);
    return schedule_.compute_s * schedule_.slowness[at(rank_)] * spread;
  }
  // Forward takes a third of a step; back-propagation finishes the last bucket first.
  void begin_step() {
    if (left_-- == 0) {
      const bool last = epoch_ + 1 == static_cast<int>(schedule_.steps[at(rank_)].size());
      last ? observer_.done(rank_) : observer_.came_to_meeting(rank_);
      done_ = last;
      actor->post(AsyncProtocol::token(last ? AsyncProtocol::Word::done : AsyncProtocol::Word::meet));
      return;
    }
    const double step_s = pause_s();
    to_push_ = static_cast<int>(settled_.size());
    for (int b = to_push_ - 1, i = 1; b >= 0; --b, ++i)
      actor->at(actor->now_s() + step_s * (1 + 2.0 * i / static_cast<double>(settled_.size())) / 3, [this, b] {
        settled_[at(b)] = false;
        --to_push_;
        ++pushes_[b];
        observer_.pushed(rank_, b);
        actor->post(AsyncProtocol::token(AsyncProtocol::Word::push, b));
      });
  }

  const AsyncSchedule& schedule_;
  int rank_;
  HashRng random_;
  std::uint64_t draws_ = 0;
  AsyncObserver& observer_;
  std::map<int, std::int64_t> pushes_;  // by bucket
  std::map<Key, Buffer> updates_, answers_, served_;
  std::vector<bool> settled_;
  std::optional<WatchedMachine> watched_;
  std::int64_t meetings_ = 0;
  int epoch_ = 0, to_push_ = 0;
  std::int64_t left_ = 0;
  bool done_ = false, ended_ = false;
};

}  // namespace

StalenessTally AsyncOutcome::all() const {
  StalenessTally sum;
  for (const StalenessTally& worker : staleness) sum += worker;
  return sum;
}

AsyncOutcome run_async(const AsyncSchedule& schedule, const std::vector<std::vector<LedgerBytes>>& recorded) {
  VirtualWorld world(schedule.ranks, schedule.network);
  AsyncObserver observer(schedule.workers, schedule.rules, schedule.parts);
  std::vector<std::unique_ptr<AsyncRank>> ranks;
  std::vector<VirtualActor*> actors;
  for (int r = 0; r < schedule.ranks; ++r) {
    const auto& order = recorded.empty() ? std::vector<LedgerBytes>{} : recorded[static_cast<std::size_t>(r)];
    ranks.push_back(std::make_unique<AsyncRank>(schedule, r, world, observer, order));
    actors.push_back(&*ranks.back()->actor);
  }
  world.run(actors, 100);

  AsyncOutcome outcome;
  outcome.lead = observer.lead();
  outcome.pulled.resize(static_cast<std::size_t>(schedule.workers));
  outcome.staleness.resize(static_cast<std::size_t>(schedule.workers));
  outcome.weights.resize(schedule.parts.size());
  std::uint64_t messages = 0, sent = 0;
  for (int r = 0; r < schedule.ranks; ++r) {
    AsyncRank& rank = *ranks[static_cast<std::size_t>(r)];
    messages += rank.messages;
    sent += rank.actor->wire().messages_sent;
    if (r < schedule.workers) outcome.last_push_s.push_back(rank.last_push_s);
    std::vector<LedgerBytes>& ledgers = outcome.ledgers.emplace_back(schedule.parts.size());
    for (int w = 0; w < schedule.workers; ++w)
      outcome.staleness[static_cast<std::size_t>(w)] += rank.protocol->staleness(w);
    for (std::size_t b = 0; b < schedule.parts.size(); ++b) {
      const AsyncPiece* piece = rank.protocol->piece(static_cast<int>(b));
      ECHELON_CHECK_EQ(piece != nullptr, !schedule.parts[b][static_cast<std::size_t>(r)].empty());
      if (!piece) continue;
      ECHELON_CHECK(!piece->replaying() && piece->all_done());
      observer.check_piece(static_cast<int>(b), r, *piece);
      ledgers[b] = piece->ledger();
      const Integers& weights = observer.weights(static_cast<int>(b), r);
      outcome.weights[b].insert(outcome.weights[b].end(), weights.begin(), weights.end());
      for (int w = 0; w < schedule.workers; ++w)
        outcome.pulled[static_cast<std::size_t>(w)].push_back(observer.pulled(w, static_cast<int>(b), r));
    }
  }
  ECHELON_CHECK_EQ(messages, observer.messages(), "messages that the host was told of");
  ECHELON_CHECK_EQ(sent, observer.messages(), "messages on the wire");
  return outcome;
}

}  // namespace echelon::test

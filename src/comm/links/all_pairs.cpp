// SPDX-License-Identifier: Apache-2.0
#include "comm/links/all_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "comm/links/keep_memory.hpp"
#include "comm/links/tournament.hpp"

namespace echelon::inline comm {
namespace {

constexpr int kPairTag = 0, kReportTag = 1;
constexpr int kRoundTrips = 31;
constexpr std::int64_t kFirst = 64 << 10, kLast = 64 << 20, kEnd = -1;  // bytes
constexpr std::size_t kInterfaceText = 256;

struct GivenUp {};

// Memory of messages, to which the library may still write after they were abandoned.
struct Memory {
  std::int64_t out = 0, in = 0;
  std::vector<std::byte> bytes;

  std::byte* at_least(std::int64_t size) {
    if (bytes.size() < static_cast<std::size_t>(size)) bytes.resize(static_cast<std::size_t>(size));
    return bytes.data();
  }
};

// Blocking messages with one partner until a deadline; throws GivenUp after it.
class Talk {
 public:
  Talk(Transport& transport, int peer, int tag, double deadline_s, Memory& memory)
      : transport_(transport), peer_(peer), tag_(tag), deadline_s_(deadline_s), memory_(memory) {}

  void set_deadline(double at_s) { deadline_s_ = at_s; }
  double now_s() const { return transport_.clock().now_s(); }
  void send_word(std::int64_t word) {
    memory_.out = word;
    send(&memory_.out, sizeof memory_.out);
  }
  std::int64_t receive_word() {
    receive(&memory_.in, sizeof memory_.in);
    return memory_.in;
  }
  void send_bytes(std::int64_t bytes) { send(memory_.at_least(bytes), static_cast<std::size_t>(bytes)); }
  void receive_bytes(std::int64_t bytes) { receive(memory_.at_least(bytes), static_cast<std::size_t>(bytes)); }
  void prepare(std::int64_t bytes) { (void)memory_.at_least(bytes); }
  void send(const void* data, std::size_t bytes) { finish(transport_.isend(peer_, tag_, data, bytes)); }
  void receive(void* data, std::size_t bytes) { finish(transport_.irecv(peer_, tag_, data, bytes)); }

 private:
  // Spins for the duration of a short message, because a thread that yields on a busy host gets its core back
  // milliseconds later. Sleeps once it has waited long, so that other ranks of the host are not disturbed.
  void finish(Request request) {
    constexpr double kSpin_s = 2e-4, kPatience_s = 5e-3;
    const double start_s = now_s();
    while (!transport_.test(request)) {
      const double time_s = now_s();
      if (time_s > deadline_s_) {
        transport_.cancel(request);
        throw GivenUp{};
      }
      if (time_s - start_s > kPatience_s)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      else if (time_s - start_s > kSpin_s)
        std::this_thread::yield();
    }
  }

  Transport& transport_;
  int peer_, tag_;
  double deadline_s_;
  Memory& memory_;
};

// Sends 8 bytes there and back.
void exchange_word(Talk& talk, bool leads, std::int64_t word = 0) {
  if (leads) talk.send_word(word);
  (void)talk.receive_word();
  if (!leads) talk.send_word(word);
}

double measure_latency_s(Talk& talk, bool leads) {
  std::vector<double> times;
  for (int trip = -2; trip < kRoundTrips; ++trip) {
    const double begin_s = talk.now_s();
    exchange_word(talk, leads);
    if (trip >= 0) times.push_back((talk.now_s() - begin_s) / 2);
  }
  std::nth_element(times.begin(), times.begin() + kRoundTrips / 2, times.end());
  return times[kRoundTrips / 2];
}

// Returns the seconds of one message with its acknowledgement: the best of three, or of fewer if they are slow.
double best_time_s(Talk& talk, std::int64_t bytes, double seconds) {
  double best_s = 0, spent_s = 0;
  for (int turn = 0; turn < 3 && spent_s <= 4 * seconds; ++turn) {
    exchange_word(talk, true, bytes);
    const double begin_s = talk.now_s();
    talk.send_bytes(bytes);
    (void)talk.receive_word();
    const double taken_s = talk.now_s() - begin_s;
    best_s = turn == 0 ? taken_s : std::min(best_s, taken_s);
    spent_s += taken_s;
  }
  return best_s;
}

// Returns the bytes per second to the partner, which answers meanwhile.
double drive(Talk& talk, double latency_s, double seconds) {
  double shorter_s = latency_s, time_s = 0;
  std::int64_t bytes = kFirst;
  talk.prepare(kLast);
  for (;; bytes *= 2) {
    time_s = best_time_s(talk, bytes, seconds);
    if (time_s >= seconds || bytes == kLast) break;
    shorter_s = time_s;
  }
  exchange_word(talk, true, kEnd);
  const auto all = static_cast<double>(bytes), base = bytes == kFirst ? 0 : all / 2;
  return time_s > shorter_s ? (all - base) / (time_s - shorter_s) : all / time_s;
}

void answer(Talk& talk) {
  for (;;) {
    const std::int64_t bytes = talk.receive_word();
    if (bytes > 0) talk.prepare(bytes);
    talk.send_word(0);
    if (bytes == kEnd) return;
    talk.receive_bytes(bytes);
    talk.send_word(0);
  }
}

class Prober {
 public:
  Prober(Transport& transport, const AllPairsOptions& options)
      : transport_(transport),
        options_(options),
        me_(transport.rank()),
        start_s_(transport.clock().now_s()),
        links_(LinkMatrix::of(transport.host_names(), transport.hosts())) {}

  AllPairs run() {
    const std::vector<int> leaders = links_.leaders();
    play(leaders);
    int most = 0;  // rounds inside the largest host; all hosts go through as many
    std::vector<int> neighbours;
    for (std::size_t host = 0; host < leaders.size(); ++host) {
      const std::vector<int> ranks = ranks_of(static_cast<int>(host));
      most = std::max(most, tournament_rounds(static_cast<int>(ranks.size())));
      if (std::find(ranks.begin(), ranks.end(), me_) != ranks.end()) neighbours = ranks;
    }
    const int first = round_;
    play(neighbours);
    round_ = first + most;
    report();
    return {me_ == 0 ? std::move(links_) : LinkMatrix(), silent_, complete_};
  }

 private:
  std::vector<int> ranks_of(int host) const {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < links_.ranks(); ++rank)
      if (links_.hosts[rank] == host) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }

  // Runs a tournament of these ranks; the others skip its rounds.
  void play(const std::vector<int>& players) {
    const auto count = static_cast<int>(players.size());
    const auto at = std::find(players.begin(), players.end(), me_);
    const int rounds = tournament_rounds(count);
    for (int round = 0; round < rounds && at != players.end(); ++round) {
      const int opponent = opponent_of(static_cast<int>(at - players.begin()), count, round);
      if (opponent >= 0) meet(players[static_cast<std::size_t>(opponent)], round_ + round);
    }
    round_ += rounds;
  }

  void meet(int peer, int round) {
    const double slot_s = 2 * options_.limit_s;
    Talk talk(transport_, peer, kPairTag, start_s_ + round * slot_s + options_.limit_s, memory_.back());
    double& rate = links_.bytes_per_s[links_.at(me_, peer)];
    const bool leads = me_ < peer;
    try {
      exchange_word(talk, leads);
      talk.set_deadline(std::min(talk.now_s() + options_.limit_s, start_s_ + (round + 1) * slot_s));
      const double latency = measure_latency_s(talk, leads);
      if (leads) links_.latency_s[links_.at(me_, peer)] = links_.latency_s[links_.at(peer, me_)] = latency;
      if (leads) rate = drive(talk, latency, options_.seconds);
      answer(talk);
      if (!leads) rate = drive(talk, latency, options_.seconds);
    } catch (const GivenUp&) {
      complete_ = false;
      memory_.emplace_back();
      if (std::isnan(rate)) rate = 0;
    }
  }

  // This rank's results for rank 0: latencies and rates by peer, whether all is complete, and the interface.
  std::vector<std::byte> own_report() const {
    const std::size_t k = links_.ranks(), row = static_cast<std::size_t>(me_) * k;
    std::vector<std::byte> bytes((2 * k + 1) * sizeof(double) + kInterfaceText);
    std::memcpy(bytes.data(), &links_.latency_s[row], k * sizeof(double));
    std::memcpy(bytes.data() + k * sizeof(double), &links_.bytes_per_s[row], k * sizeof(double));
    const double complete = complete_;
    std::memcpy(bytes.data() + 2 * k * sizeof(double), &complete, sizeof complete);
    std::memcpy(bytes.data() + (2 * k + 1) * sizeof(double), options_.interface.data(),
                std::min(options_.interface.size(), kInterfaceText - 1));
    return bytes;
  }

  void take_report(int rank, const std::vector<std::byte>& bytes) {
    const std::size_t k = links_.ranks();
    std::vector<double> numbers(2 * k + 1);
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
    for (std::size_t peer = 0; peer < k; ++peer) {
      const int other = static_cast<int>(peer);
      if (!std::isnan(numbers[peer]))
        links_.latency_s[links_.at(rank, other)] = links_.latency_s[links_.at(other, rank)] = numbers[peer];
      if (!std::isnan(numbers[k + peer])) links_.bytes_per_s[links_.at(rank, other)] = numbers[k + peer];
    }
    complete_ = complete_ && numbers[2 * k] > 0;
    std::string& interface = links_.interfaces[static_cast<std::size_t>(links_.hosts[static_cast<std::size_t>(rank)])];
    if (interface.empty()) interface = reinterpret_cast<const char*>(bytes.data() + numbers.size() * sizeof(double));
  }

  void report() {
    const double deadline_s = start_s_ + (2 * round_ + 1) * options_.limit_s;
    const std::vector<std::byte>& own = reports_.emplace_back(own_report());
    if (me_ == 0) take_report(0, own);
    for (int rank = me_ == 0 ? 1 : me_; rank < (me_ == 0 ? transport_.size() : me_ + 1); ++rank) {
      Talk talk(transport_, me_ == 0 ? rank : 0, kReportTag, deadline_s, memory_.back());
      try {
        if (me_ > 0) {
          talk.send(own.data(), own.size());
          continue;
        }
        std::vector<std::byte>& theirs = reports_.emplace_back(own.size());
        talk.receive(theirs.data(), theirs.size());
        take_report(rank, theirs);
      } catch (const GivenUp&) {
        complete_ = false;
        if (me_ == 0) silent_.push_back(rank);
      }
    }
    links_.spread_between_hosts();
    links_.transport = transport_.name();
  }

  Transport& transport_;
  const AllPairsOptions& options_;
  int me_;
  double start_s_;
  LinkMatrix links_;
  int round_ = 0;
  bool complete_ = true;
  std::vector<int> silent_;
  std::deque<Memory> memory_ = std::deque<Memory>(1);
  std::deque<std::vector<std::byte>> reports_;
};

}  // namespace

AllPairs measure_all_pairs(Transport& transport, const AllPairsOptions& options) {
  auto prober = std::make_unique<Prober>(transport, options);
  AllPairs all = prober->run();
  if (!all.complete) keep_memory(std::move(prober));
  return all;
}

}  // namespace echelon::inline comm

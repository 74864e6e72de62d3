// SPDX-License-Identifier: Apache-2.0
#include "comm/links/loaded_links.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "comm/links/keep_memory.hpp"

namespace echelon::inline comm {
namespace {

constexpr int kWordTag = 2, kDataTag = 3;
constexpr std::size_t kLongest = 128 << 10, kShortest = 1 << 10;  // bytes of a message
constexpr int kTurns = 3;

// The messages of one direction between this rank and one peer: `left` more after those in flight.
struct Stream {
  struct Slot {
    std::vector<std::byte> memory;
    Request request;
  };
  int peer = -1;
  bool sends = false;
  std::int64_t left = 0;
  std::array<Slot, 2> slots;
};

class LoadedProbe {
 public:
  LoadedProbe(Transport& transport, const std::vector<int>& leaders, const LoadedLinksOptions& options)
      : transport_(transport), leaders_(leaders), options_(options) {
    const auto at = std::find(leaders.begin(), leaders.end(), transport.rank());
    me_ = static_cast<int>(at - leaders.begin());
  }

  std::vector<LoadedLinks> run() {
    std::vector<LoadedLinks> all;
    const int hosts = static_cast<int>(leaders_.size());
    for (int some = 2;; some = std::min(2 * some, hosts)) {
      LoadedLinks loaded{.hosts = some};
      loaded.ring_bytes_per_s = rate(some, {1});
      std::vector<int> distances(static_cast<std::size_t>(some - 1));
      for (int d = 1; d < some; ++d) distances[static_cast<std::size_t>(d - 1)] = d;
      loaded.shuffle_bytes_per_s = some == 2 ? loaded.ring_bytes_per_s : rate(some, distances);
      if (me_ == 0) all.push_back(loaded);
      if (some == hosts) return all;
    }
  }

 private:
  double now_s() const { return transport_.clock().now_s(); }

  // Each of the first `hosts` hosts sends to those at these distances behind it. Returns bytes per second on leader 0.
  double rate(int hosts, const std::vector<int>& distances) {
    if (me_ >= hosts) return 0;
    std::vector<double> rates;
    for (int turn = 0; turn < kTurns; ++turn) {
      double bytes = options_.seconds * options_.bytes_per_s;  // of a host
      tell(hosts, bytes);
      const double begin_s = now_s();
      bytes = transfer(hosts, distances, bytes);
      rates.push_back(bytes / slowest(hosts, now_s() - begin_s));
    }
    std::sort(rates.begin(), rates.end());
    return rates[kTurns / 2];
  }

  // Leader 0 sends its word to the others, which take it over.
  void tell(int hosts, double& word) {
    if (me_ > 0) return move(leaders_[0], false, word);
    for (int other = 1; other < hosts; ++other) move(leaders_[static_cast<std::size_t>(other)], true, word);
  }

  // On leader 0 the largest word of all; elsewhere this rank's own.
  double slowest(int hosts, double word) {
    if (me_ > 0) {
      move(leaders_[0], true, word);
      return word;
    }
    for (int other = 1; other < hosts; ++other) {
      double theirs = 0;
      move(leaders_[static_cast<std::size_t>(other)], false, theirs);
      word = std::max(word, theirs);
    }
    return word;
  }

  void move(int peer, bool sends, double& word) {
    word_ = word;
    Request request = sends ? transport_.isend(peer, kWordTag, &word_, sizeof word_)
                            : transport_.irecv(peer, kWordTag, &word_, sizeof word_);
    wait(peer, [&] { return transport_.test(request).has_value() ? Moved::all : Moved::nothing; });
    word = word_;
  }

  // Returns the bytes that each host has sent.
  double transfer(int hosts, const std::vector<int>& distances, double bytes) {
    const double each = bytes / static_cast<double>(distances.size());
    const auto length = static_cast<std::size_t>(std::clamp(each / 4, 1.0 * kShortest, 1.0 * kLongest));
    const auto count = std::max<std::int64_t>(1, std::llround(each / static_cast<double>(length)));
    streams_.clear();
    for (const int distance : distances)
      for (const bool sends : {false, true}) {
        const int host = (me_ + (sends ? distance : hosts - distance)) % hosts;
        Stream& stream = streams_.emplace_back();
        stream.peer = leaders_[static_cast<std::size_t>(host)], stream.sends = sends, stream.left = count;
        for (Stream::Slot& slot : stream.slots) slot.memory.resize(length);
      }
    wait(-1, [&] { return advance(); });
    return static_cast<double>(length) * static_cast<double>(count) * static_cast<double>(distances.size());
  }

  enum class Moved : std::uint8_t { nothing, some, all };
  Moved advance() {
    bool moved = false, done = true;
    for (Stream& stream : streams_)
      for (Stream::Slot& slot : stream.slots) {
        if (slot.request.valid()) moved |= transport_.test(slot.request).has_value();
        if (!slot.request.valid() && stream.left > 0) {
          --stream.left;
          moved = true;
          slot.request = stream.sends ? transport_.isend(stream.peer, kDataTag, slot.memory.data(), slot.memory.size())
                                      : transport_.irecv(stream.peer, kDataTag, slot.memory.data(), slot.memory.size());
        }
        done &= !slot.request.valid();
      }
    return done ? Moved::all : moved ? Moved::some : Moved::nothing;
  }

  // Calls `advance` until all has moved. It yields the core between calls, and sleeps once nothing has moved for long,
  // as the engine does.
  template <class Advance>
  void wait(int peer, const Advance& advance) {
    constexpr double kYield_s = 2e-4;
    const double start_s = now_s();
    double moved_s = start_s;
    for (Moved moved = advance(); moved != Moved::all; moved = advance()) {
      const double time_s = now_s();
      if (time_s > start_s + options_.limit_s)
        throw EnvironmentError(fmt::format(
            "rank {}: {} took more than {:g} s", transport_.rank(),
            peer < 0 ? "a transfer among all hosts" : fmt::format("a word with rank {}", peer), options_.limit_s));
      if (moved == Moved::some)
        moved_s = time_s;
      else if (time_s - moved_s < kYield_s)
        sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  Transport& transport_;
  const std::vector<int>& leaders_;
  const LoadedLinksOptions options_;
  int me_ = 0;  // position in leaders_
  double word_ = 0;
  std::vector<Stream> streams_;
};

}  // namespace

std::vector<LoadedLinks> measure_loaded_links(Transport& transport, const std::vector<int>& leaders,
                                              const LoadedLinksOptions& options) {
  auto probe = std::make_unique<LoadedProbe>(transport, leaders, options);
  try {
    return probe->run();
  } catch (...) {  // the library may still write to its memory
    keep_memory(std::move(probe));
    throw;
  }
}

}  // namespace echelon::inline comm

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/late_streams.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

constexpr double kLimit_s = 60;
constexpr std::size_t kMostAtOnce = 3;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> next = 0;
  return next++;
}

}  // namespace

LateStreams::LateStreams(int streams)
    : random_(HashRng(test_seed(), "late streams").at(next_number())), streams_(static_cast<std::size_t>(streams)) {}

int LateStreams::add() {
  const std::lock_guard lock(mutex_);
  streams_.emplace_back();
  return static_cast<int>(streams_.size()) - 1;
}

void LateStreams::push(int stream, Item item) {
  const std::lock_guard lock(mutex_);
  Stream& to = streams_[static_cast<std::size_t>(stream)];
  to.items.push_back(std::move(item));
  ++to.put;
  run_some(static_cast<std::size_t>(random_.below(draws_++, kMostAtOnce)));
}

void LateStreams::put(int stream, std::function<void()> work) { push(stream, {{}, std::move(work)}); }

void LateStreams::put_wait(int stream, std::function<bool()> ready) { push(stream, {std::move(ready), {}}); }

void LateStreams::put_wait(int stream, Mark mark) {
  put_wait(stream, [this, mark] { return streams_[static_cast<std::size_t>(mark.stream)].done >= mark.count; });
}

LateStreams::Mark LateStreams::record(int stream) {
  const std::lock_guard lock(mutex_);
  return {stream, streams_[static_cast<std::size_t>(stream)].put};
}

bool LateStreams::passed(Mark mark) {
  const std::lock_guard lock(mutex_);
  run_some(static_cast<std::size_t>(random_.below(draws_++, kMostAtOnce)));
  return streams_[static_cast<std::size_t>(mark.stream)].done >= mark.count;
}

bool LateStreams::run_some(std::size_t most) {
  bool ran = false;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t first = random_.below(draws_++, streams_.size());
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      Stream& stream = streams_[(first + s) % streams_.size()];
      if (stream.items.empty() || (stream.items.front().ready && !stream.items.front().ready())) continue;
      const std::function<void()> work = std::move(stream.items.front().work);
      stream.items.pop_front();
      if (work) work();
      ++stream.done;
      ran = true;
      break;
    }
  }
  return ran;
}

template <class Done>
bool LateStreams::finish_until(const Done& done, bool may_drop) {
  const double end_s = now_s() + kLimit_s;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      for (bool ran = true; ran && !done();) ran = run_some(1);
      if (done()) return true;
    }
    if (may_drop && std::uncaught_exceptions() > 0) return false;
    ECHELON_CHECK(now_s() < end_s, "a stream waits for what does not come");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void LateStreams::finish(Mark mark) {
  finish_until([&] { return streams_[static_cast<std::size_t>(mark.stream)].done >= mark.count; }, false);
}

void LateStreams::finish_all() {
  const auto all_done = [&] {
    for (const Stream& stream : streams_)
      if (!stream.items.empty()) return false;
    return true;
  };
  if (finish_until(all_done, true)) return;
  const std::lock_guard lock(mutex_);
  for (Stream& stream : streams_) {
    stream.items.clear();
    stream.done = stream.put;
  }
}

}  // namespace echelon::test

// SPDX-License-Identifier: Apache-2.0
#include "comm/engine_body.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/collective/wire_form.hpp"

namespace echelon::inline comm {
namespace {

constexpr double kPublish_s = 5e-3;  // greatest age of the watchdog's view

}  // namespace

Engine::Body::Body(std::unique_ptr<Transport> transport, const EngineOptions& with)
    : options(with), clock(transport->clock()), peer_times(transport->size()), shaped(transport->shape() != nullptr) {
  std::vector<int> world(static_cast<std::size_t>(transport->size()));
  std::iota(world.begin(), world.end(), 0);
  wires.push_back({.transport = std::move(transport), .world = std::move(world), .channels = {}});
  limit(options.sends, options.helpers);
}

void Engine::Body::limit(int sends, int helper_threads) {
  budget.limit(sends);
  if (helper_threads == (helpers ? helpers->size() : 0)) return;
  helpers.reset();
  if (helper_threads == 0) return;
  helpers = std::make_unique<HelperThreads>(helper_threads, wires.front().transport->rank(), [this] { poke(); });
}

void Engine::Body::run() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  pthread_setname_np(pthread_self(), "echelon-comm");
  set_thread_rank(wires.front().transport->rank());
  for (;;) {
    bool moved = false;
    double pause = 0;
    {
      const std::lock_guard drives(driving);
      moved = pass();
      if (stopped) break;
      if (!moved) pause = pause_s(now() - moved_s, options.yield_s);
    }
    if (helped || !working)
      stand_by();
    else if (!moved)
      relax(pause);
  }
}

// The thread that waits for the ticket drives; the engine's own thread sleeps meanwhile.
void Engine::Body::drive_until(const Ticket::State& done) {
  if (helped.exchange(true))
    return;  // another thread drives already: it, or the engine's own thread after it, completes this ticket
  {
    static thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1UL);
    (void)slack;
    const std::lock_guard drives(driving);
    while (!stopped && !done.is_done())
      if (!pass() && !done.is_done()) relax(pause_s(now() - moved_s, options.patience_s));
  }
  bool work_left = false;
  {
    const std::lock_guard lock(mutex);
    helped = false;
    work_left = working || news || stopped;
  }
  if (work_left) wake.notify_all();
}

// Makes one pass over all plans and protocols; returns true if there was progress.
bool Engine::Body::pass() {
  struct Mark {
    std::atomic<double>& begun_s;
    ~Mark() { begun_s.store(0, std::memory_order_relaxed); }
  } mark{pass_begun_s};
  const double begun_s = now();
  pass_begun_s.store(begun_s, std::memory_order_relaxed);
  const PlacedSpans placed({.recorder = spans, .lane = SpanLane::engine});
  const PlacedPeerTimes counted(peer_times);
  bool moved = take_news();
  if (stopped) return moved;
  budget.begin_pass();
  try {
    moved |= admit();
    moved |= drive();
  } catch (...) {
    broken = std::current_exception();
    fail_all(broken);
  }
  moved |= drive_protocols();
  working = busy();
  const double time_s = retired_s > begun_s ? retired_s : now();
  if (!working)
    publish(0);
  else if (time_s - published_s > kPublish_s)
    publish(time_s);
  if (moved || !working) moved_s = time_s;
  budget.idle(time_s - moved_s);
  return moved;
}

// Once `end` is set, everything ends with its error.
bool Engine::Body::take_news() {
  if (!news.load(std::memory_order_acquire)) return false;
  std::unique_lock lock(mutex);
  news.store(false, std::memory_order_relaxed);
  for (Queued& queued : inbox) pending.push_back(std::move(queued));
  for (Protocol& protocol : new_protocols) protocols.push_back(std::move(protocol));
  inbox.clear();
  new_protocols.clear();
  if (!end) return true;
  const std::exception_ptr error = end;
  lock.unlock();
  stopped = true;
  fail_all(error, true);
  publish(0);
  return true;
}

bool Engine::Body::may_start(const Queued& queued, bool library_ahead) {
  const Wire::Channel& channel = queued.wire->channel_of(queued.job);
  if (channel.taken || channel.seen) return false;
  if (library_ahead && queued.job.plan->uses_library()) return false;
  return !queued.job.after || queued.job.after->ready();
}

// Starts every plan that may start: its channel is free, its data are ready, and no earlier library collective waits.
bool Engine::Body::admit() {
  if (pending.empty()) return false;
  if (broken) {
    fail_all(broken);
    return true;
  }
  bool moved = false, library_ahead = false;
  for (Wire& wire : wires)
    for (Wire::Channel& channel : wire.channels) channel.seen = false;
  for (Queued& queued : pending) {
    if (may_start(queued, library_ahead)) {
      queued.wire->channel_of(queued.job).taken = true;
      start(std::exchange(queued, {}));
      moved = true;
    } else {
      queued.wire->channel_of(queued.job).seen = true;
      library_ahead |= queued.job.plan->uses_library();
    }
  }
  if (moved) std::erase_if(pending, [](const Queued& queued) { return !queued.ticket; });
  return moved;
}

void Engine::Body::start(Queued queued) {
  std::unique_ptr<Executor> executor;
  if (idle_executors.empty()) {
    executor = std::make_unique<Executor>(options.window);
  } else {
    executor = std::move(idle_executors.back());
    idle_executors.pop_back();
  }
  const Job& job = queued.job;
  queued.ticket->started_s.store(pass_begun_s.load(std::memory_order_relaxed), std::memory_order_relaxed);
  try {
    executor->start(job.plan, job.data, job.dtype, job.channel, job.form.get(), {helpers.get(), options.helped_bytes},
                    &queued.wire->channel_of(job).scratch);
  } catch (...) {
    queued.ticket->finish(std::current_exception(), now());
    throw;
  }
  const auto at = std::upper_bound(live.begin(), live.end(), job.priority, [](int priority, const Live& other) {
    return priority < other.queued.job.priority;
  });
  live.insert(at, Live{std::move(queued), std::move(executor)});
}

void Engine::Body::retire(Live& done) {
  done.queued.wire->channel_of(done.queued.job).taken = false;
  done.queued.ticket->wire = done.executor->wire();
  idle_executors.push_back(std::move(done.executor));
  retired_s = now();
  done.queued.ticket->finish(nullptr, retired_s);
  done.queued = {};
}

bool Engine::Body::drive() {
  bool moved = false, finished = false;
  for (Live& plan : live) {
    span_place.world = peer_times_place.world = plan.queued.wire->world.data();
    if (!plan.executor->done()) moved |= plan.executor->advance(*plan.queued.wire->transport, budget);
    if (plan.executor->done()) {
      retire(plan);
      finished = true;
    }
  }
  if (finished) std::erase_if(live, [](const Live& plan) { return !plan.executor; });
  return moved || finished;
}

bool Engine::Body::drive_protocols() {
  bool moved = false;
  for (Protocol& protocol : protocols) {
    span_place.world = peer_times_place.world = protocol.wire->world.data();
    moved |= protocol.driver->pass(*protocol.wire->transport, budget);
  }
  return moved;
}

bool Engine::Body::busy() const {
  const auto under_way = [](const Protocol& protocol) { return protocol.driver->busy(); };
  if (!live.empty() || !pending.empty() || std::any_of(protocols.begin(), protocols.end(), under_way)) return true;
  return shaped && std::isfinite(wakes_at_s());
}

// The earliest time over all transports.
double Engine::Body::wakes_at_s() const {
  double first = std::numeric_limits<double>::infinity();
  for (const Wire& wire : wires)
    if (wire.transport) first = std::min(first, wire.transport->wakes_at_s());
  return first;
}

// Removes a machine. Called by a thread other than the one that drives.
void Engine::Body::detach(const ProtocolDriver& driver) {
  const std::lock_guard drives(driving);
  if (news) take_news();
  for (Protocol& protocol : protocols)
    if (protocol.driver.get() == &driver) protocol.driver->end(*protocol.wire->transport, budget);
  std::erase_if(protocols, [&](const Protocol& protocol) { return protocol.driver.get() == &driver; });
}

void Engine::Body::break_off(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex);
    if (!end) end = std::move(error);
    news = true;
  }
  wake.notify_all();
}

void Engine::Body::poke() {
  {
    const std::lock_guard lock(mutex);
    news.store(true, std::memory_order_release);
  }
  wake.notify_all();
}

void Engine::Body::publish(double time_s) {
  published_s = time_s;
  if (live.empty() && protocols.empty() && !shows_waits) return;
  const std::lock_guard lock(mutex);
  published.clear();
  for (const Protocol& protocol : protocols)
    for (const ProtocolWait& wait : protocol.driver->waits())
      published.push_back({.channel = wait.tag,
                           .step = wait.step,
                           .peer = protocol.wire->rank_in_world(wait.peer),
                           .sending = wait.sending,
                           .since_s = wait.since_s});
  for (const Live& plan : live)
    if (const std::optional<StepWait> wait = plan.executor->wait())
      published.push_back({.channel = plan.queued.job.channel,
                           .step = wait->step,
                           .peer = plan.queued.wire->rank_in_world(wait->peer),
                           .sending = wait->sending,
                           .since_s = wait->since_s});
  shows_waits = !published.empty();
}

// The pause of the thread that drives if nothing moved for idle_s; 0: yield.
double Engine::Body::pause_s(double idle_s, double yield_s) const {
  if (!shaped) return idle_s < yield_s ? 0 : options.nap_s(idle_s);
  constexpr double kShortest_s = 10e-6;  // about the time that a small message takes through the kernel
  return std::clamp(wakes_at_s() - now(), 0.0, std::min(options.nap_s(idle_s), std::max(kShortest_s, idle_s / 10)));
}

// A call of submit() ends a sleep early.
void Engine::Body::relax(double pause_s) {
  if (pause_s == 0) {
    sched_yield();
    return;
  }
  std::unique_lock lock(mutex);
  if (!news.load(std::memory_order_relaxed)) wake.wait_for(lock, std::chrono::duration<double>(pause_s));
}

void Engine::Body::stand_by() {
  std::unique_lock lock(mutex);
  wake.wait(lock, [&] { return !helped && (news || working || stopped); });
}

void Engine::Body::fail_all(const std::exception_ptr& error, bool with_protocols) {
  for (Live& plan : live) {
    Wire& wire = *plan.queued.wire;
    plan.executor->cancel(*wire.transport, budget);
    wire.channel_of(plan.queued.job).taken = false;
    plan.queued.ticket->finish(error, now());
  }
  live.clear();
  for (Queued& queued : pending)
    if (queued.ticket) queued.ticket->finish(error, now());
  pending.clear();
  if (!with_protocols) return;  // their errors are their own
  for (Protocol& protocol : protocols) protocol.driver->end(*protocol.wire->transport, budget, error);
  protocols.clear();
}

}  // namespace echelon::inline comm

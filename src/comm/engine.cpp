// SPDX-License-Identifier: Apache-2.0
#include "comm/engine.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/wire_form.hpp"
#include "comm/engine_body.hpp"

namespace echelon::inline comm {

Engine::Engine(std::unique_ptr<Transport> transport, const EngineOptions& options) {
  ECHELON_CHECK(transport != nullptr);
  body_ = std::make_shared<Body>(std::move(transport), options);
  wire_ = &body_->wires.front();
  owner_ = true;
  body_->thread = std::thread([body = body_.get()] { body->run(); });
}

Engine::~Engine() {
  if (!owner_) return;
  break_off(std::make_exception_ptr(EnvironmentError("the communication engine was stopped before this was done")));
  settle();
}

void Engine::break_off(std::exception_ptr error) { body_->break_off(std::move(error)); }

void Engine::record_spans(SpanRecorder* recorder) {
  const std::lock_guard drives(body_->driving);
  body_->spans = recorder;
  if (body_->helpers) body_->helpers->settle();
}

void Engine::limit(int sends, int helpers) {
  const std::lock_guard drives(body_->driving);
  ECHELON_CHECK(body_->live.empty() && body_->pending.empty(), "a plan is in progress while the engine is limited");
  body_->limit(sends, helpers);
}

void Engine::settle() {
  ECHELON_CHECK(owner_, "the engine of all ranks settles for its parts");
  if (body_->thread.joinable()) body_->thread.join();
  const std::lock_guard drives(body_->driving);  // waits for a thread that drives while it waits for a ticket
}

std::unique_ptr<Engine> Engine::split(int color, int key) {
  Wire* wire = nullptr;
  {
    const std::lock_guard drives(body_->driving);
    if (const std::exception_ptr end = body_->ended()) std::rethrow_exception(end);
    ECHELON_CHECK(body_->live.empty() && body_->pending.empty(), "a plan is in progress while the engine is split");
    wire = &body_->wires.emplace_back();
    wire->transport = wire_->transport->split(color, key);
  }
  std::unique_ptr<Engine> part(new Engine(body_, *wire));
  wire->world.assign(static_cast<std::size_t>(part->size()), -1);
  std::vector<int> world = wire->world;
  world[static_cast<std::size_t>(part->rank())] = wire_->rank_in_world(rank());
  part->run({.plan = make_allgather(part->rank(), part->size(), sizeof(int)),
             .data = world.data(),
             .dtype = DType::u8,
             .after = nullptr});
  wire->world = std::move(world);
  return part;
}

std::unique_ptr<Transport> Engine::split_transport(int color, int key) {
  const std::lock_guard drives(body_->driving);
  if (const std::exception_ptr end = body_->ended()) std::rethrow_exception(end);
  ECHELON_CHECK(body_->live.empty() && body_->pending.empty(), "a plan is in progress while the transport is split");
  return wire_->transport->split(color, key);
}

std::shared_ptr<SharedBlock> Engine::share(std::size_t bytes) {
  const std::lock_guard drives(body_->driving);
  if (const std::exception_ptr end = body_->ended()) std::rethrow_exception(end);
  ECHELON_CHECK(body_->live.empty() && body_->pending.empty(), "a plan is in progress while memory is shared");
  return wire_->transport->share(bytes);
}

int Engine::rank() const { return wire_->transport->rank(); }
int Engine::size() const { return wire_->transport->size(); }
const Transport& Engine::transport() const { return *wire_->transport; }
void Engine::restart_card_rates() { wire_->transport->restart_card_rates(); }
std::vector<PeerTime> Engine::peer_times() const { return body_->peer_times.read(); }
WireCounters Engine::counters() const { return wire_->transport->counters(); }

std::size_t Engine::scratch_bytes() const {
  const std::lock_guard drives(body_->driving);
  std::size_t bytes = 0;
  for (const Wire& wire : body_->wires)
    for (const Wire::Channel& channel : wire.channels) bytes += channel.scratch.bytes();
  return bytes;
}

Ticket Engine::enqueue(Job job) {
  ECHELON_CHECK(job.plan != nullptr);
  ECHELON_CHECK_GE(job.channel, 0);
  ECHELON_CHECK(job.data != nullptr || job.plan->steps() == 0, "a plan of {} steps without data", job.plan->steps());
  if (job.plan->uses_library() && job.priority != 0)
    throw ConfigError(
        fmt::format("all-reduce '{}' runs in the order of submission and has no priorities", job.plan->name()));
  if (job.plan->uses_library() && job.form)
    throw ConfigError(fmt::format("all-reduce '{}' is the library's own and cannot carry values coded as '{}'",
                                  job.plan->name(), job.form->name()));
  if (job.plan->shared().phases > 0 && job.form)
    throw ConfigError(fmt::format("all-reduce '{}' sums values in shared memory and cannot carry them coded as '{}'",
                                  job.plan->name(), job.form->name()));
  auto state = std::make_shared<Ticket::State>();
  state->driver = body_;
  const std::lock_guard lock(body_->mutex);
  if (body_->end) {
    state->finish(body_->end, clock().now_s());
    return Ticket(std::move(state));
  }
  body_->inbox.push_back({std::move(job), wire_, state});
  body_->news.store(true, std::memory_order_release);
  return Ticket(std::move(state));
}

Ticket Engine::submit(Job job) {
  Ticket ticket = enqueue(std::move(job));
  body_->wake.notify_all();
  return ticket;
}

void Engine::run(Job job) { enqueue(std::move(job)).wait(); }

class Engine::Attached final : public Attachment {
 public:
  Attached(std::shared_ptr<Body> body, std::shared_ptr<ProtocolDriver> driver)
      : body_(std::move(body)), driver_(std::move(driver)) {}
  ~Attached() override { body_->detach(*driver_); }
  void post(Token token, std::shared_ptr<const Event> after) override {
    driver_->post(token, std::move(after));
    body_->poke();
  }

 private:
  std::shared_ptr<Body> body_;
  std::shared_ptr<ProtocolDriver> driver_;
};

std::unique_ptr<Attachment> Engine::attach(Machine& machine, ProtocolHost& host) {
  auto driver = std::make_shared<ProtocolDriver>(machine, host);
  std::exception_ptr end;
  {
    const std::lock_guard lock(body_->mutex);
    end = body_->end;
    if (!end) body_->new_protocols.push_back({driver, wire_});
  }
  if (end) host.failed(end);
  body_->poke();
  return std::make_unique<Attached>(body_, std::move(driver));
}

Promise Engine::promise() {
  auto state = std::make_shared<Ticket::State>();
  state->driver = body_;
  return Promise(std::move(state));
}

namespace {

constexpr double kStuckPass_s = 0.1;

}  // namespace

std::vector<WaitView> Engine::waits() const {
  const std::lock_guard lock(body_->mutex);
  std::vector<WaitView> all = body_->published;
  for (const auto& [note, wait] : body_->noted) all.push_back(wait);
  for (const auto& [note, look] : body_->watched)
    if (const std::optional<WaitView> wait = look()) all.push_back(*wait);
  if (const double begun_s = body_->pass_begun_s.load(std::memory_order_relaxed);
      begun_s > 0 && clock().now_s() - begun_s > kStuckPass_s)
    all.push_back({.channel = 0, .step = 0, .peer = kMessageLibrary, .sending = false, .since_s = begun_s});
  return all;
}

std::uint64_t Engine::note_wait(WaitView wait) {
  wait.peer = wire_->rank_in_world(wait.peer);
  const std::lock_guard lock(body_->mutex);
  body_->noted[body_->next_note] = wait;
  return body_->next_note++;
}

void Engine::end_wait(std::uint64_t noted) {
  const std::lock_guard lock(body_->mutex);
  body_->noted.erase(noted);
  body_->watched.erase(noted);
}

std::uint64_t Engine::note_watch(std::function<std::optional<WaitView>()> look) {
  const std::lock_guard lock(body_->mutex);
  body_->watched[body_->next_note] = std::move(look);
  return body_->next_note++;
}

}  // namespace echelon::inline comm

// SPDX-License-Identifier: Apache-2.0
#include "comm/clock_offsets.hpp"

#include <cstdint>
#include <limits>
#include <memory>

namespace echelon::inline comm {
namespace {

constexpr int kRounds = 40, kLeastRounds = 8;
constexpr double kLong_s = 20e-3;

// Messages between rank 0 and the others, one at a time.
class Wire {
 public:
  Wire(Engine& engine, int channel) : engine_(engine), channel_(channel) {}

  void send(int peer, void* data, std::size_t bytes) { run(StepKind::send, peer, data, bytes); }
  void receive(int peer, void* data, std::size_t bytes) { run(StepKind::recv, peer, data, bytes); }

 private:
  void run(StepKind kind, int peer, void* data, std::size_t bytes) {
    if (bytes == 0) return;
    const Step step{.kind = kind, .peer = peer, .range = {0, static_cast<std::int64_t>(bytes)}};
    Job job;
    job.plan = std::make_shared<ListedPlan>("one message", std::vector<Step>{step});
    job.data = data;
    job.dtype = DType::u8;
    job.channel = channel_;
    engine_.run(std::move(job));
  }

  Engine& engine_;
  int channel_;
};

// The content of a question and of its answer.
struct Word {
  double clock_s = 0;     // the answer
  std::int64_t last = 0;  // 1: this is the last round of this rank
};

ClockOffset ask(Wire& wire, int rank, const Clock& clock) {
  ClockOffset best{.error_s = std::numeric_limits<double>::infinity()};
  const double start_s = clock.now_s();
  bool last = false;
  for (int round = 1; !last; ++round) {
    last = round == kRounds || (round >= kLeastRounds && clock.now_s() - start_s > kLong_s);
    Word word{.last = last ? 1 : 0};
    const double before_s = clock.now_s();
    wire.send(rank, &word, sizeof word);
    wire.receive(rank, &word, sizeof word);
    const double after_s = clock.now_s(), error_s = (after_s - before_s) / 2;
    if (error_s >= best.error_s) continue;
    best.at_s = before_s + error_s;
    best.offset_s = word.clock_s - best.at_s;
    best.error_s = error_s;
  }
  return best;
}

void answer(Wire& wire, const Clock& clock) {
  for (Word word; word.last == 0;) {
    wire.receive(0, &word, sizeof word);
    word.clock_s = clock.now_s();
    wire.send(0, &word, sizeof word);
  }
}

}  // namespace

std::vector<ClockOffset> estimate_clock_offsets(Engine& engine, int channel, const Clock& clock) {
  Wire wire(engine, channel);
  if (engine.rank() > 0) {
    answer(wire, clock);
    return {};
  }
  std::vector<ClockOffset> all{{.at_s = clock.now_s()}};
  for (int rank = 1; rank < engine.size(); ++rank) all.push_back(ask(wire, rank, clock));
  return all;
}

double offset_at(const ClockOffset& before, const ClockOffset& after, double at_s) {
  const double begin_s = before.at_s + before.offset_s, end_s = after.at_s + after.offset_s;
  if (end_s <= begin_s) return before.offset_s;
  return before.offset_s + (after.offset_s - before.offset_s) * (at_s - begin_s) / (end_s - begin_s);
}

void collect_texts(Engine& engine, int channel, const std::string& own,
                   const std::function<void(int, const std::string&)>& take) {
  Wire wire(engine, channel);
  if (engine.rank() > 0) {
    std::uint64_t size = own.size();
    wire.send(0, &size, sizeof size);
    std::string text = own;
    return wire.send(0, text.data(), text.size());
  }
  take(0, own);
  for (int rank = 1; rank < engine.size(); ++rank) {
    std::uint64_t size = 0;
    wire.receive(rank, &size, sizeof size);
    std::string text(size, '\0');
    wire.receive(rank, text.data(), text.size());
    take(rank, text);
  }
}

}  // namespace echelon::inline comm

// SPDX-License-Identifier: Apache-2.0
// Messages that no rank of this run sends, because of their length or an impossible head: each fails a check before
// anything is done with it.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "exchange/asynchronous/buffers.hpp"
#include "exchange/backup/protocol.hpp"
#include "exchange/server/form.hpp"
#include "exchange/strom/protocol.hpp"
#include "tests/support/async_setting.hpp"
#include "tests/support/hand_driven.hpp"
#include "tests/support/refusal.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::HandDriven;
using test::refusal;

constexpr int kTag = 10, kBucketTag = 20;
constexpr std::int64_t kElems = 6;

// Plain memory of a rank with one bucket, half of which each rank serves.
class Memory final : public BackupMemory {
 public:
  Bytes push(int, int) override { return {values_.data(), bytes()}; }
  Bytes weights_room(int, int) override { return {arriving_.data(), bytes()}; }
  Bytes push_room(int, int worker) override { return {rooms_[worker % 3].data(), bytes()}; }
  void take_step(int, const BackupCommand& command) override { steps.push_back(command); }
  Message weights(int) override { return std::make_shared<std::vector<std::byte>>(bytes()); }
  void take_own(int) override {}
  std::size_t bytes() const { return kElems / 2 * sizeof(float); }
  std::vector<BackupCommand> steps;

 private:
  using Values = std::vector<float>;
  Values values_ = Values(kElems), arriving_ = Values(kElems);
  Values rooms_[3] = {Values(kElems), Values(kElems), Values(kElems)};
};

// Ranks 0 and 1 serve, and rank 0 coordinates; of 3 workers 2 are needed.
struct Backup {
  explicit Backup(int rank)
      : protocol({.rank = rank,
                  .workers = 3,
                  .needed = 2,
                  .first_step = 0,
                  .buckets = {{.parts = {{0, 3}, {3, 6}, {6, 6}}, .tag = kBucketTag}},
                  .tag = kTag},
                 memory),
        carrier(protocol) {}
  // Makes a command to a server that does not coordinate.
  std::string command(std::int64_t step, std::int64_t joins, std::uint64_t entered) {
    std::vector<std::uint64_t> words(BackupProtocol::command_bytes(3) / 8);
    words[0] = static_cast<std::uint64_t>(step);
    words[1] = static_cast<std::uint64_t>(joins);
    words[4] = entered;
    return refusal<Error>([&] { carrier.arrive(0, kTag + 2, words); });
  }

  Memory memory;
  BackupProtocol protocol;
  HandDriven carrier;
};

}  // namespace

TEST_CASE("a server with backup workers refuses gradients, commands and reports of another length",
          "[exchange][protocol]") {
  const std::vector<float> gradient(3), shorter(2);
  CHECK_NOTHROW(Backup(1).carrier.arrive(2, kBucketTag, gradient));
  CHECK_THAT(refusal<Error>([&] { Backup(1).carrier.arrive(2, kBucketTag, shorter); }), Contains("bytes of a message"));
  CHECK_THAT(refusal<Error>([&] { Backup(1).carrier.arrive(0, kTag + 2, shorter); }), Contains("bytes of a message"));
  CHECK_THAT(refusal<Error>([&] { Backup(0).carrier.arrive(2, kTag, shorter); }), Contains("bytes of a message"));
}

TEST_CASE("a server with backup workers refuses commands that its coordinator cannot have given",
          "[exchange][protocol]") {
  CHECK_THAT(Backup(1).command(0, 3, 0), Contains("worker 3 of 3 joins"));
  CHECK_THAT(Backup(1).command(0, -2, 3), Contains("worker -2 of 3 joins"));
  CHECK_THAT(Backup(1).command(0, 1LL << 40, 0), Contains("joins"));
  CHECK_THAT(Backup(1).command(0, -1, 0), Contains("nobody enters step 0"));
  CHECK_THAT(Backup(1).command(4, -1, 5), Contains("step that a command closes"));
  Backup server(1);
  CHECK(server.command(0, -1, 5).empty());
  CHECK(server.memory.steps.empty());
  server.carrier.arrive(0, kBucketTag, std::vector<float>(3));
  server.carrier.arrive(2, kBucketTag, std::vector<float>(3));
  REQUIRE(server.memory.steps.size() == 1);
  CHECK(server.memory.steps[0].entered == std::vector<int>{0, 2});
}

TEST_CASE("a worker refuses weights and verdicts that do not follow its step", "[exchange][protocol]") {
  for (const std::vector<std::int64_t>& verdict :
       {std::vector<std::int64_t>{1, 1}, std::vector<std::int64_t>{0, 1}, std::vector<std::int64_t>{1}}) {
    Backup worker(2);
    worker.protocol.set_complete({.step = 0, .weight = 1, .whole = 3, .learning_rate = 0.1});
    worker.carrier.post(BackupProtocol::token(BackupProtocol::Word::push, 0));
    worker.carrier.post(BackupProtocol::token(BackupProtocol::Word::complete));
    worker.carrier.complete_sends();
    CHECK_THAT(refusal<Error>([&] { worker.carrier.arrive(1, kBucketTag + 1, std::vector<float>(1)); }),
               Contains("bytes of a message"));
    const std::string refused = refusal<Error>([&] { worker.carrier.arrive(0, kTag + 1, verdict); });
    CHECK(refused.empty() == (verdict == std::vector<std::int64_t>{1, 1}));
  }
}

TEST_CASE("an asynchronous rank without a codec refuses coded messages", "[exchange][async]") {
  const test::AsyncSetting setting = test::draw_async_setting("lossless", 3);
  int server = 0;
  while (setting.parts[0][test::at(server)].empty()) ++server;
  std::vector<ArenaRange> own;
  for (std::size_t b = 0; b < setting.buckets.size(); ++b) {
    const ElemRange part = setting.parts[b][test::at(server)];
    own.push_back({setting.buckets[b].begin + part.begin, setting.buckets[b].begin + part.end});
  }
  AsyncServed served(open_device("reference", {}), setting.parameters, DType::f32, own, {.workers = setting.workers});
  const int rank = server < setting.workers ? server : 0;
  AsyncBuffers memory({.rank = rank,
                       .workers = setting.workers,
                       .buckets = setting.buckets,
                       .parts = setting.parts,
                       .dtype = DType::f32},
                      setting.parameters, rank == server ? &served : nullptr);
  const AsyncHeader coded{.flags = 1};
  const std::vector<std::byte> payload(8);
  CHECK_THAT(refusal<Error>([&] { memory.take(0, server, coded, payload); }), Contains("codes nothing"));
  if (rank != server) return;
  CHECK_THAT(refusal<Error>([&] { memory.apply(0, 0, {}, coded, payload); }), Contains("codes nothing"));
  CHECK_THAT(refusal<Error>([&] { memory.answer(0, 0, coded); }), Contains("codes nothing"));
}

TEST_CASE("a coded message of a server that is shorter than its statistics is refused", "[exchange][codec]") {
  ParameterSet parameters = test::normed_layers(5, 4, 5);
  ExchangeConfig config;
  config.codec = "int8";
  const ElemRange all{0, parameters.elems()};
  const auto form = ServerForm::make(config, parameters, DType::f32, {0, parameters.elems()}, {all}, {}, false);
  std::vector<float> values(test::at(parameters.elems()));
  const std::vector<std::byte> wire(form->most_bytes(parameters.elems()));
  CHECK_THAT(refusal<Error>([&] { form->decode(wire.data(), 15, values.data(), all); }), Contains("statistics"));
  CHECK_THAT(refusal<Error>([&] { form->decode_add(wire.data(), 0, values.data(), all); }), Contains("statistics"));
  CHECK_NOTHROW(form->decode(wire.data(), wire.size(), values.data(), all));
}

TEST_CASE("strategy strom refuses an empty message in a round, and acknowledgements of what was not sent",
          "[exchange][strom]") {
  const std::vector<std::byte> nothing;
  StromProtocol synchronous(0, 2, {.rooms = {64}, .first_tag = kTag});
  CHECK_THAT(refusal<Error>([&] { HandDriven(synchronous).arrive(1, kTag + 2, nothing); }), Contains("empty message"));
  StromProtocol asynchronous(0, 2, {.asynchronous = true, .rooms = {64}, .first_tag = kTag});
  CHECK_THAT(refusal<Error>([&] { HandDriven(asynchronous).arrive(1, kTag + 1, nothing); }), Contains("acknowledges"));
}

}  // namespace echelon

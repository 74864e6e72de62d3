// SPDX-License-Identifier: Apache-2.0
// exchange.asynchronous.memory: servers whose weights lie on a device out of the host's reach, and whose work stays
// pending until somebody waits for it, repeat the recorded order of servers in host memory with the same bits: by any
// rules, coded, inside the workers and beside them, and from a checkpoint.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

ReplicaRun run_of(const AsynchronousKeys& keys, int server_ranks, std::int64_t bound) {
  return {.graph = small_batch_norm_net(),
          .shares = {2, 1, 3},
          .strategy = bound > 0 ? "stale_synchronous" : "asynchronous",
          .asynchronous = keys,
          .bound = bound,
          .server_ranks = server_ranks,
          .device = "discrete",
          .steps = 12,
          .learning_rate = 0.02,
          .pause_s = 0.001};
}

// Runs with servers in host memory, then repeats that order of arrivals with servers in either memory.
void check_same_on_device(ReplicaRun run) {
  run.asynchronous.memory = ServedMemory::host;
  const ReplicaResult recorded = train_replicas(run);
  check_one_model(recorded);
  run.recorded = recorded.orders;
  for (const ServedMemory memory : {ServedMemory::host, ServedMemory::device}) {
    CAPTURE(memory == ServedMemory::device, run.resume_at);
    run.asynchronous.memory = memory;
    const ReplicaResult repeated = train_replicas(run);
    check_one_model(repeated);
    CHECK((repeated.weights == recorded.weights));  // extra parentheses: not printed on failure
    CHECK(repeated.orders == recorded.orders);
    CHECK(repeated.sent_bytes == recorded.sent_bytes);
  }
}

}  // namespace

TEST_CASE("asynchronous servers in device memory have the bits of those in host memory, by any rules",
          "[contract][asynchronous]") {
  std::vector<AsynchronousKeys> rules(8);
  rules[1].soft = 2;
  rules[2].states = AsyncStates::server;
  rules[3].soft = 2, rules[3].states = AsyncStates::server;
  rules[4].staleness_scale = 0.5, rules[4].delay_compensation = 0.1;
  rules[5].drop_above = 2, rules[5].delay_compensation = 0.1, rules[5].compensation_decay = 0.9;
  rules[6].states = AsyncStates::server, rules[6].delay_compensation = 0.1;
  rules[7].soft = 2, rules[7].states = AsyncStates::server;
  rules[7].delay_compensation = 0.1, rules[7].compensation_decay = 0.9;
  for (std::size_t i = 0; i < rules.size(); ++i)
    for (const int server_ranks : {0, 1})
      for (const int resume_at : {-1, 7}) {
        CAPTURE(i, server_ranks);
        ReplicaRun run = run_of(rules[i], server_ranks, static_cast<std::int64_t>(i % 3));
        run.rule = i % 4 < 2 ? "sgd" : "adam", run.resume_at = resume_at;
        if (run.rule == "adam") run.learning_rate = 0.003;
        check_same_on_device(run);
      }
}

TEST_CASE("asynchronous servers in device memory have the bits of those in host memory, coded",
          "[contract][asynchronous][codec]") {
  std::vector<AsynchronousKeys> rules(2);
  rules[1].states = AsyncStates::server, rules[1].delay_compensation = 0.1;
  for (const std::string codec : {"int8", "topk", "lossless"})
    for (const AsynchronousKeys& keys : rules)
      for (const int server_ranks : {0, 1})
        for (const int resume_at : {-1, 7}) {
          CAPTURE(codec, keys.delay_compensation, server_ranks);
          ReplicaRun run = run_of(keys, server_ranks, 0);
          run.codec = codec, run.dtype = run.activations = DType::f32, run.resume_at = resume_at;
          check_same_on_device(run);
        }
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// The n-th call fails: the result is an exception of the right type with the library's message, nothing is left behind,
// and the failed device gets no further call.
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "tests/cuda_calls/scenarios.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using namespace echelon::test;
using calls::Failure;
using calls::Injected;
using calls::Site;

namespace {

bool begins(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

// Calls whose error is an answer: an algorithm that is not supported (if it was the only one, the op is refused), or
// memory that cannot be shared.
bool is_answer(const std::string& call) {
  return begins(call, "cudnnGetConvolution") || call == "cudaIpcGetMemHandle" || call == "cudaIpcOpenMemHandle";
}

// Calls that destroy an object, or that are made only while one is destroyed.
bool ends(const std::string& call) {
  return call.find("Destroy") != std::string::npos || call.find("Free") != std::string::npos ||
         call == "cudaIpcCloseMemHandle" || call == "ncclCommAbort";
}

// A caller that counts the GPUs gets the reason why there are none.
bool answers_count(const std::string& message) { return message.find("no usable CUDA device") != std::string::npos; }

// Whether the message names the call: by its text in the source, by the op whose kernels were launched or, if memory is
// missing, by the purpose of the memory.
bool names(const std::string& message, const std::string& call) {
  const std::string plain = call.substr(0, call.find("_v2"));
  if (message.find(plain) != std::string::npos) return true;
  if (call == "cudaGetDeviceCount" && answers_count(message)) return true;
  if (call == "__cudaLaunchKernel") return message.find(" at ") != std::string::npos;
  if (call == "cudaMalloc") return message.find("cannot be allocated") != std::string::npos;
  if (begins(call, "cudnnCreate") && call != "cudnnCreate")
    return message.find("create(&handle_)") != std::string::npos;
  return begins(call, "cudnnConvolution") && message.find(" in conv_") != std::string::npos;
}

struct Outcome {
  int code = 0;  // 0: no exception
  std::string message;
};

Outcome run(const Scenario& scenario) {
  try {
    scenario.run();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::exception& error) {
    return {kExitInternal, error.what()};
  }
  return {};
}

// Calls by number in a run without errors.
std::map<std::int64_t, std::string> calls_by_number(const std::vector<Site>& sites) {
  std::map<std::int64_t, std::string> all;
  for (const Site& site : sites)
    for (const std::int64_t number : site.numbers) all[number] = site.call;
  return all;
}

// Whether a destructor may have made the call: it selects the device or waits, and then something is destroyed.
bool while_ending(const std::map<std::int64_t, std::string>& calls, std::int64_t number) {
  for (auto at = calls.find(number); at != calls.end(); ++at) {
    if (ends(at->second)) return true;
    if (at->second != "cudaSetDevice" && at->second != "cudaStreamSynchronize") return false;
  }
  return true;
}

// Two numbers of each site: the first that no destructor can have made, else the first; and one drawn by the seed.
std::set<std::int64_t> numbers_of(const Site& site, const std::map<std::int64_t, std::string>& calls,
                                  const HashRng& rng) {
  std::set<std::int64_t> numbers{site.numbers.front()};
  for (const std::int64_t number : site.numbers)
    if (!while_ending(calls, number)) {
      numbers = {number};
      break;
    }
  numbers.insert(site.numbers[rng.below(static_cast<std::uint64_t>(site.numbers.front()), site.numbers.size())]);
  return numbers;
}

void check_failure(const Scenario& scenario, const std::string& call, const Failure& failure, bool ending) {
  ledger().begin({});
  ledger().fail(failure);
  const Outcome outcome = run(scenario);
  const auto injected = ledger().injected();
  INFO(scenario.name << ", call " << failure.number << ", " << call << "\n" << outcome.message);
  REQUIRE(injected.has_value());
  INFO(injected->call << (failure.memory ? " without memory" : ""));
  CHECK(complaints() == "");
  if (is_answer(injected->call))
    CHECK((outcome.code == kExitOk || outcome.message.find("device.allow_fallback") != std::string::npos));
  // A destructor does not throw; CUDA keeps the error, and the next launch may find it.
  const bool found_later = outcome.message.find(injected->text) != std::string::npos;
  if (ends(injected->call)) CHECK((outcome.code == kExitOk || found_later));
  if (ends(injected->call) || is_answer(injected->call)) return;
  if (outcome.code == kExitOk) {
    CHECK(ending);
    return;
  }
  CHECK(ledger().left_error() == "");
  // If it is found where nothing may be thrown, it marks the card, whatever it was (DeviceAllreduce::done).
  const bool marked = outcome.message.find("failed earlier") != std::string::npos;
  const bool memory = failure.memory && !begins(injected->call, "nccl") && !answers_count(outcome.message) && !marked;
  CHECK(outcome.code == (memory ? kExitMemory : kExitEnvironment));
  CHECK(names(outcome.message, injected->call));
  if (outcome.message.find("cannot be allocated") == std::string::npos)
    CHECK(outcome.message.find(injected->text) != std::string::npos);
  // Launches are checked once per op, after its last one.
  if (injected->call != "__cudaLaunchKernel") CHECK(injected->work_after == std::vector<std::string>{});
}

}  // namespace

TEST_CASE("a call that fails ends what was done with its words, and leaves nothing behind", "[cuda_calls][errors]") {
  std::set<std::pair<std::string, const void*>> places;
  std::set<std::string> names;
  int injections = 0;
  for (const Scenario& scenario : scenarios()) {
    ledger().begin({});
    scenario.run();
    REQUIRE(complaints() == "");
    const std::vector<Site> sites = ledger().sites();
    const auto calls = calls_by_number(sites);
    const HashRng rng(static_cast<std::uint64_t>(test_seed()), scenario.name);
    for (const Site& site : sites) {
      if (!places.insert({site.call, site.from}).second) continue;
      names.insert(site.call);
      for (const std::int64_t number : numbers_of(site, calls, rng))
        for (const bool memory : {false, true}) {
          ++injections;
          check_failure(scenario, site.call, {.number = number, .memory = memory}, while_ending(calls, number));
        }
    }
  }
  std::printf("%d errors injected at %zu places that make %zu different calls\n", injections, places.size(),
              names.size());
  CHECK(places.size() > 100);
}

// The error of an earlier kernel is found by whatever call comes next, and is kept.
TEST_CASE("a card whose context is lost ends the run, and all that can be given back is", "[cuda_calls][errors]") {
  for (const Scenario& scenario : {training_of("cnn_32_64", small_cnn(), {}),
                                   training_of("batch norm", small_batch_norm_net(), {.activations = DType::bf16})}) {
    ledger().begin({});
    scenario.run();
    const std::int64_t all = ledger().calls();
    const HashRng rng(static_cast<std::uint64_t>(test_seed()), "lost");
    for (std::uint64_t draw = 0; draw < 20; ++draw) {
      const auto number = 1 + static_cast<std::int64_t>(rng.below(draw, static_cast<std::uint64_t>(all) * 9 / 10));
      for (const char* call : {"cudaStreamSynchronize", "cudaMemcpyAsync", "__cudaLaunchKernel"}) {
        ledger().begin({});
        constexpr int kIllegalAddress = 700;  // cudaErrorIllegalAddress
        const auto nth = 1 + number % 8;
        ledger().fail({.call = call, .nth = nth, .status = kIllegalAddress, .sticky = true});
        const Outcome outcome = run(scenario);
        INFO(scenario.name << ", " << call << " " << nth << "\n" << outcome.message);
        REQUIRE(ledger().injected().has_value());
        CHECK(outcome.code == kExitEnvironment);
        // Or the message of the library that found it.
        CHECK((outcome.message.find("an illegal memory access was encountered") != std::string::npos ||
               outcome.message.find("EXECUTION_FAILED") != std::string::npos));
        CHECK(complaints() == "");
      }
    }
  }
}

TEST_CASE("a card that is full is a memory error that says what did not fit, and the device goes on",
          "[cuda_calls][errors]") {
  ledger().begin({.card_bytes = std::size_t{48} << 20});
  {
    const auto device = open_gpu();
    const Memory some = device->allocate(1 << 20, "some");
    try {
      (void)device->allocate(std::size_t{20} << 20, "activations");
      FAIL_CHECK("20 MiB beside 33 fit into 48");
    } catch (const MemoryError& error) {
      CHECK(std::string(error.what())
                .find("0.02 GiB for 'activations' cannot be allocated: 0.01 GiB of 0.05 GiB are free") !=
            std::string::npos);
    }
    CHECK(device->allocated_bytes() == 1 << 20);
    const Memory more = device->allocate(1 << 20, "more");
    device->vector_ops().fill(DType::f32, more.data(), 0, 1 << 18);
    device->synchronize();
  }
  CHECK(complaints() == "");
}

// SPDX-License-Identifier: Apache-2.0
// Threads that help an engine: which work they take over, and how they end.
#include <catch2/catch.hpp>
#include <cstring>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/wire_form.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/helper_threads.hpp"
#include "comm/local/local.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/transport_contract.hpp"

using namespace echelon;

namespace {

constexpr EngineOptions kHelped{.helpers = 2, .helped_bytes = 0};

struct Work final : HelperTask {
  void work() override {
    while (held) std::this_thread::yield();
    by = std::this_thread::get_id();
    if (fails) throw DataError("no such work");
  }
  std::atomic<bool> held = false;
  bool fails = false;
  std::thread::id by;
};

// A form of plain values that records which threads have copied or summed them.
class Plain final : public WireForm {
 public:
  explicit Plain(std::int64_t elems, bool fails = false) : elems_(elems), fails_(fails) {}
  std::string_view name() const override { return "plain"; }
  std::int64_t elems() const override { return elems_; }
  std::size_t most_bytes(std::int64_t n) const override { return static_cast<std::size_t>(n) * sizeof(float); }
  bool exact_size() const override { return true; }
  bool in_place() const override { return false; }
  bool helped() const override { return true; }
  void begin(void*) override {}
  void finish(void*) override {}
  std::size_t encode(void* values, ElemRange range, bool, std::byte* wire) override {
    const Call call(*this);
    std::memcpy(wire, values, most_bytes(range.elems()));
    return most_bytes(range.elems());
  }
  void decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange) override {
    const Call call(*this);
    std::memcpy(values, wire, bytes);
  }
  void decode_add(const std::byte* wire, std::size_t, void* values, ElemRange range) override {
    const Call call(*this);
    if (fails_) throw DataError("a damaged message");
    const auto* from = reinterpret_cast<const float*>(wire);
    for (std::int64_t i = 0; i < range.elems(); ++i) static_cast<float*>(values)[i] += from[i];
  }

  std::atomic<int> calls = 0, at_once = 0, most_at_once = 0;

 private:
  struct Call {
    explicit Call(Plain& form) : of(form) {
      ++of.calls;
      of.most_at_once = std::max<int>(of.most_at_once, ++of.at_once);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    ~Call() { --of.at_once; }
    Plain& of;
  };
  std::int64_t elems_;
  bool fails_;
};

Job job(const std::shared_ptr<const Plan>& plan, std::vector<float>& data, std::shared_ptr<WireForm> form = nullptr) {
  return {.plan = plan, .data = data.data(), .dtype = DType::f32, .channel = 5, .after = nullptr, .form = form};
}

}  // namespace

TEST_CASE("helpers run what they are given, and report what it threw", "[comm]") {
  std::atomic<int> ended = 0;
  std::vector<Work> works(6);
  {
    HelperThreads threads(2, 0, [&] { ++ended; });
    CHECK(threads.has_free());
    works[0].held = works[1].held = true;
    works[1].fails = true;
    threads.submit(works[0]);
    threads.submit(works[1]);
    CHECK_FALSE(threads.has_free());
    CHECK_FALSE(works[0].done());
    works[0].held = works[1].held = false;
    threads.settle();
    CHECK(threads.has_free());
    CHECK((works[0].done() && works[1].done()));
    CHECK_NOTHROW(works[0].check());
    CHECK_THROWS_WITH(works[1].check(), "no such work");
    CHECK(works[0].by != std::this_thread::get_id());
    works[1].fails = false;
    for (Work& work : works) threads.submit(work);  // more work than threads; the rest runs before the end
  }
  CHECK(ended == 8);
  for (const Work& work : works) {
    CHECK(work.done());
    CHECK_NOTHROW(work.check());
  }
}

TEST_CASE("plans on many channels give the right sums with helpers", "[comm][engine]") {
  for (const int ranks : {2, 3, 5})
    CHECK_NOTHROW(test::run_ranks(ranks, [](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport), kHelped);
      test::check_many_channels(engine, 40);
      engine.limit(1, 1);
      test::check_many_channels(engine, 20);
      engine.limit(8, 0);
      test::check_group(engine);
      Group(engine, 0).barrier();
    }));
}

TEST_CASE("helpers code the messages of a bucket one at a time", "[comm][engine]") {
  CHECK_NOTHROW(test::run_ranks(4, [](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport), kHelped);
    std::vector<float> data(1000, static_cast<float>(engine.rank()));
    const auto form = std::make_shared<Plain>(1000);
    engine.run(job(make_direct_allreduce({.rank = engine.rank(), .ranks = 4, .elems = 1000, .hosts = {}}), data, form));
    for (const float value : data) ECHELON_CHECK_EQ(value, 6.0f);
    ECHELON_CHECK_GE(form->calls.load(), 7);
    ECHELON_CHECK_EQ(form->most_at_once.load(), 1);
    Group(engine, 0).barrier();
  }));
}

TEST_CASE("what a helper throws ends the job with it", "[comm][engine]") {
  const auto body = [](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport), kHelped);
    std::vector<float> data(1000, 1.0f);
    engine.run(job(make_direct_allreduce({.rank = engine.rank(), .ranks = 3, .elems = 1000, .hosts = {}}), data,
                   std::make_shared<Plain>(1000, true)));
  };
  CHECK_THROWS_WITH(test::run_ranks(3, body), Catch::Contains("a damaged message"));
}

TEST_CASE("an engine with a plan in progress is not limited", "[comm][engine]") {
  std::vector<std::unique_ptr<Transport>> world = make_local_world(2);
  Engine engine(std::move(world[0]), kHelped);
  std::vector<float> data(1000);
  const AllreduceRequest request{.rank = 0, .ranks = 2, .elems = 1000, .hosts = {}};
  const Ticket ticket = engine.submit(job(make_allreduce("ring", request), data));
  const double begun_s = now_s();
  while (engine.waits().empty() && now_s() < begun_s + 10) std::this_thread::yield();
  CHECK_THROWS_WITH(engine.limit(4, 0), Catch::Contains("in progress"));
  CHECK_FALSE(ticket.done());
}

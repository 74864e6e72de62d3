// SPDX-License-Identifier: Apache-2.0
#include "verify/transport_contract.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <thread>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/group.hpp"

namespace echelon::verify {
namespace {

constexpr double kLimit_s = 60;

Completion finish(Transport& transport, Request request) {
  const double until_s = now_s() + kLimit_s;
  while (true) {
    if (const auto completion = transport.test(request)) {
      ECHELON_CHECK(!request.valid(), "test frees what is done");
      return *completion;
    }
    ECHELON_CHECK(now_s() < until_s, "an operation did not end within {} s", kLimit_s);
    std::this_thread::yield();
  }
}

std::vector<std::byte> pattern(std::size_t bytes, int from, int to) {
  std::vector<std::byte> data(bytes);
  const HashRng rng(static_cast<std::uint64_t>(from * 1000 + to), "pattern");
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(rng.bits(i));
  return data;
}

void everyone_waits(Transport& transport) {
  const int me = transport.rank(), k = transport.size();
  for (int d = 1; d < k; d <<= 1) {
    char in = 0, out = 0;
    const Request receive = transport.irecv((me - d + k) % k, 99, &in, 1);
    const Request send = transport.isend((me + d) % k, 99, &out, 1);
    finish(transport, receive);
    finish(transport, send);
  }
}

void check_sizes(Transport& transport) {
  const int me = transport.rank(), k = transport.size(), right = (me + 1) % k, left = (me + k - 1) % k;
  for (const std::size_t bytes : {0, 1, 7, 4096, 65537, 5000001}) {
    std::vector<std::byte> in(bytes + 3);
    const std::vector<std::byte> out = pattern(bytes, me, right);
    const WireCounters before = transport.counters();
    const Request receive = transport.irecv(left, 4, in.data(), in.size());
    const Request send = transport.isend(right, 4, out.data(), bytes);
    const Completion completion = finish(transport, receive);
    finish(transport, send);
    ECHELON_CHECK_EQ(completion.peer, left);
    ECHELON_CHECK_EQ(completion.bytes, bytes);
    in.resize(bytes);
    ECHELON_CHECK(in == pattern(bytes, left, me), "{} bytes came out changed", bytes);
    const WireCounters after = transport.counters();
    ECHELON_CHECK_EQ(after.bytes_sent - before.bytes_sent, bytes);
    ECHELON_CHECK_EQ(after.bytes_received - before.bytes_received, bytes);
    ECHELON_CHECK_EQ(after.messages_sent - before.messages_sent, 1u);
    ECHELON_CHECK_EQ(after.messages_received - before.messages_received, 1u);
  }
}

// Interleaves two tags: each must arrive in its own order, whichever is received first.
void check_order(Transport& transport) {
  constexpr int kMany = 200;
  const int me = transport.rank(), k = transport.size(), right = (me + 1) % k, left = (me + k - 1) % k;
  std::vector<int> out(2 * kMany), in(2 * kMany, -1);
  std::iota(out.begin(), out.end(), 1000 * me);
  std::vector<Request> sends, receives;
  for (int i = 0; i < 2 * kMany; ++i)
    sends.push_back(transport.isend(right, i % 2, &out[static_cast<std::size_t>(i)], 4));
  for (int tag : {1, 0})
    for (int i = tag; i < 2 * kMany; i += 2)
      receives.push_back(transport.irecv(left, tag, &in[static_cast<std::size_t>(i)], 4));
  std::reverse(receives.begin(), receives.end());
  for (const Request& request : receives) finish(transport, request);
  for (const Request& request : sends) finish(transport, request);
  for (int i = 0; i < 2 * kMany; ++i) ECHELON_CHECK_EQ(in[static_cast<std::size_t>(i)], 1000 * left + i);
}

void check_any_source(Transport& transport) {
  constexpr int kEach = 20;
  const int me = transport.rank(), k = transport.size();
  if (me > 0) {
    for (int i = 0; i < kEach; ++i) {
      const std::int64_t word = me * 1000 + i;
      finish(transport, transport.isend(0, 7, &word, sizeof word));
    }
    return;
  }
  std::vector<int> next(static_cast<std::size_t>(k), 0);
  for (int i = 0; i < kEach * (k - 1); ++i) {
    std::int64_t words[4] = {};
    const Completion completion = finish(transport, transport.irecv(kAnySource, 7, words, sizeof words));
    ECHELON_CHECK_EQ(completion.bytes, sizeof(std::int64_t));
    ECHELON_CHECK_EQ(words[0], completion.peer * 1000 + next[static_cast<std::size_t>(completion.peer)]++);
  }
}

void check_hosts(Transport& transport) {
  const std::vector<int>& hosts = transport.hosts();
  ECHELON_CHECK_EQ(static_cast<int>(hosts.size()), transport.size());
  int next = 0;
  for (int host : hosts) {
    ECHELON_CHECK(host >= 0 && host <= next, "hosts are numbered in order of first rank");
    next = std::max(next, host + 1);
  }
  ECHELON_CHECK_EQ(static_cast<int>(transport.host_names().size()), next);
}

// Splits even and odd ranks, in reverse order; a message in one part must stay there.
void check_split(Transport& transport) {
  const int me = transport.rank(), k = transport.size();
  const std::unique_ptr<Transport> part = transport.split(me % 2, -me);
  const int members = (k - me % 2 + 1) / 2;
  ECHELON_CHECK_EQ(part->size(), members);
  ECHELON_CHECK_EQ(part->rank(), members - 1 - me / 2);
  int in = -1;
  const Request receive = part->irecv((part->rank() + 1) % members, 3, &in, 4);
  const Request send = part->isend((part->rank() + members - 1) % members, 3, &me, 4);
  finish(*part, receive);
  finish(*part, send);
  ECHELON_CHECK_EQ(in % 2, me % 2);
  ECHELON_CHECK_EQ(in, me >= 2 ? me - 2 : 2 * (members - 1) + me % 2);
  check_hosts(*part);
}

void check_library(Transport& transport) {
  const int k = transport.size();
  std::vector<double> f64(1001);
  std::vector<float> f32(17);
  for (std::size_t i = 0; i < f64.size(); ++i) f64[i] = static_cast<double>(i) + transport.rank();
  for (std::size_t i = 0; i < f32.size(); ++i) f32[i] = static_cast<float>(transport.rank());
  const Request first = transport.iallreduce(f64.data(), f64.size(), DType::f64);
  const Request second = transport.iallreduce(f32.data(), f32.size(), DType::f32);
  finish(transport, second);
  finish(transport, first);
  const int ranks_sum = k * (k - 1) / 2;
  for (std::size_t i = 0; i < f64.size(); ++i) ECHELON_CHECK_EQ(f64[i], k * static_cast<double>(i) + ranks_sum);
  for (const float value : f32) ECHELON_CHECK_EQ(value, static_cast<float>(ranks_sum));
}

// Messages to oneself are left out, because Open MPI 4.1 truncates them silently.
void check_truncation(Transport& transport) {
  const int me = transport.rank(), k = transport.size();
  if (k == 1) return;
  const std::vector<char> out(100, 'x');
  char in[10] = {};
  const Request receive = transport.irecv((me + 1) % k, 11, in, sizeof in);
  const Request send = transport.isend((me + k - 1) % k, 11, out.data(), out.size());
  bool refused = false;
  try {
    finish(transport, receive);
  } catch (const EnvironmentError&) {
    refused = true;
  }
  ECHELON_CHECK(refused, "a message that does not fit is an EnvironmentError");
  finish(transport, send);
}

template <class T>
void check_algorithm(Engine& engine, const std::string& name, std::int64_t elems, std::int64_t segment) {
  const int me = engine.rank(), k = engine.size();
  const auto plan = make_allreduce(
      name, {.rank = me, .ranks = k, .elems = elems, .segment_elems = segment, .hosts = engine.transport().hosts()});
  std::vector<T> data(static_cast<std::size_t>(elems) + 1);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<T>((i * 7 + static_cast<std::size_t>(me) * 13) % 101);
  std::vector<T> expected(data.size() - 1);
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (int r = 0; r < k; ++r) expected[i] += static_cast<T>((i * 7 + static_cast<std::size_t>(r) * 13) % 101);
  engine
      .submit({.plan = plan, .data = data.data(), .dtype = dtype_of<T>, .channel = 5, .priority = 0, .after = nullptr})
      .wait();
  for (std::size_t i = 0; i < expected.size(); ++i)
    ECHELON_CHECK_EQ(data[i], expected[i], "{} over {} ranks, element {} of {}", name, k, i, elems);
  const T untouched = static_cast<T>((expected.size() * 7 + static_cast<std::size_t>(me) * 13) % 101);
  ECHELON_CHECK_EQ(data.back(), untouched, "{} writes behind its buffer", name);
}

bool sums_in_one_memory(const Engine& engine) {
  return engine.transport().shares_channels() && engine.transport().host_names().size() == 1;
}

// Ranges are in descending order of ranks, with a gap after each; every third rank has none.
void check_gather_to_first(Group& group) {
  std::vector<ElemRange> ranges(static_cast<std::size_t>(group.size()));
  std::int64_t end = 0;
  for (int r = group.size() - 1; r >= 0; --r) {
    const std::int64_t bytes = r % 3 == 2 ? 0 : 1000 * r + 1;
    ranges[static_cast<std::size_t>(r)] = {end, end + bytes};
    end += bytes + 5;
  }
  const ElemRange own = ranges[static_cast<std::size_t>(group.rank())];
  std::string data(static_cast<std::size_t>(group.rank() == 0 ? end : own.elems()), '.');
  const auto begin = group.rank() == 0 ? own.begin : 0;
  std::fill_n(data.begin() + begin, own.elems(), static_cast<char>('A' + group.rank() % 26));
  group.gather_to_first(data.data(), ranges);
  if (group.rank() > 0) return;
  std::string expected(data.size(), '.');
  for (int r = 0; r < group.size(); ++r) {
    const ElemRange range = ranges[static_cast<std::size_t>(r)];
    std::fill_n(expected.begin() + range.begin, range.elems(), static_cast<char>('A' + r % 26));
  }
  ECHELON_CHECK(data == expected, "bytes of {} ranks on rank 0", group.size());
}

}  // namespace

void check_transport(Transport& transport) {
  check_hosts(transport);
  check_sizes(transport);
  check_order(transport);
  check_any_source(transport);
  check_split(transport);
  if (transport.has_library_allreduce()) check_library(transport);
  everyone_waits(transport);
  check_truncation(transport);
}

void check_allreduce(Engine& engine, std::int64_t elems) {
  for (const std::string& name : allreduce_names())
    if (!algorithm_traits(name).in_memory || sums_in_one_memory(engine)) check_allreduce(engine, elems, name);
}

void check_allreduce(Engine& engine, std::int64_t elems, const std::string& name) {
  for (const std::int64_t segment : {0, 1000}) {
    check_algorithm<float>(engine, name, elems, segment);
    check_algorithm<double>(engine, name, elems, segment);
  }
}

void check_group(Engine& engine) {
  Group group(engine, 3);
  const int me = group.rank(), k = group.size();
  for (const std::size_t n : {1, 3, 6000}) {
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<double>(i) + me;
    group.sum(values);
    for (std::size_t i = 0; i < n; ++i) ECHELON_CHECK_EQ(values[i], k * static_cast<double>(i) + k * (k - 1) / 2);
  }
  ECHELON_CHECK_EQ(group.max(me == k / 2 ? 7.5 : -me), 7.5);
  for (int root = 0; root < k; ++root) {
    std::string word = me == root ? "from " + std::to_string(root) : std::string(6, '?');
    word.resize(8);
    group.broadcast(word.data(), word.size(), root);
    ECHELON_CHECK_EQ(std::string(word.c_str()), "from " + std::to_string(root));
  }
  const std::vector<double> each = group.gather(0.1 * me);
  for (int r = 0; r < k; ++r) ECHELON_CHECK_EQ(each[static_cast<std::size_t>(r)], 0.1 * r);
  const std::vector<std::string> words = group.gather(std::string(static_cast<std::size_t>(me), 'a'));
  for (int r = 0; r < k; ++r) ECHELON_CHECK_EQ(words[static_cast<std::size_t>(r)].size(), static_cast<std::size_t>(r));
  check_gather_to_first(group);
  group.barrier();
}

void check_many_channels(Engine& engine, int channels) {
  const int me = engine.rank(), k = engine.size();
  std::vector<std::string> names = {"ring", "naive"};
  if (sums_in_one_memory(engine)) names.emplace_back("shared");
  const HashRng sizes(9, "sizes"), order(static_cast<std::uint64_t>(me), "order");
  std::vector<int> turn(static_cast<std::size_t>(channels));
  std::iota(turn.begin(), turn.end(), 0);
  std::sort(turn.begin(), turn.end(), [&](int a, int b) {
    return order.bits(static_cast<std::uint64_t>(a)) < order.bits(static_cast<std::uint64_t>(b));
  });
  std::vector<std::vector<float>> data(turn.size());
  std::vector<Ticket> tickets;
  for (int channel : turn) {
    std::vector<float>& mine = data[static_cast<std::size_t>(channel)];
    mine.assign(sizes.below(static_cast<std::uint64_t>(channel), 20000), static_cast<float>(channel + me));
    const AllreduceRequest request{
        .rank = me, .ranks = k, .elems = static_cast<std::int64_t>(mine.size()), .segment_elems = 512, .hosts = {}};
    tickets.push_back(
        engine.submit({.plan = make_allreduce(names[static_cast<std::size_t>(channel) % names.size()], request),
                       .data = mine.data(),
                       .dtype = DType::f32,
                       .channel = 10 + channel,
                       .priority = channel % 5,
                       .after = nullptr}));
  }
  for (const Ticket& ticket : tickets) ticket.wait();
  for (int channel = 0; channel < channels; ++channel)
    for (const float value : data[static_cast<std::size_t>(channel)])
      ECHELON_CHECK_EQ(value, static_cast<float>(k * channel + k * (k - 1) / 2), "channel {}", channel);
}

void check_engine_split(Engine& engine) {
  const int me = engine.rank(), k = engine.size();
  const std::unique_ptr<Engine> part = engine.split(me % 2, -me);
  const int members = (k - me % 2 + 1) / 2;
  ECHELON_CHECK_EQ(part->size(), members);
  ECHELON_CHECK_EQ(part->rank(), members - 1 - me / 2);
  check_group(*part);
  // Uses one channel in all ranks and in a part at the same time, submitted in either order.
  std::vector<double> all(3001, me), few(3001, me);
  const auto start = [&](Engine& group, std::vector<double>& data) {
    const AllreduceRequest request{.rank = group.rank(),
                                   .ranks = group.size(),
                                   .elems = static_cast<std::int64_t>(data.size()),
                                   .segment_elems = 100,
                                   .hosts = {}};
    return group.submit({.plan = make_allreduce("ring", request),
                         .data = data.data(),
                         .dtype = DType::f64,
                         .channel = 6,
                         .after = nullptr});
  };
  const Ticket first = me % 3 == 0 ? start(engine, all) : start(*part, few);
  const Ticket second = me % 3 == 0 ? start(*part, few) : start(engine, all);
  first.wait();
  second.wait();
  int of_part = 0;
  for (int r = me % 2; r < k; r += 2) of_part += r;
  for (const double value : all) ECHELON_CHECK_EQ(value, k * (k - 1) / 2);
  for (const double value : few) ECHELON_CHECK_EQ(value, of_part);
  const std::unique_ptr<Engine> pair = part->split(part->rank() / 2, part->rank());
  Group(*pair, 1).barrier();
  Group(engine, 1).barrier();
}

}  // namespace echelon::verify

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/allreduce_check.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace echelon::test {
namespace {

void check_row(const Row& row, const RankPlans& plans, const std::vector<WireCounters>& counters,
               std::size_t elem_bytes) {
  std::uint64_t messages = 0, bytes = 0, received = 0, most = 0;
  for (const WireCounters& rank : counters) {
    messages += rank.messages_sent;
    bytes += rank.bytes_sent;
    received += rank.bytes_received;
    most = std::max(most, rank.bytes_sent);
    CHECK(rank.library_bytes == static_cast<std::uint64_t>(row.library_elems) * elem_bytes);
  }
  CHECK(messages == static_cast<std::uint64_t>(row.messages));
  CHECK(bytes == static_cast<std::uint64_t>(row.payload_elems) * elem_bytes);
  CHECK(received == bytes);
  CHECK(most <= static_cast<std::uint64_t>(row.most_sent_elems) * elem_bytes);
  for (const auto& plan : plans) CHECK(plan->slots() * plan->slot_elems() <= row.scratch_elems);
}

std::int64_t whole_number(std::size_t rank, std::size_t i) {
  return static_cast<std::int64_t>((i * 31 + 17) % 1009 * (rank + 1));
}

template <class T>
void check(const RankPlans& plans, std::int64_t elems, int window, const Row& row, int workers) {
  check_rules(plans, elems);
  std::vector<std::vector<T>> data(plans.size());
  for (std::size_t r = 0; r < data.size(); ++r) {
    data[r].resize(static_cast<std::size_t>(elems) + 1);
    for (std::size_t i = 0; i < data[r].size(); ++i) data[r][i] = static_cast<T>(whole_number(r, i));
    data[r].back() = -1;
  }
  const std::vector<WireCounters> counters = run_on(plans, data, window);
  const std::int64_t times = static_cast<std::int64_t>(workers) * (workers + 1) / 2;
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < data.size(); ++r) {
    wrong += data[r].back() != T(-1);
    if (r >= static_cast<std::size_t>(workers)) continue;
    for (std::size_t i = 0; i + 1 < data[r].size(); ++i)
      wrong += data[r][i] != static_cast<T>(whole_number(0, i) * times);
  }
  CHECK(wrong == 0);
  data.resize(static_cast<std::size_t>(workers));
  CHECK(same_bits(data));
  check_row(row, plans, counters, sizeof(T));
}

}  // namespace

void check_exact(const RankPlans& plans, std::int64_t elems, int window, DType dtype, const Row& row) {
  check_exact_workers(plans, elems, window, dtype, row, static_cast<int>(plans.size()));
}

void check_exact_workers(const RankPlans& plans, std::int64_t elems, int window, DType dtype, const Row& row,
                         int workers) {
  if (dtype == DType::f64)
    check<double>(plans, elems, window, row, workers);
  else
    check<float>(plans, elems, window, row, workers);
}

}  // namespace echelon::test

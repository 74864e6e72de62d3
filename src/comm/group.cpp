// SPDX-License-Identifier: Apache-2.0
#include "comm/group.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/message.hpp"

namespace echelon::inline comm {
namespace {

void run(Engine& engine, int channel, std::shared_ptr<const Plan> plan, void* data, DType dtype) {
  engine.run(
      {.plan = std::move(plan), .data = data, .dtype = dtype, .channel = channel, .priority = 0, .after = nullptr});
}

}  // namespace

// `blocks` holds one block of block_bytes per rank; this rank's own is filled in.
void Group::gather_blocks(void* blocks, std::size_t block_bytes) {
  run(engine_, channel_, make_allgather(rank(), size(), static_cast<std::int64_t>(block_bytes)), blocks, DType::u8);
}

void Group::sum(std::span<double> values) {
  if (values.empty() || size() == 1) return;
  run(engine_, channel_, plan_of_sum(rank(), size(), std::ssize(values)), values.data(), DType::f64);
}

std::shared_ptr<const Plan> Group::plan_of_sum(int rank, int ranks, std::int64_t values) {
  return make_allreduce(values <= kInTree ? "binomial" : "halving_doubling",
                        {.rank = rank, .ranks = ranks, .elems = values, .hosts = {}});
}

double Group::max(double value) {
  const std::vector<double> all = gather(value);
  for (double other : all)
    if (std::isnan(other)) return other;
  return *std::max_element(all.begin(), all.end());
}

void Group::broadcast(void* data, std::size_t bytes, int root) {
  run(engine_, channel_, make_broadcast(rank(), size(), root, static_cast<std::int64_t>(bytes)), data, DType::u8);
}

std::vector<double> Group::gather(double value) { return gather(std::span<const double>(&value, 1)); }

std::vector<double> Group::gather(std::span<const double> values) {
  std::vector<double> all(values.size() * static_cast<std::size_t>(size()));
  std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(values.size()) * rank());
  gather_blocks(all.data(), values.size_bytes());
  return all;
}

std::vector<std::string> Group::gather(const std::string& text) {
  const std::vector<double> lengths = gather(static_cast<double>(text.size()));
  const auto longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<char> all(longest * lengths.size());
  std::copy(text.begin(), text.end(), all.begin() + static_cast<std::ptrdiff_t>(longest) * rank());
  gather_blocks(all.data(), longest);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < lengths.size(); ++r)
    texts.emplace_back(all.data() + r * longest, static_cast<std::size_t>(lengths[r]));
  return texts;
}

void Group::gather_to_first(void* data, const std::vector<ElemRange>& ranges) {
  run(engine_, channel_, make_gather_to_first(rank(), ranges), data, DType::u8);
}

std::string Group::of_first(std::string text) {
  std::uint64_t length = text.size();
  broadcast(&length, sizeof length, 0);
  text.resize(length);
  broadcast(text.data(), length, 0);
  return text;
}

void Group::barrier() {
  double nothing = 0;
  sum({&nothing, 1});
}

}  // namespace echelon::inline comm

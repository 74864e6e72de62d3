// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/shared_steps.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/intrinsics.hpp"
#include "base/spans.hpp"

namespace echelon::inline comm {
namespace {

constexpr int kLooks = 100;           // polls of a counter, about a microsecond
constexpr std::int64_t kBlock = 512;  // elements that are summed together, in the L1 cache

// out[i] = a[i] + b[i]; out may be a or b.
template <class T>
void add(const T* a, const T* b, T* out, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

// Sums the terms [first, last) in one binary tree, ((0+1)+(2+3))+.., for n elements from `at` on.
template <class T>
void sum_as_tree(const std::vector<const void*>& terms, std::size_t first, std::size_t last, std::int64_t at, T* out,
                 std::int64_t n) {
  const auto term = [&](std::size_t r) { return static_cast<const T*>(terms[r]) + at; };
  if (last - first == 1) {
    std::memcpy(out, term(first), static_cast<std::size_t>(n) * sizeof(T));
  } else if (last - first == 2) {
    add(term(first), term(first + 1), out, n);
  } else {
    const std::size_t middle = (first + last) / 2;
    T right[kBlock];
    sum_as_tree(terms, first, middle, at, out, n);
    sum_as_tree(terms, middle, last, at, right, n);
    add(out, right, out, n);
  }
}

}  // namespace

void SharedSteps::start(const Plan& plan, void* data, DType dtype, int tag) {
  use_ = &plan.shared();
  channel_ = nullptr;
  data_ = static_cast<std::byte*>(data);
  dtype_ = dtype;
  tag_ = tag;
  if (use_->phases == 0) return;
  ECHELON_CHECK(dtype == DType::f32 || dtype == DType::f64, "sums are of f32 or f64");
  terms_.resize(use_->ranks.size());
}

int SharedSteps::run(const Step& step, Transport& transport) {
  int absent = kUnknown;
  SharedChannel* const channel = transport.shared_channel(tag_, absent);
  if (channel == nullptr) return absent;
  if (channel_ == nullptr) {
    channel_ = channel;
    me_ = transport.rank();
    channel_->begin(*use_);
  }
  if (const int peer = wait_briefly(step); peer != kDone) return peer;
  with_float(dtype_, [&]<class T>(T) { carry_out<T>(step); });
  if (step.shared.phase > 0) channel_->pass(step.shared.phase);
  return kDone;
}

// Returns the rank that the step waits for, or kDone.
int SharedSteps::missing(const Step& step) const {
  const SharedPart& part = step.shared;
  if (step.kind == StepKind::get) return channel_->has_passed(step.peer, part.needs) ? kDone : step.peer;
  for (const int rank : use_->ranks)
    if (rank != me_ &&
        !(step.kind == StepKind::put ? channel_->has_read(rank, part.use) : channel_->is_complete(rank, part.use)))
      return rank;
  return kDone;
}

int SharedSteps::wait_briefly(const Step& step) const {
  int peer = missing(step);
  for (int look = 0; look < kLooks && peer != kDone; ++look) {
    cpu_relax();
    peer = missing(step);
  }
  return peer;
}

template <class T>
void SharedSteps::carry_out(const Step& step) {
  T* const buffer = reinterpret_cast<T*>(data_) + step.range.begin;
  const auto slot = [&](int rank) {
    const std::size_t offset = static_cast<std::size_t>(step.shared.offset) * sizeof(T);
    return reinterpret_cast<T*>(channel_->values(rank, step.shared.use, offset, step.range.elems()));
  };
  const std::size_t bytes = static_cast<std::size_t>(step.range.elems()) * sizeof(T);
  if (step.kind == StepKind::get) {
    std::memcpy(buffer, slot(step.peer), bytes);
  } else if (step.kind == StepKind::put) {
    channel_->fill(step.shared.use, step.shared.freed);
    std::memcpy(slot(me_), buffer, bytes);
    if (step.shared.phase > 0) channel_->complete(step.shared.use);
  } else {
    const SpanScope span(SpanKind::sum);
    for (std::size_t i = 0; i < terms_.size(); ++i) terms_[i] = use_->ranks[i] == me_ ? buffer : slot(use_->ranks[i]);
    sum(buffer, step.shared.keeps ? slot(me_) : nullptr, step.range.elems());
  }
}

// Sums the terms into the buffer, which is one of them, and into `kept` if it is not null.
template <class T>
void SharedSteps::sum(T* buffer, T* kept, std::int64_t elems) {
  T total[kBlock];
  for (std::int64_t at = 0; at < elems; at += kBlock) {
    const std::int64_t n = std::min(kBlock, elems - at);
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    const bool in_place = terms_.size() == 2;
    sum_as_tree(terms_, 0, terms_.size(), at, in_place ? buffer + at : total, n);
    if (!in_place) std::memcpy(buffer + at, total, bytes);
    if (kept) std::memcpy(kept + at, buffer + at, bytes);
  }
}

void SharedSteps::finish() {
  if (use_->phases == 0) return;
  ECHELON_CHECK(channel_ != nullptr, "a plan with phases has a step on shared memory on every rank");
  channel_->end(*use_);
}

}  // namespace echelon::inline comm

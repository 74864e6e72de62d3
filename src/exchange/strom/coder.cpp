// SPDX-License-Identifier: Apache-2.0
#include "exchange/strom/coder.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/spans.hpp"
#include "device/vector.hpp"
#include "exchange/kind_runs.hpp"
#include "exchange/strom/message.hpp"

namespace echelon::inline exchange {
namespace {

constexpr std::int64_t kBlock = 4096;

template <class T>
T* at(void* arena, std::int64_t elem) {
  return static_cast<T*>(arena) + elem;
}
template <class T>
const T* at(const void* arena, std::int64_t elem) {
  return static_cast<const T*>(arena) + elem;
}

template <class T>
double sum_squares(const T* values, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace

std::vector<ArenaRange> weights_in(const ParameterSet& parameters, ArenaRange range) {
  std::vector<ArenaRange> weights;
  KindRuns(parameters).each(range, [&](ArenaRange run, bool statistic) {
    if (!statistic) weights.push_back(run);
  });
  return weights;
}

StromCoder::StromCoder(const StromFormat& format, ArenaRange bucket, std::vector<ArenaRange> weights)
    : format_(format), bucket_(bucket), weights_(std::move(weights)), tau_(static_cast<float>(format.tau)) {
  for (const ArenaRange& range : weights_) elems_ += range.elems();
  block_.resize(static_cast<std::size_t>(kBlock));
}

// Calls body(begin, n) for blocks of the arena that fit in the cache.
template <class Body>
void StromCoder::each_block(const Body& body) const {
  for (const ArenaRange& range : weights_)
    for (std::int64_t i = range.begin; i < range.end; i += kBlock) body(i, std::min(kBlock, range.end - i));
}

// Sets the first tau so that the chosen fraction of residual + update reaches it.
template <class T>
void StromCoder::begin(const Update& update) {
  std::vector<float> corrected;
  corrected.reserve(static_cast<std::size_t>(elems_));
  each_block([&](std::int64_t begin, std::int64_t n) {
    const T *changed = at<T>(update.changed, begin), *weights = at<T>(update.weights, begin);
    const T* residual = at<T>(update.residual, begin);
    for (std::int64_t i = 0; i < n; ++i)
      corrected.push_back(static_cast<float>(residual[i] + static_cast<T>(update.scale) * (changed[i] - weights[i])));
  });
  const auto chosen = static_cast<std::int64_t>(std::ceil(format_.density * static_cast<double>(elems_)));
  tau_ = first_tau(corrected.data(), elems_, std::clamp<std::int64_t>(chosen, 1, elems_));
}

template <class T>
void StromCoder::select(const Update& update, float tau) {
  const T scale = static_cast<T>(update.scale);
  each_block([&](std::int64_t begin, std::int64_t n) {
    const T *changed = at<T>(update.changed, begin), *weights = at<T>(update.weights, begin);
    T* residual = at<T>(update.residual, begin);
    float* block = block_.data();
    if constexpr (std::is_same_v<T, float>) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) block[i] = scale * (changed[i] - weights[i]);
      select_beyond(tau, block, residual, n, begin - bucket_.begin, selected_);
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        residual[i] += scale * (changed[i] - weights[i]);
        block[i] = static_cast<float>(residual[i]);
      }
      select_beyond(tau, block, nullptr, n, begin - bucket_.begin, selected_);
      for (std::int64_t i = 0; i < n; ++i) {
        residual[i] -= static_cast<T>(block[i]);
        if (!std::isfinite(residual[i])) residual[i] = 0;
      }
    }
    squares_ += sum_squares(residual, n);
  });
}

template <class T>
void StromCoder::add_to_residual(const Update& update) {
  const T scale = static_cast<T>(update.scale);
  each_block([&](std::int64_t begin, std::int64_t n) {
    const T *changed = at<T>(update.changed, begin), *weights = at<T>(update.weights, begin);
    T* residual = at<T>(update.residual, begin);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) residual[i] += scale * (changed[i] - weights[i]);
    squares_ += sum_squares(residual, n);
  });
}

std::size_t StromCoder::encode(const Update& update, std::byte* message) {
  const SpanScope span(SpanKind::encode);
  const bool adapts = format_.tau == 0, wide = format_.dtype == DType::f64;
  dense_ = false;
  selected_.clear();
  squares_ = 0;
  if (elems_ > 0 && adapts && tau_ == 0) wide ? begin<double>(update) : begin<float>(update);
  const float tau = tau_ > 0 ? tau_ : FLT_MAX;  // all values were zero so far: only inf and NaN pass
  wide ? select<double>(update, tau) : select<float>(update, tau);
  sent_tau_ = tau_;
  const float sent = selected_.exception ? std::numeric_limits<float>::quiet_NaN() : tau;
  const std::size_t bytes = write_entries(sent, selected_.all(), format_.entropy, bucket_.elems(), message);
  if (adapts) {
    double largest = INFINITY;
    if (selected_.count == 0) {
      largest = 0;
      for (const ArenaRange& range : weights_)
        largest = std::max(largest,
                           host_vector_ops().max_abs(format_.dtype,
                                                     static_cast<const std::byte*>(update.residual) +
                                                         static_cast<std::size_t>(range.begin) * size_of(format_.dtype),
                                                     static_cast<std::size_t>(range.elems())));
    }
    tau_ = adapted_tau(tau_, density(), format_.density, largest);
  }
  return bytes;
}

std::size_t StromCoder::encode_dense(const Update& update, std::byte* message) {
  const SpanScope span(SpanKind::encode);
  hold(update);
  const std::size_t elem = size_of(format_.dtype), bytes = static_cast<std::size_t>(bucket_.elems()) * elem;
  std::memset(message, 0, bytes);
  for (const ArenaRange& range : weights_) {
    std::byte* residual = static_cast<std::byte*>(update.residual) + static_cast<std::size_t>(range.begin) * elem;
    const std::size_t part = static_cast<std::size_t>(range.elems()) * elem;
    std::memcpy(message + static_cast<std::size_t>(range.begin - bucket_.begin) * elem, residual, part);
    std::memset(residual, 0, part);
  }
  dense_ = true;
  squares_ = 0;
  return write_dense(message, format_.dtype, bucket_.elems(), message);
}

void StromCoder::hold(const Update& update) {
  dense_ = false;
  selected_.clear();
  sent_tau_ = squares_ = 0;
  format_.dtype == DType::f64 ? add_to_residual<double>(update) : add_to_residual<float>(update);
}

double StromCoder::density() const {
  if (dense_) return 1;
  return elems_ > 0 ? static_cast<double>(selected_.count) / static_cast<double>(elems_) : 0;
}

void StromCoder::set_tau(double tau) {
  if (format_.tau == 0) tau_ = static_cast<float>(tau);
}

}  // namespace echelon::inline exchange

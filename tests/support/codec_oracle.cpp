// SPDX-License-Identifier: Apache-2.0
#include "tests/support/codec_oracle.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace echelon::test {
namespace {

using Values = std::vector<float>;

// Rounds to `bits` of mantissa, ties to even; values below the exponent `least` get fewer, those from `limit` on inf.
float rounded(double value, int bits, int least, double limit) {
  if (value == 0 || !std::isfinite(value)) return static_cast<float>(value);
  const double quantum = std::ldexp(1, std::max(std::ilogb(value), least) - bits + 1);
  const double near = std::nearbyint(value / quantum) * quantum;
  if (std::fabs(near) > limit) return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value));
  return static_cast<float>(near);
}

Values fp16(const Values& wanted, int ranks) {
  double up = 1;
  while (up < ranks) up *= 2;
  Values encoded;
  for (const float value : wanted)
    encoded.push_back(static_cast<float>(rounded(static_cast<float>(value / up), 11, -14, 65504) * up));
  return encoded;
}

Values bf16(const Values& wanted) {
  Values encoded;
  for (const float value : wanted) encoded.push_back(rounded(value, 8, -126, FLT_MAX));
  return encoded;
}

std::uint32_t hashed(std::uint32_t x, std::uint64_t key) {
  x ^= static_cast<std::uint32_t>(key);
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= static_cast<std::uint32_t>(key >> 32);
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

int draw(std::uint64_t key, std::int64_t first, std::int64_t i) {
  const std::int64_t place = first + 8 * (i / 16) + i % 8;
  const std::uint32_t bits = hashed(static_cast<std::uint32_t>(place), key);
  return static_cast<int>(i % 16 < 8 ? bits & 0xffff : bits >> 16);
}

Values int8(const Values& wanted, std::uint64_t key, std::int64_t first) {
  Values encoded;
  for (std::size_t begin = 0; begin < wanted.size(); begin += 512) {
    const std::size_t end = std::min(begin + 512, wanted.size());
    float most = 0;
    bool finite = true;
    for (std::size_t i = begin; i < end; ++i) {
      finite = finite && std::isfinite(wanted[i]);
      most = std::max(most, std::fabs(wanted[i]));
    }
    float scale = finite ? most / 127 : std::numeric_limits<float>::quiet_NaN();
    if (scale < std::ldexp(1.0f, -110)) scale = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const float inverse = scale > 0 ? 65536 / scale : 0;
      const double fine =
          std::nearbyint(wanted[i] * inverse) + static_cast<double>(draw(key, first, static_cast<std::int64_t>(i)));
      const auto steps = static_cast<float>(std::min(std::floor(fine / 65536), 127.0));
      encoded.push_back(std::isnan(scale) ? scale : steps * scale);
    }
  }
  return encoded;
}

// Appends the values to which a row of up to 2048 values decodes.
void onebit_block(const Values& wanted, std::size_t begin, std::size_t end, Values& encoded) {
  float lanes[2][8] = {}, counts[2] = {};
  for (std::size_t i = begin; i < end; ++i) {
    const int side = wanted[i] >= 0 ? 1 : 0;
    lanes[side][(i - begin) % 8] += wanted[i];
    ++counts[side];
  }
  float means[2];
  for (int side : {0, 1}) {
    const float* l = lanes[side];
    const float sum = ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
    means[side] = counts[side] > 0 ? sum / counts[side] : 0;
  }
  for (std::size_t i = begin; i < end; ++i) encoded.push_back(means[wanted[i] >= 0 ? 1 : 0]);
}

Values onebit(const Values& wanted, std::vector<CodedRun> rows) {
  if (rows.empty()) rows = {{static_cast<std::int64_t>(wanted.size()), static_cast<std::int64_t>(wanted.size())}};
  Values encoded;
  for (const CodedRun& run : rows) {
    const std::size_t end = encoded.size() + static_cast<std::size_t>(run.elems);
    while (encoded.size() < end) {
      if (run.row == 0) {
        encoded.push_back(wanted[encoded.size()]);
        continue;
      }
      const std::size_t row_end = encoded.size() + static_cast<std::size_t>(run.row);
      while (encoded.size() < row_end)
        onebit_block(wanted, encoded.size(), std::min(encoded.size() + 2048, row_end), encoded);
    }
  }
  return encoded;
}

Values topk(const Values& wanted, double density) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](std::size_t i) {
    return std::isnan(wanted[i]) ? INFINITY : std::min(std::fabs(double{wanted[i]}), 1e300);  // NaN sorts above inf
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  const auto m = static_cast<std::size_t>(std::ceil(density * static_cast<double>(wanted.size())));
  Values encoded(wanted.size());
  for (std::size_t i = 0; i < std::max<std::size_t>(m, 1) && i < order.size(); ++i)
    encoded[order[i]] = wanted[order[i]];
  return encoded;
}

Values threshold(const Values& wanted, float tau) {
  Values encoded;
  for (const float value : wanted) encoded.push_back(!(std::fabs(value) < tau) ? std::copysign(tau, value) : 0);
  return encoded;
}

}  // namespace

OracleEncoding oracle_of(const std::string& codec, const Values& values, const Values& residual, std::uint64_t key,
                         std::int64_t first, const CodecOptions& options) {
  Values wanted;
  for (std::size_t i = 0; i < values.size(); ++i) wanted.push_back(values[i] + residual[i]);
  OracleEncoding out;
  if (codec == "fp16")
    out.encoded = fp16(wanted, options.ranks);
  else if (codec == "bf16")
    out.encoded = bf16(wanted);
  else if (codec == "int8")
    out.encoded = int8(wanted, key, first);
  else if (codec == "onebit")
    out.encoded = onebit(wanted, options.rows);
  else if (codec == "topk")
    out.encoded = topk(wanted, options.density);
  else if (codec == "threshold")
    out.encoded = threshold(wanted, static_cast<float>(options.tau));
  else if (codec == "lossless")
    return {values, residual};
  else
    throw std::runtime_error("no oracle for codec '" + codec + "'");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const float left = wanted[i] - out.encoded[i];
    out.residual.push_back(std::isfinite(left) ? left : 0);
  }
  return out;
}

}  // namespace echelon::test

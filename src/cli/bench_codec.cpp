// SPDX-License-Identifier: Apache-2.0
// echelon bench codec: measures how fast each codec encodes, decodes and adds on one core. Compares it with copying the
// same values, and with one read and write of values and residuals, the least that encoding with error feedback does.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "base/text.hpp"
#include "cli/options.hpp"
#include "comm/codec/codec.hpp"
#include "exchange/strom/coder.hpp"
#include "exchange/strom/message.hpp"

namespace echelon::cli {
namespace {

using Values = std::vector<float>;

// Values distributed like gradients: most of them small, some a hundred times larger.
Values gradients(std::size_t n) {
  const HashRng random(1, "bench codec");
  Values values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = static_cast<float>(1e-3 * hash_normal(random, 2 * i) * std::exp(hash_normal(random, 2 * i + 1)));
  return values;
}

// Returns the minimum seconds of `rounds` calls of body(), each after prepare().
template <class Prepare, class Body>
double least_seconds(int rounds, Prepare&& prepare, Body&& body) {
  double least = INFINITY;
  for (int round = -1; round < rounds; ++round) {
    prepare();
    const double start = now_s();
    body();
    if (round >= 0) least = std::min(least, now_s() - start);
  }
  return least;
}

void read_and_write(Values& values, Values& residual) {
  float *encoded = values.data(), *left = residual.data();
  const std::size_t n = values.size();
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const float corrected = encoded[i] + left[i];
    encoded[i] = 0.75f * corrected;
    left[i] = corrected - encoded[i];
  }
}

struct Bench {
  const BenchCodecOptions& options;
  Values encoded, into;
  Values fresh;
  Table table{{"codec", "bytes", "encode GB/s", "decode GB/s", "decode-add GB/s"}};

  std::string rate(double seconds) const {
    return fmt::format("{:.2f}", static_cast<double>(fresh.size() * sizeof(float)) / seconds / 1e9);
  }

  // Checks that decoded values equal the values that the encoder left in `values`, and that decode_add to zeros does
  // too.
  void verify(Codec& codec, const std::vector<std::byte>& wire, std::size_t bytes, std::int64_t n) {
    const auto same = [&] { return std::memcmp(into.data(), encoded.data(), encoded.size() * sizeof(float)) == 0; };
    codec.decode(wire.data(), bytes, into.data(), n);
    ECHELON_CHECK(same(), "{} decodes different values from those it encoded", codec.info().name);
    std::fill(into.begin(), into.end(), 0.0f);
    codec.decode_add(wire.data(), bytes, into.data(), n);
    for (std::size_t i = 0; i < encoded.size(); ++i)
      ECHELON_CHECK(into[i] == encoded[i], "{} adds different values from those it encoded, at {}", codec.info().name,
                    i);
  }

  void row(const std::string& name) {
    const auto codec = make_codec(name, {.density = options.density, .tau = options.tau});
    const auto n = static_cast<std::int64_t>(fresh.size());
    std::vector<std::byte> wire(codec->most_bytes(n));
    Values residual(fresh.size());
    std::size_t bytes = 0;
    std::uint64_t step = 0;
    const auto encode = [&] {
      bytes = codec->encode({.values = encoded.data(),
                             .elems = n,
                             .residual = codec->info().lossy ? residual.data() : nullptr,
                             .key = ++step},
                            wire.data());
    };
    const double encode_s = least_seconds(
        options.rounds, [&] { encoded = fresh; }, encode);
    verify(*codec, wire, bytes, n);
    const auto nothing = [] {};
    const double decode_s =
        least_seconds(options.rounds, nothing, [&] { codec->decode(wire.data(), bytes, into.data(), n); });
    const double add_s =
        least_seconds(options.rounds, nothing, [&] { codec->decode_add(wire.data(), bytes, into.data(), n); });
    const double part = static_cast<double>(bytes) / static_cast<double>(fresh.size() * sizeof(float));
    table.row({name, fmt::format("{:.4f}", part), rate(encode_s), rate(decode_s), rate(add_s)});
  }

  // Strategy strom: encodes a step from its weights before and after and the residual; adds entries to weights.
  void strom_row(bool entropy) {
    const auto n = static_cast<std::int64_t>(fresh.size());
    StromCoder coder({.entropy = entropy, .tau = options.tau, .density = options.density}, {0, n}, {{0, n}});
    std::vector<std::byte> message(strom_room(n, DType::f32, false));
    Values weights(fresh.size()), residual(fresh.size());
    std::size_t bytes = 0;
    const auto nothing = [] {};
    const double encode_s = least_seconds(options.rounds, nothing, [&] {
      bytes = coder.encode({fresh.data(), weights.data(), residual.data(), 1}, message.data());
    });
    const double add_s = least_seconds(options.rounds, nothing, [&] {
      add_message({message.data(), bytes}, entropy, weights.data(), DType::f32, n);
    });
    const double part = static_cast<double>(bytes) / static_cast<double>(fresh.size() * sizeof(float));
    table.row({entropy ? "strom" : "strom, raw indices", fmt::format("{:.4f}", part), rate(encode_s), "", rate(add_s)});
  }
};

}  // namespace

int run_bench_codec(const BenchCodecOptions& options) {
  if (options.rounds < 1) throw ConfigError("--rounds must be at least 1");
  if (!(options.mb > 0 && options.mb <= 1024)) throw ConfigError("--mb must be above 0 and at most 1024");
  const auto n = static_cast<std::size_t>(std::max(1.0, options.mb * (1 << 20) / sizeof(float)));
  Bench bench{options, Values(n), Values(n), gradients(n)};
  const double copy_s = least_seconds(
      options.rounds, [] {}, [&] { std::memcpy(bench.into.data(), bench.fresh.data(), n * sizeof(float)); });
  bench.table.row({"memcpy", "1.0000", bench.rate(copy_s), bench.rate(copy_s), ""});
  Values residual(n);
  const double both_s = least_seconds(
      options.rounds, [&] { bench.encoded = bench.fresh; }, [&] { read_and_write(bench.encoded, residual); });
  bench.table.row({"values and residuals", "", bench.rate(both_s), "", ""});
  for (const std::string& name : codec_names()) bench.row(name);
  for (const bool entropy : {false, true}) bench.strom_row(entropy);
  fmt::print("{} values of f32, the best of {} rounds on one core; rates count the values' bytes\n\n{}",
             count_text(static_cast<std::int64_t>(n)), options.rounds, bench.table.text());
  return kExitOk;
}

}  // namespace echelon::cli

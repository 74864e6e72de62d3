// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/data/flipped_bits.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "data/chunk_cache.hpp"
#include "data/dataset.hpp"
#include "h5/file.hpp"

namespace echelon::test {
namespace {

constexpr int kLimit_ms = 20000;

struct Digest {
  std::uint64_t sum = 0;

  void bytes(const void* data, std::size_t size) { sum = checksum64(data, size, sum + 1); }
  void number(double value) { bytes(&value, sizeof value); }
  void numbers(const std::vector<double>& values) { bytes(values.data(), values.size() * sizeof(double)); }
  void texts(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) bytes(text.data(), text.size());
  }
};

std::size_t bytes_of(const Dataset& set, const Record& record) {
  const auto row = static_cast<std::size_t>(set.sample_shape.row_elems());
  switch (set.kind) {
    case DataKind::samples: return static_cast<std::size_t>(set.sample_shape.elems()) * size_of(set.stored);
    case DataKind::text: return static_cast<std::size_t>(set.length() + 1) * sizeof(std::int32_t);
    default: return static_cast<std::size_t>(record.length) * row * sizeof(std::int32_t);
  }
}

Reading reading_of(const std::string& path, std::uint64_t wanted) {
  try {
    return digest_of_set(path) == wanted ? Reading::unchanged : Reading::other;
  } catch (const DataError&) {
    return Reading::refused;
  } catch (...) {
    return Reading::wrong;
  }
}

struct Flip {
  std::size_t byte;
  int bit;
};

Flip flip_of(std::uint64_t seed, int index, std::size_t bytes) {
  const std::uint64_t word = mix64(seed + static_cast<std::uint64_t>(index) * 0x9e3779b97f4a7c15ULL);
  return {static_cast<std::size_t>((word >> 3) % bytes), static_cast<int>(word & 7U)};
}

// Runs in the child: writes one character for each flip from `first` on.
[[noreturn]] void read_all(const std::string& content, const std::string& copy, int first, int times,
                           std::uint64_t seed, std::uint64_t wanted, int to) {
  for (int i = first; i < times; ++i) {
    const Flip flip = flip_of(seed, i, content.size());
    std::string damaged = content;
    damaged[flip.byte] = static_cast<char>(damaged[flip.byte] ^ (1 << flip.bit));
    std::ofstream(copy, std::ios::binary) << damaged;
    const char outcome = static_cast<char>(reading_of(copy, wanted));
    if (::write(to, &outcome, 1) != 1) break;
  }
  ::_exit(0);
}

// Reads the child's answers, until it ends or is silent for too long.
std::string answers_of(pid_t child, int from) {
  std::string answers;
  char block[4096];
  for (;;) {
    pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kLimit_ms) <= 0) {
      ::kill(child, SIGKILL);
      return answers + static_cast<char>(Reading::hung);
    }
    const ssize_t got = ::read(from, block, sizeof block);
    if (got <= 0) return answers;
    answers.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::uint64_t digest_of_set(const std::string& location) {
  const Dataset set = open_dataset(location, 0, Labels::optional);
  Digest digest;
  digest.bytes(&set.kind, sizeof set.kind);
  digest.bytes(&set.stored, sizeof set.stored);
  digest.bytes(&set.labelled, sizeof set.labelled);
  for (const Shape& shape : {set.sample_shape, set.label_shape})
    for (const std::int64_t extent : shape.extents()) digest.number(static_cast<double>(extent));
  for (const std::int64_t count : {set.classes, set.samples(), set.length(), set.target_length})
    digest.number(static_cast<double>(count));
  digest.texts(set.class_names);
  digest.numbers(set.mean);
  digest.numbers(set.std);
  digest.number(set.scale);
  digest.texts(set.vocabulary.entries());
  digest.texts(set.target_vocabulary.entries());
  const h5::Reader reader(set.shards.front().path);
  if (reader.has_attribute("value_range")) digest.numbers(reader.attribute_doubles("value_range"));
  ChunkCache cache(set, 1 << 20);
  for (std::int64_t id = 0; id < set.samples(); ++id) {
    const Record record = cache.record(id);
    digest.bytes(record.sample, bytes_of(set, record));
    for (std::int64_t i = 0; record.labels != nullptr && i < set.label_shape.elems(); ++i)
      digest.number(record.labels[i]);
    if (record.numbers != nullptr)
      digest.bytes(record.numbers, static_cast<std::size_t>(set.label_shape.elems()) * sizeof(float));
    if (record.target != nullptr)
      digest.bytes(record.target, static_cast<std::size_t>(record.target_length) * sizeof(std::int32_t));
  }
  return digest.sum;
}

Readings read_with_flips(const std::string& path, int times, std::uint64_t seed, std::string& notes) {
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  const std::uint64_t wanted = digest_of_set(path);
  const std::string copy = path + ".flipped";
  Readings readings;
  for (int next = 0; next < times;) {
    int ends[2];
    if (::pipe(ends) != 0) throw EnvironmentError("no pipe");
    const pid_t child = ::fork();
    if (child == 0) read_all(content, copy, next, times, seed, wanted, ends[1]);
    ::close(ends[1]);
    std::string answers = answers_of(child, ends[0]);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool silent = next + static_cast<int>(answers.size()) < times && !answers.ends_with('H');
    if (silent) answers += static_cast<char>(Reading::crashed);
    for (const char answer : answers) {
      ++readings[static_cast<Reading>(answer)];
      if (answer != 'D' && answer != 'U') {
        const Flip flip = flip_of(seed, next, content.size());
        notes += fmt::format(" {}: byte {} bit {}", answer, flip.byte, flip.bit);
      }
      ++next;
    }
  }
  return readings;
}

}  // namespace echelon::test

// SPDX-License-Identifier: Apache-2.0
// Reads a shard with flipped bits in child processes, so that a crash is one outcome among others.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace echelon::test {

enum class Reading : char {
  refused = 'D',    // DataError
  unchanged = 'U',  // all values that a run takes from the file are the same
  other = 'O',      // other data, without an error
  wrong = 'W',      // another exception
  crashed = 'C',    // a signal
  hung = 'H',       // no answer within 20 s
};
using Readings = std::map<Reading, int>;

// Returns a checksum of everything that a run reads from the set at `location`: header, vocabularies, every record.
std::uint64_t digest_of_set(const std::string& location);

// Flips one bit of the file at `path`, `times` times at places that follow from `seed`, each time in a fresh copy, and
// reads the copy. `notes` lists byte and bit for each outcome except refused and unchanged.
Readings read_with_flips(const std::string& path, int times, std::uint64_t seed, std::string& notes);

}  // namespace echelon::test

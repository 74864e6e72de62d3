// SPDX-License-Identifier: Apache-2.0
// Parses TOML into a Config. It is strict: unknown and duplicate keys, wrong types and values out of range are
// ConfigErrors that begin with `file:line:column` and end with the nearest valid choice.
//
// Precedence: --set over environment (ECHELON_<SECTION>_<KEY>, upper case) over file over default. `--set key=` resets
// a key to its default. Keys of the file that an override makes unusable are reset to their defaults, with a note.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

// Reads a file, then applies the environment and `sets` ("section.key=value"; the value is TOML, a bare word is
// text). Checks values and combinations (check_combinations). Checks that need the data or the number of replicas are
// left to derive_batch (config/batch_plan.hpp). `notes`, if given, gets a sentence for each key of the file that an
// override made unusable. Throws ConfigError, also if the file cannot be read. Reads files and the environment,
// prints nothing.
Config load_config(const std::string& path, const std::vector<std::string>& sets = {},
                   std::vector<std::string>* notes = nullptr);

// The same from a text and without check_combinations, for tests; messages use `path` as its name.
Config parse_config(const std::string& text, const std::string& path, const std::vector<std::string>& sets = {},
                    const std::vector<std::pair<std::string, std::string>>& environment = {},
                    std::vector<std::string>* notes = nullptr);

// Returns the effective config, with every default, as TOML that parses to an equal Config with the same hash.
std::string echo_config(const Config& config);

// Returns the checksum (checksum64) of the effective config without neutral keys (Key::neutral: run.*, checkpoint.*,
// length of training). Runs with one hash share a run folder and resume each other. The length of training counts only
// if the schedule spans the run. run.resume_from counts as text, so that the hash does not change when the source gets
// newer checkpoints or is removed.
std::uint64_t config_hash(const Config& config);

// Returns every key with type, default, range and help as tables: `echelon check --keys`.
std::string keys_text();

}  // namespace echelon::inline config

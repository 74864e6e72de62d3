// TOML in, Config out. Strict: unknown and duplicate keys, wrong types and values out of range are ConfigErrors that
// begin with `file:line:column` and end with the nearest valid choice.
//
// Precedence: --set over environment (ECHELON_<SECTION>_<KEY>, upper case) over file over default. `--set key=` resets
// a key to its default. Keys of the file that an override makes unusable are reset to their defaults, with a note.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

// Reads a file and applies the environment, then `sets` ("section.key=value", value as TOML; a bare word is text).
// Values and combinations are checked (check_combinations); what needs the data or the number of replicas is left to
// derive_batch (config/batch_plan.hpp). `notes`, where given, gets a sentence for each key of the file that an override
// made unusable. Throws ConfigError, also where the file cannot be read. Reads files and the environment, prints
// nothing.
Config load_config(const std::string& path, const std::vector<std::string>& sets = {},
                   std::vector<std::string>* notes = nullptr);

// The same from text and without check_combinations, for tests; `path` names it in messages.
Config parse_config(const std::string& text, const std::string& path, const std::vector<std::string>& sets = {},
                    const std::vector<std::pair<std::string, std::string>>& environment = {},
                    std::vector<std::string>* notes = nullptr);

// The effective config, every default included, as TOML that parses to an equal Config of the same hash.
std::string echo_config(const Config& config);

// Checksum (checksum64) of the effective config without neutral keys (Key::neutral: run.*, checkpoint.*, how long to
// train): runs of one hash share a run folder and resume each other. The length of training counts where the schedule
// spans the run. run.resume_from counts as text, so that the hash stays when the source gets newer checkpoints or is
// removed.
std::uint64_t config_hash(const Config& config);

// Every key with type, default, range and help as tables: `echelon check --keys`.
std::string keys_text();

}  // namespace echelon::inline config

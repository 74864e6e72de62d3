// TOML in, Config out. Strict: unknown and duplicate keys, wrong types and values out of range are ConfigErrors that
// say `file:line:column: what, where, the nearest valid thing`.
//
// Precedence: --set over environment (ECHELON_<SECTION>_<KEY>, upper case) over file over default. `--set key=` puts a
// key back to its default. Keys of the file that an override leaves without a use go back to theirs, with a note.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

// Reads a file and applies the environment, then `sets` ("section.key=value", value as TOML; a bare word is text).
// Values are checked one by one; what needs the data or the number of replicas is for `derive` (config/batch_plan.hpp).
// `notes`, where given, gets a sentence for each key of the file that an override left out.
Config load_config(const std::string& path, const std::vector<std::string>& sets = {},
                   std::vector<std::string>* notes = nullptr);

// The same from text, for tests; `path` names it in messages.
Config parse_config(const std::string& text, const std::string& path, const std::vector<std::string>& sets = {},
                    const std::vector<std::pair<std::string, std::string>>& environment = {},
                    std::vector<std::string>* notes = nullptr);

// The effective config, every default included, as TOML that parses to an equal Config of the same hash.
std::string echo_config(const Config& config);

// Of the effective config without restart-neutral keys (run.*, checkpoint.*, how long to train): what makes two runs
// the same. run.resume_from counts as it is written, so that the run stays the same when the source gets newer
// checkpoints or is removed.
std::uint64_t config_hash(const Config& config);

// Every key with default, range and help, for `echelon check --keys`.
std::string keys_text();

}  // namespace echelon::inline config

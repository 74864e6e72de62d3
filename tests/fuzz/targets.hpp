// SPDX-License-Identifier: Apache-2.0
// The makers behind the names; each room has a file.
#pragma once

#include "tests/fuzz/target.hpp"

namespace echelon::fuzz {

using TargetMaker = std::unique_ptr<Target>(const Place&);
TargetMaker make_config, make_study, make_sentences;
TargetMaker make_shard, make_old_shard, make_any_hdf5;
TargetMaker make_checkpoint, make_loaded, make_weights;
TargetMaker make_import;
TargetMaker make_codec, make_strom;
TargetMaker make_async_machine, make_server_machine, make_backup_machine, make_strom_machine;
TargetMaker make_records, make_ledger;

}  // namespace echelon::fuzz

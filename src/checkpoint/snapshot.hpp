// SPDX-License-Identifier: Apache-2.0
// An in-memory copy of a run's state, from which a checkpoint is written while training continues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/state.hpp"
#include "checkpoint/slices.hpp"

namespace echelon::inline checkpoint {

class Snapshot {
 public:
  // Prepare a copy of these tensors without their values: `expect` records their sizes, and `allocate`, callable from
  // any thread, allocates the memory. A first copy into new memory takes several times as long as a later one.
  void expect(const VisitAll& visit);
  void allocate();
  // Copies all that is visited, with gathered rows in place of this rank's own; takes over their memory. Reuses the
  // memory of the last copy for tensors that are the same.
  void take(const VisitAll& visit, GatheredTensors gathered);
  // Shows the copy: the same names in the same order as with_gathered.
  void visit_state(StateVisitor& visitor);

 private:
  class Copier;
  class Sizer;
  struct Item {
    enum class Kind : std::uint8_t { tensor, whole_number, number };
    std::string name;
    Kind kind = Kind::tensor;
    StateTensor tensor;  // its name and data are replaced by those below
    std::vector<std::byte> bytes;
    std::size_t begin = 0;  // start of the tensor in `bytes`
    std::int64_t whole_number = 0;
    double number = 0;
  };
  std::vector<Item> items_;
  std::vector<std::size_t> expected_bytes_;  // [item]
};

}  // namespace echelon::inline checkpoint

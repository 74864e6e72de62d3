// SPDX-License-Identifier: Apache-2.0
#include "train/recurrent_state.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "base/check.hpp"

namespace echelon::inline train {
namespace {

// One state, with all rows of this rank.
struct Whole {
  DType dtype = DType::f32;
  Shape row;  // of one row
  std::vector<std::byte> bytes;
};
using Wholes = std::map<std::string, Whole, std::less<>>;

// Copies between the slots of one program's states (slots, N, ..) and the rows of the rank.
class Mover final : public StateVisitor {
 public:
  Mover(const std::vector<RecurrentStateRows>& rows, const Program* program, std::int64_t own, bool into_program,
        Wholes& wholes)
      : rows_(rows), program_(program), own_(own), into_program_(into_program), wholes_(wholes) {}
  bool loading() const override { return into_program_; }

  void tensor(const StateTensor& t) override {
    Whole& whole = wholes_[std::string(t.name)];
    whole.dtype = t.dtype;
    ECHELON_CHECK_EQ(t.shape.rank(), 3, "'{}' is (slots, N, H)", t.name);
    whole.row = t.shape.without_front().without_front();
    const std::size_t row_bytes = static_cast<std::size_t>(whole.row.elems()) * size_of(t.dtype);
    const std::size_t slot_bytes = static_cast<std::size_t>(t.shape[1]) * row_bytes;
    whole.bytes.resize(static_cast<std::size_t>(own_) * row_bytes);
    for (const RecurrentStateRows& rows : rows_) {
      if (rows.program != program_) continue;
      auto* slot = static_cast<std::byte*>(t.data) + static_cast<std::size_t>(rows.slot) * slot_bytes;
      std::byte* row = whole.bytes.data() + static_cast<std::size_t>(rows.row) * row_bytes;
      if (into_program_)
        std::memcpy(slot, row, slot_bytes);
      else
        std::memcpy(row, slot, slot_bytes);
    }
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}

 private:
  const std::vector<RecurrentStateRows>& rows_;
  const Program* program_;
  std::int64_t own_;
  bool into_program_;
  Wholes& wholes_;
};

void move(const std::vector<RecurrentStateRows>& rows, std::int64_t own, bool into_programs, Wholes& wholes) {
  std::vector<const Program*> done;
  for (const RecurrentStateRows& of : rows) {
    if (std::find(done.begin(), done.end(), of.program) != done.end()) continue;
    done.push_back(of.program);
    Mover mover(rows, of.program, own, into_programs, wholes);
    of.program->visit_state(mover);
  }
}

}  // namespace

void visit_recurrent_state(const std::vector<RecurrentStateRows>& rows, std::int64_t first, std::int64_t own,
                           std::int64_t global, StateVisitor& visitor) {
  Wholes wholes;
  move(rows, own, false, wholes);
  for (auto& [name, whole] : wholes) {
    const std::string shown = "carried/" + name;
    visitor.tensor({.name = shown,
                    .data = whole.bytes.data(),
                    .dtype = whole.dtype,
                    .shape = whole.row.prepended(own),
                    .placement = Placement::rows,
                    .global_shape = whole.row.prepended(global),
                    .offset = {first, 0}});
  }
  if (visitor.loading()) move(rows, own, true, wholes);
}

}  // namespace echelon::inline train

// SPDX-License-Identifier: Apache-2.0
#include "model/splits/halo.hpp"

#include <fmt/format.h>

#include "base/check.hpp"

namespace echelon::inline model {
namespace {

constexpr TensorRef kNothing;

}  // namespace

using Piece = RowPieces::Piece;

void Halo::send(const std::string& tag, int cut, const Piece& from, std::int64_t first, std::int64_t count) const {
  if (count > 0) lowering_.transfer(cut, rows_.slice(tag, from, first, count).tensor, kNothing);
}

Piece Halo::received(const std::string& tag, int cut, std::int64_t count) const {
  const Piece room = rows_.room(tag, count);
  lowering_.transfer(cut, kNothing, room.tensor);
  return room;
}

void Halo::send_rows() const {
  const Piece own{lowering_.input(0), own_};
  send("to above", f_.above.out_cut, own, 0, f_.above.out);
  send("to below", f_.below.out_cut, own, own_ - f_.below.out, f_.below.out);
}

std::vector<Piece> Halo::from_above() const {
  if (f_.above.in > 0) received("from above", f_.above.in_cut, f_.above.in);
  return kept_above();
}

std::vector<Piece> Halo::from_below() const {
  if (f_.below.in > 0) received("from below", f_.below.in_cut, f_.below.in);
  return kept_below();
}

std::vector<Piece> Halo::kept_above() const {
  std::vector<Piece> pieces;
  if (f_.above.padding > 0) pieces.push_back(rows_.zeros("padding above", f_.above.padding));
  if (f_.above.in > 0) pieces.push_back(rows_.room("from above", f_.above.in));
  return pieces;
}

std::vector<Piece> Halo::kept_below() const {
  std::vector<Piece> pieces;
  if (f_.below.in > 0) pieces.push_back(rows_.room("from below", f_.below.in));
  if (f_.below.padding > 0) pieces.push_back(rows_.zeros("padding below", f_.below.padding));
  return pieces;
}

void Halo::send_back_above(const Piece& gradient, std::int64_t first) const {
  send("back above", f_.above.in_cut, gradient, first, f_.above.in);
}

void Halo::send_back_below(const Piece& gradient, std::int64_t first) const {
  send("back below", f_.below.in_cut, gradient, first, f_.below.in);
}

std::vector<RowPieces::Source> Halo::gradients_of_sent() const {
  std::vector<RowPieces::Source> sources;
  if (f_.above.out > 0) sources.push_back({received("d above", f_.above.out_cut, f_.above.out), 0, f_.above.out, 0});
  if (f_.below.out > 0)
    sources.push_back({received("d below", f_.below.out_cut, f_.below.out), own_ - f_.below.out, own_, 0});
  return sources;
}

Shape with_halo(const Shape& sample, const RowsFetch& f) {
  ECHELON_CHECK(f.end <= sample[1] && f.above.out <= sample[1] && f.below.out <= sample[1], "rows of {}",
                sample.text());
  return sample.with(1, f.above.rows() + f.end - f.first + f.below.rows());
}

std::string rows_text(const RowsFetch& f) {
  return fmt::format("{} + {} + {}", f.above.rows(), f.end - f.first, f.below.rows());
}

}  // namespace echelon::inline model

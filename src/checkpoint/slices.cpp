#include "checkpoint/slices.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline checkpoint {
namespace {

std::size_t bytes_of(const Shape& shape, DType dtype) {
  return static_cast<std::size_t>(shape.elems()) * size_of(dtype);
}

// What this rank holds of tensors that are distributed by rows.
class RowsLister final : public StateVisitor {
 public:
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    if (t.placement != Placement::rows && t.placement != Placement::per_replica) return;
    names.emplace_back(t.name);
    held.push_back(t);
  }
  void scalar(std::string_view, std::int64_t&) override {}
  void scalar(std::string_view, double&) override {}

  std::vector<std::string> names;
  std::vector<StateTensor> held;  // in order of the names; their own views of names are not used
};

// Bytes of a tensor that each rank holds, within all its rows: of `rows`, first and number by rank and tensor.
std::vector<ElemRange> places_of(const StateTensor& tensor, const std::vector<double>& rows, std::size_t index,
                                 std::size_t tensors) {
  const auto row = static_cast<std::int64_t>(bytes_of(tensor.shape.with_front(1), tensor.dtype));
  std::vector<ElemRange> places;
  for (std::size_t at = 2 * index; at < rows.size(); at += 2 * tensors) {
    const auto first = static_cast<std::int64_t>(rows[at]), count = static_cast<std::int64_t>(rows[at + 1]);
    places.push_back({first * row, (first + count) * row});
  }
  return places;
}

void require_each_row_once(std::vector<ElemRange> places, std::int64_t bytes, bool holes, const std::string& name) {
  std::sort(places.begin(), places.end(), [](const ElemRange& a, const ElemRange& b) { return a.begin < b.begin; });
  std::int64_t end = 0, filled = 0;
  for (const ElemRange& place : places) {
    if (place.empty()) continue;
    ECHELON_CHECK_GE(place.begin, end, "rows of '{}' overlap", name);
    end = place.end, filled += place.elems();
  }
  ECHELON_CHECK_LE(end, bytes, "rows of '{}'", name);
  ECHELON_CHECK(holes || filled == bytes, "the ranks hold {} of {} bytes of '{}'", filled, bytes, name);
}

class WithGathered final : public StateVisitor {
 public:
  WithGathered(StateVisitor& inner, const GatheredTensors& gathered) : inner_(inner), gathered_(gathered) {}
  bool loading() const override { return inner_.loading(); }
  void tensor(const StateTensor& t) override {
    const auto found = gathered_.find(t.name);
    inner_.tensor(found == gathered_.end() ? t : with_rows(t, found->second));
  }
  void scalar(std::string_view name, std::int64_t& value) override { inner_.scalar(name, value); }
  void scalar(std::string_view name, double& value) override { inner_.scalar(name, value); }

 private:
  StateVisitor& inner_;
  const GatheredTensors& gathered_;
};

}  // namespace

Shape whole_shape(const StateTensor& tensor) { return region_of(tensor).whole.folded(folded_axis(tensor)); }

Shape held_shape(const StateTensor& tensor) { return tensor.shape.folded(folded_axis(tensor)); }

TensorRegion region_of(const StateTensor& tensor) {
  if (tensor.placement != Placement::replicated) return {tensor.shape, tensor.global_shape, tensor.offset};
  const std::vector<std::int64_t> begins(static_cast<std::size_t>(tensor.shape.rank()), 0);
  return {tensor.shape, tensor.shape, Shape(std::span<const std::int64_t>(begins))};
}

int folded_axis(const StateTensor& tensor) { return tensor.placement == Placement::replicated ? -1 : tensor.folded; }

GatheredTensors gather_rows(Group& group, const VisitAll& visit, bool holes) {
  RowsLister own;
  visit(own);
  std::vector<double> own_rows;
  for (const StateTensor& t : own.held) {
    own_rows.push_back(static_cast<double>(t.offset[0]));
    own_rows.push_back(static_cast<double>(t.shape[0]));
  }
  const std::vector<double> rows = group.gather(own_rows);
  GatheredTensors gathered;
  for (std::size_t i = 0; i < own.held.size(); ++i) {
    const StateTensor& t = own.held[i];
    const Shape all = t.shape.with_front(t.global_shape[0]);
    const std::vector<ElemRange> places = places_of(t, rows, i, own.held.size());
    require_each_row_once(places, static_cast<std::int64_t>(bytes_of(all, t.dtype)), holes, own.names[i]);
    if (group.rank() > 0) {
      group.gather_to_first(t.data, places);
      continue;
    }
    std::vector<std::byte> whole(bytes_of(all, t.dtype));
    const ElemRange& first = places.front();
    if (!first.empty()) std::memcpy(whole.data() + first.begin, t.data, static_cast<std::size_t>(first.elems()));
    group.gather_to_first(whole.data(), places);
    gathered.insert_or_assign(own.names[i], GatheredTensor{.shape = all, .bytes = std::move(whole)});
  }
  return gathered;
}

StateTensor with_rows(const StateTensor& tensor, const GatheredTensor& gathered) {
  StateTensor shown = tensor;
  shown.data = const_cast<std::byte*>(gathered.bytes.data());
  shown.shape = gathered.shape;
  shown.offset = tensor.offset.with_front(0);
  shown.placement = Placement::slice;
  return shown;
}

VisitAll with_gathered(const VisitAll& visit, const GatheredTensors& gathered) {
  return [visit, &gathered](StateVisitor& visitor) {
    WithGathered shown(visitor, gathered);
    visit(shown);
  };
}

}  // namespace echelon::inline checkpoint

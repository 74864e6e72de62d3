// SPDX-License-Identifier: Apache-2.0
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

void require_each_row_once(std::vector<ElemRange> ranges, std::int64_t bytes, bool holes, std::string_view name) {
  std::sort(ranges.begin(), ranges.end(), [](const ElemRange& a, const ElemRange& b) { return a.begin < b.begin; });
  std::int64_t end = 0, filled = 0;
  for (const ElemRange& range : ranges) {
    if (range.empty()) continue;
    ECHELON_CHECK_GE(range.begin, end, "rows of '{}' overlap", name);
    end = range.end, filled += range.elems();
  }
  ECHELON_CHECK_LE(end, bytes, "rows of '{}'", name);
  ECHELON_CHECK(holes || filled == bytes, "the ranks hold {} of {} bytes of '{}'", filled, bytes, name);
}

// Gathers each tensor while it is shown, because its data may be gone afterwards.
class Gatherer final : public StateVisitor {
 public:
  Gatherer(Group& group, bool holes) : group_(group), holes_(holes) {}
  bool loading() const override { return false; }

  void tensor(const StateTensor& t) override {
    if (t.placement != Placement::rows && t.placement != Placement::per_replica) return;
    const Shape all = t.shape.with_front(t.global_shape[0]);
    const std::size_t bytes = bytes_of(all, t.dtype);
    const std::vector<ElemRange> ranges = ranges_of(t);
    require_each_row_once(ranges, static_cast<std::int64_t>(bytes), holes_, t.name);
    if (group_.rank() > 0) return group_.gather_to_first(t.data, ranges);
    std::vector<std::byte> whole(bytes);
    const ElemRange own = ranges.front();
    if (!own.empty()) std::memcpy(whole.data() + own.begin, t.data, static_cast<std::size_t>(own.elems()));
    group_.gather_to_first(whole.data(), ranges);
    gathered_.insert_or_assign(std::string(t.name), GatheredTensor{.shape = all, .bytes = std::move(whole)});
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}
  GatheredTensors take() { return std::move(gathered_); }

 private:
  // Byte ranges of the rows of each rank within those of all.
  std::vector<ElemRange> ranges_of(const StateTensor& t) {
    const auto row = static_cast<std::int64_t>(bytes_of(t.shape.with_front(1), t.dtype));
    const double own[] = {static_cast<double>(t.offset[0]), static_cast<double>(t.shape[0])};
    const std::vector<double> rows = group_.gather(own);
    std::vector<ElemRange> ranges;
    for (std::size_t at = 0; at < rows.size(); at += 2) {
      const auto first = static_cast<std::int64_t>(rows[at]), count = static_cast<std::int64_t>(rows[at + 1]);
      ranges.push_back({first * row, (first + count) * row});
    }
    return ranges;
  }

  Group& group_;
  bool holes_;
  GatheredTensors gathered_;
};

class WithGathered final : public StateVisitor {
 public:
  WithGathered(StateVisitor& inner, const GatheredTensors& gathered) : inner_(inner), gathered_(gathered) {}
  bool loading() const override { return inner_.loading(); }
  void tensor(const StateTensor& t) override {
    const auto found = gathered_.find(t.name);
    inner_.tensor(found == gathered_.end() ? t : with_rows(t, found->second));
  }
  void scalar(std::string_view name, std::int64_t& value, Absent absent) override {
    inner_.scalar(name, value, absent);
  }
  void scalar(std::string_view name, double& value, Absent absent) override { inner_.scalar(name, value, absent); }

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
  Gatherer gatherer(group, holes);
  visit(gatherer);
  return gatherer.take();
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

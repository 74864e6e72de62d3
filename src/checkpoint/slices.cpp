#include "checkpoint/slices.hpp"

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

class Gatherer final : public StateVisitor {
 public:
  Gatherer(Group& group, bool holes) : group_(group), holes_(holes) {}
  bool loading() const override { return false; }

  // Sent: the first row, then the rows.
  void tensor(const StateTensor& t) override {
    if (t.placement != Placement::rows && t.placement != Placement::per_replica) return;
    const Shape all = t.shape.with_front(t.global_shape[0]);
    const std::size_t own = bytes_of(t.shape, t.dtype), row = bytes_of(t.shape.with_front(1), t.dtype);
    std::int64_t first = t.offset[0];
    std::string sent(sizeof first + own, '\0');
    std::memcpy(sent.data(), &first, sizeof first);
    std::memcpy(sent.data() + sizeof first, t.data, own);
    GatheredTensor& made = gathered_[std::string(t.name)];
    made = {.shape = all, .bytes = std::vector<std::byte>(bytes_of(all, t.dtype))};
    std::vector<std::byte>& whole = made.bytes;
    std::size_t filled = 0;
    for (const std::string& part : group_.gather(sent)) {
      std::memcpy(&first, part.data(), sizeof first);
      const std::size_t bytes = part.size() - sizeof first, at = static_cast<std::size_t>(first) * row;
      ECHELON_CHECK_LE(at + bytes, whole.size(), "rows of '{}'", t.name);
      std::memcpy(whole.data() + at, part.data() + sizeof first, bytes);
      filled += bytes;
    }
    ECHELON_CHECK(holes_ || filled == whole.size(), "the ranks hold {} of {} bytes of '{}'", filled, whole.size(),
                  t.name);
  }
  void scalar(std::string_view, std::int64_t&) override {}
  void scalar(std::string_view, double&) override {}
  GatheredTensors take() { return std::move(gathered_); }

 private:
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

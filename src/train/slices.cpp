#include "train/slices.hpp"

#include <cstring>

#include "base/check.hpp"

namespace echelon {
namespace {

std::size_t bytes_of(const Shape& shape, DType dtype) {
  return static_cast<std::size_t>(shape.elems()) * size_of(dtype);
}

class Gatherer final : public StateVisitor {
 public:
  explicit Gatherer(Group& group) : group_(group) {}
  bool loading() const override { return false; }

  // Sent: the first row, then the rows.
  void tensor(const StateTensor& t) override {
    if (t.placement == Placement::replicated) return;
    ECHELON_CHECK(t.shape.with_front(0) == t.global_shape.with_front(0), "'{}' is cut elsewhere than by rows", t.name);
    const std::size_t own = bytes_of(t.shape, t.dtype), row = bytes_of(t.shape.with_front(1), t.dtype);
    std::int64_t first = t.offset[0];
    std::string sent(sizeof first + own, '\0');
    std::memcpy(sent.data(), &first, sizeof first);
    std::memcpy(sent.data() + sizeof first, t.data, own);
    std::vector<std::byte>& whole = wholes_[std::string(t.name)];
    whole.resize(bytes_of(t.global_shape, t.dtype));
    std::size_t filled = 0;
    for (const std::string& part : group_.gather(sent)) {
      std::memcpy(&first, part.data(), sizeof first);
      const std::size_t bytes = part.size() - sizeof first, at = static_cast<std::size_t>(first) * row;
      ECHELON_CHECK_LE(at + bytes, whole.size(), "rows of '{}'", t.name);
      std::memcpy(whole.data() + at, part.data() + sizeof first, bytes);
      filled += bytes;
    }
    ECHELON_CHECK_EQ(filled, whole.size(), "the ranks hold '{}' once", t.name);
  }
  void scalar(std::string_view, std::int64_t&) override {}
  void scalar(std::string_view, double&) override {}
  WholeTensors take() { return std::move(wholes_); }

 private:
  Group& group_;
  WholeTensors wholes_;
};

}  // namespace

WholeTensors gather_slices(Group& group, const VisitAll& visit) {
  Gatherer gatherer(group);
  visit(gatherer);
  return gatherer.take();
}

}  // namespace echelon

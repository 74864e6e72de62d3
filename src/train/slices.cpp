#include "train/slices.hpp"

#include <cstring>

#include "base/box.hpp"
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
    WholeTensor& made = wholes_[std::string(t.name)];
    made = {.dtype = t.dtype, .shape = t.global_shape, .bytes = {}};
    std::vector<std::byte>& whole = made.bytes;
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

// Writes what a rank is shown into one text.
class Packer final : public StateVisitor {
 public:
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    if (t.placement == Placement::per_replica) return;
    const bool slice = t.placement == Placement::slice;
    put(static_cast<std::int64_t>(t.name.size()));
    packed_.append(t.name);
    put(static_cast<std::int64_t>(t.dtype));
    put(t.shape.rank());
    for (int axis = 0; axis < t.shape.rank(); ++axis) {
      put(t.shape[axis]);
      put(slice ? t.global_shape[axis] : t.shape[axis]);
      put(slice ? t.offset[axis] : 0);
    }
    packed_.append(static_cast<const char*>(t.data), bytes_of(t.shape, t.dtype));
  }
  void scalar(std::string_view, std::int64_t&) override {}
  void scalar(std::string_view, double&) override {}
  std::string take() { return std::move(packed_); }

 private:
  void put(std::int64_t number) { packed_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  std::string packed_;
};

void unpack(const std::string& packed, WholeTensors& wholes) {
  std::size_t at = 0;
  const auto take = [&](std::size_t bytes) {
    ECHELON_CHECK_LE(at + bytes, packed.size());
    at += bytes;
    return packed.data() + at - bytes;
  };
  const auto number = [&] {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  };
  while (at < packed.size()) {
    const auto length = static_cast<std::size_t>(number());
    const std::string name(take(length), length);
    const auto dtype = static_cast<DType>(number());
    std::vector<std::int64_t> extents(static_cast<std::size_t>(number())), whole(extents.size()),
        offset(extents.size());
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      extents[axis] = number();
      whole[axis] = number();
      offset[axis] = number();
    }
    const Box box{Shape(extents), Shape(whole), Shape(offset)};
    WholeTensor& tensor = wholes[name];
    tensor.dtype = dtype;
    tensor.shape = box.whole;
    tensor.bytes.resize(bytes_of(box.whole, dtype));
    copy_into_whole(box, size_of(dtype), take(bytes_of(box.shape, dtype)), tensor.bytes.data());
  }
}

}  // namespace

void gather_parts(Group& group, const VisitAll& visit, WholeTensors& wholes) {
  Packer packer;
  visit(packer);
  for (const std::string& packed : group.gather(packer.take())) unpack(packed, wholes);
}

WholeTensors gather_slices(Group& group, const VisitAll& visit) {
  Gatherer gatherer(group);
  visit(gatherer);
  return gatherer.take();
}

}  // namespace echelon

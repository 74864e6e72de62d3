#include "checkpoint/slices.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "base/tensor_region.hpp"
#include "comm/collective/message.hpp"

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
    WholeTensor& made = wholes_[std::string(t.name)];
    made = {.dtype = t.dtype, .shape = all, .bytes = {}};
    std::vector<std::byte>& whole = made.bytes;
    whole.resize(bytes_of(all, t.dtype));
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
  WholeTensors take() { return std::move(wholes_); }

 private:
  Group& group_;
  bool holes_;
  WholeTensors wholes_;
};

// Messages of bytes between two ranks, one after another.
class Line {
 public:
  Line(Engine& group, int channel, int peer) : group_(group), channel_(channel), peer_(peer) {}
  void send(const void* data, std::size_t bytes) {
    run(make_send_to(peer_, static_cast<std::int64_t>(bytes)), const_cast<void*>(data));
  }
  void receive(void* data, std::size_t bytes) { run(make_receive_from(peer_, static_cast<std::int64_t>(bytes)), data); }

 private:
  void run(std::shared_ptr<const Plan> plan, void* data) {
    group_.run({.plan = std::move(plan), .data = data, .dtype = DType::u8, .channel = channel_, .after = nullptr});
  }
  Engine& group_;
  int channel_, peer_;
};

// Sent before the values of a tensor; a label without a name ends the sequence.
struct Label {
  static constexpr std::size_t kAxes = Shape::kMaxRank;
  std::array<char, 256> name{};
  std::int64_t dtype = 0, rank = 0, folded = -1;
  std::array<std::int64_t, kAxes> shape{}, whole{}, offset{};

  Label() = default;
  explicit Label(const StateTensor& t) : dtype(static_cast<std::int64_t>(t.dtype)), rank(t.shape.rank()) {
    ECHELON_CHECK_LT(t.name.size(), name.size(), "the name '{}'", t.name);
    std::copy(t.name.begin(), t.name.end(), name.begin());
    const bool slice = t.placement == Placement::slice;
    if (slice) folded = t.folded;
    for (int axis = 0; axis < t.shape.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      shape[i] = t.shape[axis];
      whole[i] = slice ? t.global_shape[axis] : t.shape[axis];
      offset[i] = slice ? t.offset[axis] : 0;
    }
  }
  TensorRegion region() const {
    const auto of = [&](const std::array<std::int64_t, kAxes>& all) {
      return Shape(std::span(all.data(), static_cast<std::size_t>(rank)));
    };
    return {of(shape), of(whole), of(offset)};
  }
};

void add(const Label& label, const void* data, WholeTensors& wholes) {
  const TensorRegion region = label.region();
  WholeTensor& tensor = wholes[label.name.data()];
  tensor.dtype = static_cast<DType>(label.dtype);
  tensor.shape = region.whole.folded(static_cast<int>(label.folded));
  tensor.bytes.resize(bytes_of(region.whole, tensor.dtype));
  copy_into_whole(region, size_of(tensor.dtype), data, tensor.bytes.data());
}

// Rank 0's own slices are added, the other ranks' tensors sent; what is in `wholes` already, of all replicas, as it is
// there.
class PartVisitor final : public StateVisitor {
 public:
  PartVisitor(Line* line, WholeTensors& wholes) : line_(line), wholes_(wholes) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    const auto gathered = wholes_.find(t.name);
    if (gathered == wholes_.end()) return add_or_send(t);
    const std::vector<std::byte> all = std::move(gathered->second.bytes);
    StateTensor part = t;  // the rows of all replicas
    part.data = const_cast<std::byte*>(all.data());
    part.shape = gathered->second.shape;
    part.offset = part.offset.with_front(0);
    part.placement = Placement::slice;
    add_or_send(part);
  }
  void scalar(std::string_view, std::int64_t&) override {}
  void scalar(std::string_view, double&) override {}

 private:
  void add_or_send(const StateTensor& t) {
    const Label label(t);
    if (line_) {
      line_->send(&label, sizeof label);
      line_->send(t.data, bytes_of(t.shape, t.dtype));
    } else if (t.placement == Placement::slice) {
      add(label, t.data, wholes_);
    }
  }

  Line* line_;  // null on rank 0
  WholeTensors& wholes_;
};

void receive_parts(Line line, WholeTensors& wholes) {
  std::vector<std::byte> data;
  for (Label label;;) {
    line.receive(&label, sizeof label);
    if (label.name[0] == '\0') return;
    data.resize(bytes_of(label.region().shape, static_cast<DType>(label.dtype)));
    line.receive(data.data(), data.size());
    add(label, data.data(), wholes);
  }
}

}  // namespace

Shape whole_shape(const StateTensor& tensor) {
  return tensor.placement == Placement::replicated ? tensor.shape : tensor.global_shape.folded(tensor.folded);
}

void gather_parts(Engine& group, int channel, const VisitAll& visit, WholeTensors& wholes) {
  Line to_first(group, channel, 0);
  PartVisitor visitor(group.rank() == 0 ? nullptr : &to_first, wholes);
  visit(visitor);
  const Label end;
  if (group.rank() > 0) return to_first.send(&end, sizeof end);
  for (int rank = 1; rank < group.size(); ++rank) receive_parts(Line(group, channel, rank), wholes);
}

WholeTensors gather_slices(Group& group, const VisitAll& visit, bool holes) {
  Gatherer gatherer(group, holes);
  visit(gatherer);
  return gatherer.take();
}

}  // namespace echelon::inline checkpoint

#include "checkpoint/snapshot.hpp"

#include <utility>

#include "base/check.hpp"

namespace echelon::inline checkpoint {

class Snapshot::Copier final : public StateVisitor {
 public:
  Copier(std::vector<Item>& items, WholeTensors wholes) : items_(items), wholes_(std::move(wholes)) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    Item& item = next(t.name, Item::Kind::tensor);
    const Shape shape = whole_shape(t);
    if (shape != t.shape) {
      const auto whole = wholes_.find(t.name);
      ECHELON_CHECK(whole != wholes_.end(), "'{}' is {} of {}", t.name, t.shape.text(), shape.text());
      item.tensor = std::move(whole->second);
      wholes_.erase(whole);
      return;
    }
    wholes_.erase(std::string(t.name));
    item.tensor.dtype = t.dtype;
    item.tensor.shape = shape;
    const auto* from = static_cast<const std::byte*>(t.data);
    item.tensor.bytes.assign(from, from + static_cast<std::size_t>(shape.elems()) * size_of(t.dtype));
  }
  void scalar(std::string_view name, std::int64_t& value) override {
    next(name, Item::Kind::whole_number).whole_number = value;
  }
  void scalar(std::string_view name, double& value) override { next(name, Item::Kind::number).number = value; }

  void end() {
    for (auto& [name, whole] : wholes_) next(name, Item::Kind::tensor).tensor = std::move(whole);
    items_.resize(count_);
  }

 private:
  Item& next(std::string_view name, Item::Kind kind) {
    if (count_ == items_.size()) items_.emplace_back();
    Item& item = items_[count_++];
    item.name = name;
    item.kind = kind;
    return item;
  }

  std::vector<Item>& items_;
  WholeTensors wholes_;
  std::size_t count_ = 0;
};

// What is gathered comes with memory of its own.
class Snapshot::Sizer final : public StateVisitor {
 public:
  explicit Sizer(std::vector<std::size_t>& bytes) : bytes_(bytes) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    const bool copied = whole_shape(t) == t.shape;
    bytes_.push_back(copied ? static_cast<std::size_t>(t.shape.elems()) * size_of(t.dtype) : 0);
  }
  void scalar(std::string_view, std::int64_t&) override { bytes_.push_back(0); }
  void scalar(std::string_view, double&) override { bytes_.push_back(0); }

 private:
  std::vector<std::size_t>& bytes_;
};

void Snapshot::expect(const VisitAll& visit) {
  expected_bytes_.clear();
  Sizer sizer(expected_bytes_);
  visit(sizer);
}

void Snapshot::allocate() {
  items_.resize(expected_bytes_.size());
  for (std::size_t i = 0; i < items_.size(); ++i) items_[i].tensor.bytes.resize(expected_bytes_[i]);
}

void Snapshot::take(const VisitAll& visit, WholeTensors wholes) {
  Copier copier(items_, std::move(wholes));
  visit(copier);
  copier.end();
}

void Snapshot::visit_state(StateVisitor& visitor) {
  for (Item& item : items_) {
    if (item.kind == Item::Kind::whole_number) visitor.scalar(item.name, item.whole_number);
    if (item.kind == Item::Kind::number) visitor.scalar(item.name, item.number);
    if (item.kind != Item::Kind::tensor) continue;
    StateTensor tensor;
    tensor.name = item.name, tensor.data = item.tensor.bytes.data(), tensor.dtype = item.tensor.dtype;
    tensor.shape = item.tensor.shape;
    visitor.tensor(tensor);
  }
}

}  // namespace echelon::inline checkpoint

// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/snapshot.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

namespace echelon::inline checkpoint {
namespace {

std::size_t bytes_of(const StateTensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.elems()) * size_of(tensor.dtype);
}

constexpr std::size_t kPage = 4096;

// The offset in a buffer with a spare page at which to put bytes of `from`: the same offset within a page. If a copy
// stores a few bytes further into a page than it loads, it takes three times as long, because processors compare the
// low 12 bits of addresses, and a load waits for a store that seems to have the same address.
std::size_t same_place_in_page(const std::byte* buffer, const void* from) {
  return (reinterpret_cast<std::uintptr_t>(from) - reinterpret_cast<std::uintptr_t>(buffer)) % kPage;
}

}  // namespace

class Snapshot::Copier final : public StateVisitor {
 public:
  Copier(std::vector<Item>& items, GatheredTensors gathered) : items_(items), gathered_(std::move(gathered)) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    Item& item = next(t.name, Item::Kind::tensor);
    const auto rows = gathered_.find(t.name);
    if (rows != gathered_.end()) {
      item.tensor = with_rows(t, rows->second);
      item.bytes = std::move(rows->second.bytes);
      item.begin = 0;
      return;
    }
    item.tensor = t;
    item.bytes.resize(bytes_of(t) + kPage);
    item.begin = same_place_in_page(item.bytes.data(), t.data);
    if (bytes_of(t) > 0) std::memcpy(item.bytes.data() + item.begin, t.data, bytes_of(t));
  }
  void scalar(std::string_view name, std::int64_t& value, Absent) override {
    next(name, Item::Kind::whole_number).whole_number = value;
  }
  void scalar(std::string_view name, double& value, Absent) override { next(name, Item::Kind::number).number = value; }
  void end() { items_.resize(count_); }

 private:
  Item& next(std::string_view name, Item::Kind kind) {
    if (count_ == items_.size()) items_.emplace_back();
    Item& item = items_[count_++];
    item.name = name;
    item.kind = kind;
    return item;
  }

  std::vector<Item>& items_;
  GatheredTensors gathered_;
  std::size_t count_ = 0;
};

// Gathered tensors bring their own memory.
class Snapshot::Sizer final : public StateVisitor {
 public:
  explicit Sizer(std::vector<std::size_t>& bytes) : bytes_(bytes) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    const bool gathered = t.placement == Placement::rows || t.placement == Placement::per_replica;
    bytes_.push_back(gathered ? 0 : bytes_of(t) + kPage);
  }
  void scalar(std::string_view, std::int64_t&, Absent) override { bytes_.push_back(0); }
  void scalar(std::string_view, double&, Absent) override { bytes_.push_back(0); }

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
  for (std::size_t i = 0; i < items_.size(); ++i) items_[i].bytes.resize(expected_bytes_[i]);
}

void Snapshot::take(const VisitAll& visit, GatheredTensors gathered) {
  Copier copier(items_, std::move(gathered));
  visit(copier);
  copier.end();
}

void Snapshot::visit_state(StateVisitor& visitor) {
  for (Item& item : items_) {
    if (item.kind == Item::Kind::whole_number) visitor.scalar(item.name, item.whole_number);
    if (item.kind == Item::Kind::number) visitor.scalar(item.name, item.number);
    if (item.kind != Item::Kind::tensor) continue;
    StateTensor tensor = item.tensor;
    tensor.name = item.name, tensor.data = item.bytes.data() + item.begin;
    visitor.tensor(tensor);
  }
}

}  // namespace echelon::inline checkpoint

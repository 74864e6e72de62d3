#include "tests/support/state_checksum.hpp"

#include <string_view>

#include "base/checksum.hpp"

namespace echelon::test {
namespace {

class Summer final : public StateVisitor {
 public:
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override { add(t.name, t.data, bytes_of(t)); }
  void scalar(std::string_view name, std::int64_t& value) override { add(name, &value, sizeof value); }
  void scalar(std::string_view name, double& value) override { add(name, &value, sizeof value); }
  std::uint64_t sum() const { return sum_; }

 private:
  void add(std::string_view name, const void* data, std::size_t bytes) {
    sum_ = checksum64(data, bytes, checksum64(name.data(), name.size(), sum_));
  }
  std::uint64_t sum_ = 0;
};

}  // namespace

std::uint64_t state_checksum(const VisitAll& visit) {
  Summer summer;
  visit(summer);
  return summer.sum();
}

}  // namespace echelon::test

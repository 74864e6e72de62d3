// SPDX-License-Identifier: Apache-2.0
// Distances between weights by tensor, on files in memory.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "checkpoint/weight_distance.hpp"

namespace echelon {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class InMemory final : public WeightsFile {
 public:
  InMemory(std::string path, std::map<std::string, std::vector<double>> values)
      : path_(std::move(path)), values_(std::move(values)) {
    for (const auto& [name, all] : values_) tensors_.push_back({name, Shape{static_cast<std::int64_t>(all.size())}});
  }
  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const StoredTensor& tensor, void* to, DType dtype) const override {
    REQUIRE(dtype == DType::f64);
    const std::vector<double>& values = values_.at(tensor.name);
    std::copy(values.begin(), values.end(), static_cast<double*>(to));
  }

 private:
  std::string path_;
  std::map<std::string, std::vector<double>> values_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace

TEST_CASE("distances of weights: largest, root mean square, relative to the base", "[checkpoint]") {
  const InMemory base("base", {{"a", {1, -4, 2}}, {"b", {0, 0}}, {"c", {0}}});
  const InMemory other("other", {{"a", {1, -3, 4}}, {"b", {0, 0}}, {"c", {0.5}}});
  const std::vector<TensorDistance> all = weight_distances(base, other);
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "a");
  CHECK(all[0].values == 3);
  CHECK(all[0].largest == 2);
  CHECK(all[0].largest_base == 4);
  CHECK(all[0].relative() == 0.5);
  CHECK(all[0].root_mean_square == Approx(std::sqrt(5.0 / 3)));
  CHECK(all[1].relative() == 0);
  CHECK(all[2].relative() == kInfinity);
}

TEST_CASE("distances of weights that are not finite", "[checkpoint]") {
  const InMemory base("base", {{"a", {NAN, kInfinity, 1}}});
  CHECK(weight_distances(base, base)[0].largest == 0);
  for (const double other : {-kInfinity, 1.0, static_cast<double>(NAN)}) {
    const InMemory fresh("other", {{"a", {NAN, other, 1}}});
    CHECK(weight_distances(base, fresh)[0].largest == kInfinity);
    CHECK(weight_distances(base, fresh)[0].relative() == kInfinity);
    CHECK(weight_distances(fresh, base)[0].relative() == kInfinity);
  }
}

TEST_CASE("weights of different models have no distance", "[checkpoint]") {
  const InMemory base("base", {{"a", {1}}}), more("more", {{"a", {1}}, {"b", {1}}}), longer("longer", {{"a", {1, 2}}});
  CHECK_THROWS_AS(weight_distances(base, more), ConfigError);
  CHECK_THROWS_AS(weight_distances(more, base), ConfigError);
  CHECK_THROWS_AS(weight_distances(base, longer), ConfigError);
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// State whose rows lie on several ranks is gathered for a checkpoint and read back by any number of ranks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <mutex>

#include "base/check.hpp"
#include "base/error.hpp"
#include "checkpoint/checkpoint.hpp"
#include "h5/file.hpp"
#include "tests/support/process.hpp"
#include "tests/support/ranks.hpp"

namespace echelon {
namespace {

constexpr std::int64_t kRows = 12, kWidth = 3;

// Rows [first, first + rows) of a tensor whose values are their positions.
struct Part {
  std::int64_t first, rows;
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(rows * kWidth), -1);

  void number() {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(first * kWidth) + static_cast<float>(i);
  }
  bool numbered() const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != static_cast<float>(first * kWidth) + static_cast<float>(i)) return false;
    return true;
  }
  VisitAll all() {
    return [this](StateVisitor& visitor) {
      visitor.tensor({.name = "carried/lstm1.h",
                      .data = values.data(),
                      .dtype = DType::f32,
                      .shape = {rows, kWidth},
                      .placement = Placement::rows,
                      .global_shape = {kRows, kWidth},
                      .offset = {first, 0}});
    };
  }
};

const std::vector<std::vector<std::int64_t>> kShares = {{12}, {6, 6}, {1, 8, 3}, {3, 3, 3, 3}};

}  // namespace

TEST_CASE("rows of any ranks are stored whole and read back by any others", "[train][checkpoint]") {
  const auto saved = GENERATE(from_range(kShares)), loaded = GENERATE(from_range(kShares));
  const test::TempFolder folder;
  const auto on_ranks = [&](const std::vector<std::int64_t>& shares, const auto& body) {
    test::run_ranks(static_cast<int>(shares.size()), [&](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport));
      Group group(engine, 0);
      Part part{0, shares[static_cast<std::size_t>(group.rank())]};
      for (int r = 0; r < group.rank(); ++r) part.first += shares[static_cast<std::size_t>(r)];
      body(group, part);
    });
  };
  on_ranks(saved, [&](Group& group, Part& part) {
    part.number();
    const GatheredTensors rows = gather_rows(group, part.all());
    if (group.rank() == 0) save_checkpoint(folder.path(), 1, with_gathered(part.all(), rows));
    group.barrier();
  });
  REQUIRE(find_checkpoint(folder.path()));
  on_ranks(loaded, [&](Group&, Part& part) {
    load_checkpoint(folder / "step-00000001.h5", part.all());
    ECHELON_CHECK(part.numbered(), "rows from {}", part.first);
  });
}

TEST_CASE("rows that are missing or held twice are refused on every rank, and holes are zeros where they may be",
          "[train][checkpoint]") {
  const std::int64_t second = GENERATE(5, 7);  // the first rank holds 6 rows: one twice, or one by no rank
  CHECK_NOTHROW(test::run_ranks(2, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Group group(engine, 0);
    Part part = group.rank() == 0 ? Part{0, 6} : Part{second, 12 - second};
    part.number();
    bool refused = false;
    try {
      gather_rows(group, part.all());
    } catch (const std::exception&) {
      refused = true;
    }
    ECHELON_CHECK(refused, "rank {}", group.rank());
    if (second == 5) return;
    const GatheredTensors rows = gather_rows(group, part.all(), true);
    ECHELON_CHECK_EQ(rows.size(), static_cast<std::size_t>(group.rank() == 0 ? 1 : 0));
    if (group.rank() > 0) return;
    const auto* values = reinterpret_cast<const float*>(rows.begin()->second.bytes.data());
    for (int i = 0; i < kRows * kWidth; ++i)
      ECHELON_CHECK_EQ(values[i], i / kWidth == 6 ? 0 : static_cast<float>(i), "value {}", i);
  }));
}

TEST_CASE("what differs by replica: its own row for as many, the sum divided for other numbers",
          "[train][checkpoint]") {
  const int saved = GENERATE(1, 2, 3), loaded = GENERATE(1, 2, 3, 4);
  const test::TempFolder folder;
  // Replica r holds 10 r + 1, 10 r + 2, ..
  const auto residual = [](int rank, int ranks, std::vector<float>& values) {
    return VisitAll([rank, ranks, &values](StateVisitor& visitor) {
      std::vector<float> shown = values;  // exists during the call only, as values copied from a device
      visitor.tensor({.name = "residual/a",
                      .data = shown.data(),
                      .dtype = DType::f32,
                      .shape = {1, 3},
                      .placement = Placement::per_replica,
                      .global_shape = {ranks, 3},
                      .offset = {rank, 0},
                      .other_k = OtherK::sum_and_divide});
      if (visitor.loading()) values = shown;
      std::fill(shown.begin(), shown.end(), -7.0f);
    });
  };
  const auto value = [](int rank, std::size_t i) { return static_cast<float>(10 * rank) + static_cast<float>(i + 1); };
  const auto on_ranks = [&](int ranks, const auto& body) {
    test::run_ranks(ranks, [&](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport));
      Group group(engine, 0);
      std::vector<float> values(3, -1);
      body(group, values);
    });
  };
  on_ranks(saved, [&](Group& group, std::vector<float>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(group.rank(), i);
    const VisitAll all = residual(group.rank(), saved, values);
    const GatheredTensors rows = gather_rows(group, all);
    if (group.rank() == 0) save_checkpoint(folder.path(), 1, with_gathered(all, rows));
    group.barrier();
  });
  REQUIRE(find_checkpoint(folder.path()));
  on_ranks(loaded, [&](Group& group, std::vector<float>& values) {
    load_checkpoint(folder / "step-00000001.h5", residual(group.rank(), loaded, values));
    for (std::size_t i = 0; i < values.size(); ++i) {
      float sum = 0;
      for (int r = 0; r < saved; ++r) sum += value(r, i);
      const float wanted = saved == loaded ? value(group.rank(), i) : sum / static_cast<float>(loaded);
      ECHELON_CHECK(std::abs(values[i] - wanted) < 1e-5f, "{} of rank {}", i, group.rank());
    }
  });
}

TEST_CASE("a checkpoint of other rows is refused with both", "[train][checkpoint]") {
  const test::TempFolder folder;
  const std::vector<float> values(15);
  h5::Writer writer(folder / "step-00000001.h5");
  writer.attribute("echelon_format", std::string("echelon-checkpoint"));
  writer.write_all("carried/lstm1.h", DType::f32, {5, 3}, values.data());
  writer.publish();
  Part part{0, 4};
  REQUIRE_THROWS_WITH(
      load_checkpoint(folder / "step-00000001.h5", part.all()),
      Catch::Contains("'carried/lstm1.h' has shape (5, 3) and type f32, this run needs shape (12, 3) and type f32"));
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// An import of samples that are as large as a damaged header claims.
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "data/import/shard_writer.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
using test::Folder;
namespace {

// A source whose damaged header claims samples of 64 MiB; it delivers none.
class Claimed final : public SampleSource {
 public:
  Claimed() { info_.sample = {1, 8192, 8192}; }
  const SourceInfo& info() const override { return info_; }
  void rewind() override {}
  std::int64_t read(std::int64_t most, std::uint8_t*, void*) override {
    asked = std::max(asked, most);
    return 0;
  }
  std::int64_t asked = 0;

 private:
  SourceInfo info_;
};

}  // namespace

TEST_CASE("an importer asks for few samples at once where they are large", "[data][import]") {
  const Folder folder;
  Claimed source;
  CHECK_THROWS_AS(write_shards(source, {.out = folder / "out"}), DataError);
  CHECK(source.asked == 1);
}

}  // namespace echelon

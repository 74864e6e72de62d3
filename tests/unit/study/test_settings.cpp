// SPDX-License-Identifier: Apache-2.0
// Differences between the cells of a study: environments, shared cells, order, layers, files, hosts, verbs, proposers.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "config/parse.hpp"
#include "study/control.hpp"
#include "study/placement.hpp"
#include "study/study.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

using Catch::Contains;

constexpr const char* kTop = "name = \"digits\"\nseed = 7\n[model]\nzoo = \"lenet\"\n[batch]\nglobal = 64\n";
constexpr const char* kData = "[data]\ntrain = \"nowhere\"\ntest = \"nowhere\"\n";

StudyPlan study_from(const std::string& section, const std::vector<std::string>& sets = {},
                     const std::string& data = kData) {
  const test::TempFolder folder;
  write_file_whole(folder / "s.toml", kTop + data + section);
  return load_study(folder / "s.toml", sets);
}

// Loads the study, with its cells, while the file exists.
std::vector<StudyCell> cells_from(const std::string& section, const std::string& more_name = "",
                                  const std::string& more = "") {
  const test::TempFolder folder;
  write_file_whole(folder / "s.toml", std::string(kTop) + kData + section);
  if (!more_name.empty()) write_file_whole(folder / more_name, more);
  return cells_of(load_study(folder / "s.toml", {}));
}

std::vector<std::string> texts_on(const std::vector<StudyCell>& cells, int ranks) {
  std::vector<std::string> texts;
  for (const StudyCell& cell : cells)
    if (cell.ranks == ranks && cell.repeat == 1) texts.push_back(cell.text);
  return texts;
}

bool has(const StudyCell& cell, const std::string& set) {
  return std::find(cell.sets.begin(), cell.sets.end(), set) != cell.sets.end();
}

using Texts = std::vector<std::string>;

constexpr const char* kEnvironments = R"(
[[study.environments]]
name = "alike"
[[study.environments]]
name = "one 4x slow"
set = ["device.pace_ms=10", "device.pace_factors=[4,1]"]
)";

TEST_CASE("each environment has all cells, which carry its name and its keys", "[study]") {
  const auto cells = cells_from(std::string("[study]\nranks = [1, 2]\nrepeats = 2\n[study.axes]\n\"batch.global\" = "
                                            "[32, 64]\n") +
                                kEnvironments);
  CHECK(cells.size() == 2 * 2 * 2 * 2);
  std::map<std::string, int> of;
  std::set<std::string> ids;
  for (const StudyCell& cell : cells) {
    REQUIRE(cell.environments.size() == 1);
    ++of[cell.environments.front()];
    ids.insert(cell.id);
    const bool slow = cell.environments.front() == "one 4x slow";
    CHECK(has(cell, "device.pace_factors=[4,1]") == (slow && cell.ranks == 2));
    CHECK(has(cell, "device.pace_factors=[4.0]") == (slow && cell.ranks == 1));  // cut to its ranks
    CHECK(cell.seed == 6u + static_cast<unsigned>(cell.repeat));
  }
  CHECK(ids.size() == cells.size());
  CHECK(of == std::map<std::string, int>{{"alike", 8}, {"one 4x slow", 8}});
  CHECK(cells.front().title() == "batch.global = 32; in alike");
}

TEST_CASE("a split on one rank is one setting, run once and named once", "[study]") {
  const auto cells = cells_from(R"([study]
ranks = [1, 2]
[[study.variants]]
name = "data"
set = []
[[study.variants]]
name = "layers, m = 1"
set = ["parallel.pipeline=2"]
[[study.variants]]
name = "tensor"
set = ["parallel.tensor=2"]
[[study.variants]]
name = "space"
set = ["parallel.space=2"]
)");
  CHECK(texts_on(cells, 1) == Texts{"one worker"});
  CHECK(texts_on(cells, 2) == Texts{"data", "layers, m = 1", "tensor", "space"});
  CHECK(cells.front().asked == texts_on(cells, 2));
  // The same holds where it is the only setting, and as an axis.
  CHECK(texts_on(cells_from("[study]\nranks = [1]\n[[study.variants]]\nname = \"layers\"\nset = "
                            "[\"parallel.pipeline=2\"]\n"),
                 1) == Texts{"one worker"});
  CHECK(texts_on(
            cells_from("[study]\nranks = [1]\n[study.axes]\n\"parallel.pipeline\" = [1, 2]\n\"batch.global\" = [32]\n"),
            1) == Texts{"batch.global = 32"});
}

TEST_CASE("cells that are the same run are run once and shared, others are not", "[study]") {
  const std::string algorithms = "[study.axes]\n\"exchange.algorithm\" = [\"ring\", \"tree\"]\n";
  const auto ring = cells_from("[study]\nranks = [1, 2]\n" + algorithms);
  CHECK(texts_on(ring, 1) == Texts{""});
  CHECK(texts_on(ring, 2).size() == 2);
  // With another period, averaging takes other steps on one rank too (outer momentum); its all-reduce does not matter.
  const auto averaging = cells_from(
      "[study]\nranks = [1]\n[study.axes]\n\"exchange.strategy\" = [\"averaging\"]\n\"exchange.averaging.period\" = "
      "[2, 8]\n\"exchange.algorithm\" = [\"ring\", \"tree\"]\n");
  CHECK(averaging.size() == 2);
  // Another seed, batch or learning rate is another run.
  for (const std::string key :
       {"\"seed\" = [1, 2]", "\"batch.global\" = [32, 64]", "\"optimizer.learning_rate\" = [0.1, 0.2]"})
    CHECK(texts_on(cells_from("[study]\nranks = [1]\n[study.axes]\n" + key + "\n"), 1).size() == 2);
  // Two names for one setting give one cell on several ranks.
  const auto twice = cells_from(
      "[study]\nranks = [2]\n[[study.variants]]\nname = \"a\"\nset = [\"batch.global=64\"]\n[[study.variants]]\nname = "
      "\"b\"\n[[study.variants]]\nname = \"c\"\nset = [\"batch.global=32\"]\n");
  CHECK(texts_on(twice, 2) == Texts{"a / b", "c"});
  // Environments that change nothing on one rank share its cells.
  const auto across = cells_from(
      "[study]\nranks = [1, 2]\n[[study.environments]]\nname = \"ring\"\nset = [\"exchange.algorithm=ring\"]\n"
      "[[study.environments]]\nname = \"tree\"\nset = [\"exchange.algorithm=tree\"]\n");
  REQUIRE(across.size() == 3);
  CHECK(across.front().environments == Texts{"ring", "tree"});
}

TEST_CASE("cells of a round are run in an order of the seed, round by round; the file's order is a key", "[study]") {
  const std::string section =
      "[study]\nranks = [1, 2]\nrepeats = 3\n[study.axes]\n\"batch.global\" = [8, 16, 32, 64, 128]\n";
  const test::TempFolder folder;
  const auto order_of = [&](const std::string& text, const std::vector<std::string>& sets) {
    write_file_whole(folder / "s.toml", std::string(kTop) + kData + text);
    const StudyPlan study = load_study(folder / "s.toml", sets);
    const auto cells = cells_of(study);
    const auto order = run_order(study, cells);
    std::vector<std::size_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      CHECK(sorted[i] == i);                                          // each once
      CHECK(cells[order[i]].repeat == 1 + static_cast<int>(i / 10));  // round by round
    }
    return order;
  };
  const auto order = order_of(section, {});
  CHECK(!std::is_sorted(order.begin(), order.begin() + 10));
  CHECK(order == order_of(section, {}));
  CHECK(order != order_of(section, {"seed=8"}));
  std::vector<std::size_t> first(order.begin(), order.begin() + 10), second(order.begin() + 10, order.begin() + 20);
  for (std::size_t& i : second) i -= 10;
  CHECK(first != second);
  std::string in_order = section;
  in_order.insert(in_order.find("repeats"), "order = \"file\"\n");
  const auto plain = order_of(in_order, {});
  CHECK(std::is_sorted(plain.begin(), plain.end()));
}

TEST_CASE("the control cell of a round is the first setting on the fewest ranks", "[study]") {
  const auto cells =
      cells_from(std::string("[study]\nranks = [1, 2]\nrepeats = 3\n[study.axes]\n\"batch.global\" = [32, "
                             "64]\n") +
                 kEnvironments);
  std::map<int, int> controls;
  for (const StudyCell& cell : cells) {
    if (!cell.control) continue;
    ++controls[cell.repeat];
    CHECK(cell.ranks == 1);
    CHECK(cell.text == "batch.global = 32");
    CHECK(cell.environments.front() == "alike");
  }
  CHECK(controls == std::map<int, int>{{1, 1}, {2, 1}, {3, 1}});
  CHECK_FALSE(cells_from("[study]\nranks = [1]\n").front().control);  // a single round has nothing to compare with
}

TEST_CASE("a round whose control cell is more than 5 % from the median is marked", "[study]") {
  const auto rounds = judge_rounds({1000, 1049, 940, NAN, 990});
  REQUIRE(rounds.size() == 5);
  CHECK(rounds[0].change == Approx(1000.0 / 995 - 1));  // the median of 940, 990, 1000, 1049
  CHECK_FALSE(rounds[0].moved);
  CHECK(rounds[1].moved);
  CHECK(rounds[2].moved);
  CHECK_FALSE(rounds[3].moved);
  CHECK_FALSE(rounds[4].moved);
  CHECK_THAT(control_text(rounds), Contains("round 3: the control cell was 6 % slower") && !Contains("round 4"));
  CHECK_THAT(control_text(judge_rounds({1000, 1010})), Contains("steady") && Contains("at most 0.5 % over 2 rounds"));
  CHECK(control_text(judge_rounds({1000})).empty());
  CHECK_THAT(control_json(rounds), Contains("\"moved\": true") && Contains("null"));
}

TEST_CASE("a study goes on until it is decided, with looks after 3, 5, 10 and 20 rounds", "[study]") {
  const StudyPlan study = study_from("[study]\nranks = [1]\nrepeats = \"until decided\"\nmax_repeats = 12\n");
  CHECK(study.until_decided);
  CHECK(study.repeats == 12);
  CHECK(looks_of(study) == std::vector<int>{3, 5, 10, 12});
  CHECK(looks_of(study_from("[study]\nranks = [1]\nrepeats = \"until decided\"\n")) == std::vector<int>{3, 5, 10, 20});
  CHECK(looks_of(study_from("[study]\nranks = [1]\nrepeats = 4\n")) == std::vector<int>{4});
  CHECK_THROWS_WITH(study_from("[study]\nranks = [1]\nmax_repeats = 5\n"),
                    Contains("s.toml:12:1") && Contains("until decided"));
  CHECK_THROWS_WITH(study_from("[study]\nranks = [1]\nrepeats = \"until bored\"\n"), Contains("until decided"));
}

TEST_CASE("a variant has layers or an experiment of its own", "[study]") {
  const auto cells = cells_from(R"([study]
ranks = [1]
[[study.variants]]
name = "narrow"
layers = [{ type = "flatten" }, { type = "dense", units = 4 }]
[[study.variants]]
name = "wide"
[[study.variants.layers]]
type = "dense"
units = 64
[[study.variants]]
name = "other"
file = "other.toml"
set = ["batch.global=16"]
)",
                                "other.toml", std::string("[model]\nzoo = \"digits_cnn\"\n") + kData);
  REQUIRE(cells.size() == 3);
  const Config narrow = parse_config(kTop, "s.toml", cells[0].sets);
  CHECK(narrow.model.zoo.empty());
  REQUIRE(narrow.model.layers.size() == 2);
  CHECK(narrow.model.layers[1].units == 4);
  CHECK(parse_config(kTop, "s.toml", cells[1].sets).model.layers.front().units == 64);
  CHECK_THAT(cells[2].file, Catch::EndsWith("other.toml"));
  CHECK(has(cells[2], "batch.global=16"));
  CHECK(std::set<std::string>{cells[0].id, cells[1].id, cells[2].id}.size() == 3);
  const auto refuses = [](const std::string& variant, const std::string& why) {
    CHECK_THROWS_WITH(study_from("[study]\nranks = [1]\n[[study.variants]]\nname = \"a\"\n" + variant), Contains(why));
  };
  refuses("layers = [{ type = \"dens\" }]\n", "did you mean 'dense'?");
  refuses("file = \"missing.toml\"\n", "s.toml:14:1: file: there is no");
  refuses("layer = []\n", "did you mean 'layers'?");
}

TEST_CASE("hosts and placement are axes", "[study]") {
  const auto cells = cells_from(
      "[study]\nranks = [1, 4]\n[study.axes]\n\"study.hosts\" = [1, 2]\n\"study.placement\" = [\"compact\", "
      "\"spread\"]\n");
  CHECK(texts_on(cells, 1).size() == 1);  // one rank has no other place
  REQUIRE(texts_on(cells, 4).size() == 4);
  const StudyCell& last = cells.back();
  CHECK(last.hosts == 2);
  CHECK(last.placement == CellPlacement::spread);
  for (const std::string& set : last.sets) CHECK_FALSE(set.starts_with("study."));
  const std::vector<int> hosts = {0, 0, 0, 1, 1, 1, 2, 2};
  using Ranks = std::vector<int>;
  CHECK(members_of(hosts, 4, CellPlacement::compact, 2) == Ranks{0, 1, 3, 4});
  CHECK(members_of(hosts, 4, CellPlacement::spread, 2) == Ranks{0, 3, 1, 4});
  CHECK(members_of(hosts, 5, CellPlacement::compact, 2) == Ranks{0, 1, 2, 3, 4});
  CHECK(members_of(hosts, 3, CellPlacement::compact, 3) == Ranks{0, 3, 6});
  CHECK_THROWS_WITH(members_of(hosts, 4, CellPlacement::compact, 4), Contains("this launch has 3 hosts"));
  CHECK_THROWS_WITH(members_of(hosts, 4, CellPlacement::compact, 1), Contains("4 ranks on each of 1 are needed"));
  CHECK_THROWS_WITH(study_from("[study]\nranks = [1]\n[study.axes]\n\"study.placement\" = [\"spred\"]\n"),
                    Contains("spread"));
  CHECK_THROWS_WITH(study_from("[study]\nranks = [1]\n[study.axes]\n\"study.host\" = [1]\n"),
                    Contains("did you mean 'study.hosts'?"));
  CHECK_THROWS_WITH(
      study_from("[study]\nranks = [1]\n[[study.environments]]\nname = \"a\"\nset = [\"study.hosts=x\"]\n"),
      Contains("s.toml:14:1") && Contains("study.hosts = x"));
}

TEST_CASE("another verb has its options from args, axes and variants", "[study]") {
  const auto cells = cells_from(
      "[study]\nranks = [2]\nverb = \"bench allreduce\"\nargs = [\"--iterations\", \"3\"]\n[study.axes]\n\"--sizes\" = "
      "[\"1KiB\", \"1MiB\"]\n");
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].text == "--sizes 1KiB");
  CHECK(cells[0].options == Texts{"--iterations", "3", "--sizes=1KiB"});
  CHECK(cells[0].id != cells[1].id);
  const StudyCell there = cell_of_line(to_line(cells[1]));
  CHECK(there.options == cells[1].options);
  CHECK(there.sets == cells[1].sets);
  const auto refuses = [](const std::string& section, const std::string& why) {
    CHECK_THROWS_WITH(study_from("[study]\n" + section), Contains(why));
  };
  refuses("ranks = [1]\nverb = \"bench alreduce\"\n", "bench allreduce");
  refuses("ranks = [1]\nargs = [\"--sizes\"]\n", "need study.verb");
  refuses("ranks = [1]\n[study.axes]\n\"--sizes\" = [\"1KiB\"]\n", "need study.verb");
  refuses("ranks = [1, 2]\nverb = \"plan\"\n", "write ranks = [1]");
}

TEST_CASE("proposers are an axis: each cell is a search, whose choices are the other axes", "[study]") {
  const std::string section =
      "[goal]\nmetric = \"test_loss\"\ntarget = 1\n[study]\nranks = [1]\nrepeats = 2\ntrials = 5\n[study.axes]\n"
      "\"study.search\" = [\"random\", \"bayesian\"]\n\"batch.global\" = [32, 64]\n";
  const test::TempFolder folder;
  write_file_whole(folder / "s.toml", std::string(kTop) + kData + section);
  const StudyPlan study = load_study(folder / "s.toml", {});
  const auto cells = cells_of(study);
  REQUIRE(cells.size() == 4);
  CHECK(cells[1].search == "bayesian");
  const StudyPlan search = search_of(study, cells[3]);
  CHECK(search.search == SearchMethod::bayesian);
  CHECK(search.seed == 8);
  CHECK(search.trials == 5);
  CHECK(search.axes.size() == 1);
  CHECK(search.folder == folder_of(study, cells[3]) + "/search");
  CHECK_THROWS_WITH(study_from("[study]\nranks = [1]\n[study.axes]\n\"study.search\" = [\"random\"]\n"),
                    Contains("needs something to vary"));
}

TEST_CASE("--set of a key that the study sets for every cell is refused", "[study]") {
  const std::string axis = "[study]\nranks = [1]\n[study.axes]\n\"batch.global\" = [32, 64]\n";
  CHECK_THROWS_WITH(study_from(axis, {"batch.global=7"}),
                    Contains("--set batch.global=7: has no effect") && Contains("an axis"));
  CHECK_NOTHROW(study_from(axis, {"train.epochs=2"}));
  const std::string variants =
      "[study]\nranks = [1]\n[[study.variants]]\nname = \"a\"\nset = [\"batch.global=8\"]\n[[study.variants]]\nname = "
      "\"b\"\nset = [\"batch.global=9\", \"seed=3\"]\n";
  CHECK_THROWS_WITH(study_from(variants, {"batch.global=7"}), Contains("every variant sets batch.global"));
  CHECK_NOTHROW(study_from(variants, {"seed=5"}));  // one variant alone
  CHECK_THROWS_WITH(study_from(axis + "[[study.environments]]\nname = \"a\"\nset = [\"batch.global=8\"]\n"),
                    Contains("is an axis and is also set by an environment"));
}

TEST_CASE("an axis over data.train needs no data.train; names in quotes are not asked for quotes", "[study]") {
  const std::string axis = "[study]\nranks = [1]\n[study.axes]\n\"data.train\" = [\"a\", \"b\"]\n";
  CHECK(study_from(axis, {}, "").axes.size() == 1);
  CHECK_THROWS_WITH(study_from("[study]\nranks = [1]\n", {}, ""), Contains("data.train is missing"));
  const auto refusal = [](const std::string& key) { return "[study]\nranks = [1]\n[study.axes]\n" + key + " = [1]\n"; };
  CHECK_THROWS_WITH(study_from(refusal("\"batch.globl\"")),
                    Contains("did you mean 'batch.global'?") && !Contains("in quotes"));
  CHECK_THROWS_WITH(study_from(refusal("batch.global")), Contains("write the whole name in quotes"));
}

}  // namespace
}  // namespace echelon

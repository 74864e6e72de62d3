// SPDX-License-Identifier: Apache-2.0
// Studies: how [study] is read, and which cells and ranks follow from it.
#include <catch2/catch.hpp>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "study/cell_record.hpp"
#include "study/placement.hpp"
#include "study/slurm.hpp"
#include "study/study.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

using Catch::Contains;

constexpr const char* kExperiment = R"(name = "digits"
seed = 7
[model]
zoo = "lenet"
[data]
train = "nowhere"
test = "nowhere"
[batch]
global = 64
)";

StudyPlan study_from(const std::string& section, const std::vector<std::string>& sets = {}) {
  const test::TempFolder folder;
  write_file_whole(folder / "s.toml", kExperiment + section);
  return load_study(folder / "s.toml", sets);
}

bool has(const StudyCell& cell, const std::string& set) {
  return std::find(cell.sets.begin(), cell.sets.end(), set) != cell.sets.end();
}

}  // namespace

TEST_CASE("a study is read, with every variant at every value, size and round", "[study]") {
  const test::TempFolder folder;
  write_file_whole(folder / "s.toml", std::string(kExperiment) + R"(
[study]
ranks = [4, 1]
mode = "weak"
repeats = 3
[study.axes]
"batch.global" = [64, 128]
"exchange.overlap" = ["none", "buckets"]
[[study.variants]]
name = "ring"
set = ["exchange.algorithm=ring"]
[[study.variants]]
name = "averaging, H = 10"
set = ["exchange.strategy=averaging", "exchange.averaging.period=10"]
)");
  const StudyPlan study = load_study(folder / "s.toml", {"train.epochs=1"});
  CHECK(study.name == "digits");
  CHECK(study.folder == "results/digits");
  CHECK(study.ranks == std::vector<std::int64_t>{1, 4});
  const std::vector<StudyCell> cells = cells_of(study);
  REQUIRE(cells.size() == 3 * (6 + 8));  // overlap changes nothing in synchronous training on one rank
  std::set<std::string> ids;
  for (const StudyCell& cell : cells) {
    ids.insert(cell.id);
    CHECK(has(cell, "batch.scale_with_replicas=true"));
    CHECK(has(cell, "train.epochs=1"));
    CHECK(has(cell, "seed=" + std::to_string(6 + cell.repeat)));
    CHECK(has(cell, "run.results=results/digits"));
    CHECK(has(cell, "name=" + cell.id));
  }
  CHECK(ids.size() == cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {  // rounds alternate
    CHECK(cells[i].repeat == static_cast<int>(i / 14) + 1);
    CHECK(cells[i].ranks == (i % 14 < 6 ? 1 : 4));
  }
  CHECK(cells[0].text == "ring, batch.global = 64");
  CHECK(cells[0].asked.size() == 2);
  CHECK(cells[3].text == "averaging, H = 10, batch.global = 64, exchange.overlap = \"buckets\"");
  CHECK(has(cells[3], "exchange.overlap=\"buckets\""));
  CHECK_THAT(cells[3].id, Catch::StartsWith("k1_averaging-h-10-batch-global-64-exchange-overlap-buckets_r1-"));
}

TEST_CASE("the identity of a cell depends on its settings, not on its place in the study", "[study]") {
  const auto id_of = [](const std::string& section, const std::vector<std::string>& sets) {
    return cells_of(study_from("[study]\nranks = " + section, sets)).back().id;
  };
  CHECK(id_of("[1, 2]", {}) == id_of("[2]", {}));
  CHECK(id_of("[2]", {}) != id_of("[2]", {"batch.global=32"}));
  CHECK(id_of("[2]", {}) == id_of("[2]", {"run.progress=lines"}));
  CHECK(id_of("[2]", {}) == id_of("[2]", {"goal.deadline_h=1", "cost.node_hour=2"}));
  CHECK(id_of("[2]", {}) !=
        id_of("[2]", {"goal.metric=test_accuracy", "goal.target=0.5"}));  // goal.stop ends it earlier
  CHECK(id_of("[2]", {}) == id_of("[2]\nwarmup_steps = 1", {}));
  CHECK(id_of("[2]", {}) != id_of("[2]\nwarmup_steps = 5", {}));  // other steps are measured
}

TEST_CASE("to_target stops runs at the goal, and needs one", "[study]") {
  const std::string section = "[study]\nranks = [1]\nmode = \"to_target\"\n";
  CHECK_THROWS_WITH(study_from(section), Contains("needs a goal"));
  const StudyPlan study = study_from(section + "[goal]\nmetric = \"test_accuracy\"\ntarget = 0.9\n");
  CHECK(has(cells_of(study).front(), "goal.stop=true"));
}

TEST_CASE("what is wrong in [study] is refused with the place and the nearest valid choice", "[study]") {
  const auto refuses = [](const std::string& section, const std::string& why) {
    INFO(section);
    CHECK_THROWS_WITH(study_from(section), Contains(why));
  };
  refuses("", "no section [study]");
  refuses("[study]\nrepeats = 2\n", "needs the numbers of ranks");
  refuses("[study]\nrank = [1]\n", "s.toml:11:1: unknown key in [study] 'rank' (did you mean 'ranks'?)");
  refuses("[study]\nranks = []\n", "study.ranks is empty");
  refuses("[study]\nranks = [1, 2, 1]\n", "has 1 twice");
  refuses("[study]\nranks = [0]\n", "study.ranks");
  refuses("[study]\nranks = [1]\nwarmup_steps = 0\n", "study.warmup_steps");
  refuses("[study]\nranks = [1]\nwarmup_steps = 8\n[train]\nsteps = 8\nepochs = 0\n", "leaves none of the 8 steps");
  refuses("[study]\nranks = [1]\nmode = \"week\"\n", "weak");
  refuses("[study]\nranks = [1]\n[study.axes]\n\"batch.globl\" = [1]\n", "did you mean 'batch.global'?");
  refuses("[study]\nranks = [1]\n[study.axes]\n\"batch.global\" = 64\n", "a list of values in brackets");
  refuses("[study]\nranks = [1]\n[study.axes]\n\"batch.global\" = [\"x\"]\n", "s.toml:13:19");
  refuses("[study]\nranks = [1]\n[study.axes]\nname = [\"x\"]\n", "set for each cell by the study");
  refuses("[study]\nranks = [1]\nrepeats = 2\n[study.axes]\nseed = [1, 2]\n", "repeats change the seed");
  refuses("[study]\nranks = [1]\n[[study.variants]]\nset = [\"seed=1\"]\n", "a variant needs a name");
  refuses("[study]\nranks = [1]\n[[study.variants]]\nname = \"a\"\n[[study.variants]]\nname = \"a\"\n",
          "two variants are named \"a\"");
  const std::string ranges = "[study]\nranks = [1]\nsearch = \"random\"\n[study.ranges]\n";
  refuses("[study]\nranks = [1]\n[study.ranges]\n\"optimizer.momentum\" = { low = 0.0, high = 0.9 }\n",
          "is for searches");
  refuses(ranges + "\"optimizer.momentum\" = { low = 0.9, high = 0.1 }\n", "low < high");
  refuses(ranges + "\"optimizer.momentum\" = { low = 0.0, high = 0.9, log = true }\n", "must begin above 0");
  refuses(ranges + "\"optimizer.momentum\" = { lo = 0.0, high = 0.9 }\n", "did you mean 'low'?");
  refuses(ranges + "\"optimizer.momentum\" = { low = 0.0, high = 7.0 }\n", "out of range");
  refuses(ranges + "\"optimizer.rule\" = { low = 0.0, high = 7.0 }\n", "is not a number");
  refuses(ranges + "\"optimizer.momentum\" = { low = 0.0, high = 0.9 }\n", "[goal] metric");
  refuses("[study]\nranks = [1, 2]\nsearch = \"random\"\n[study.axes]\nseed = [1]\n", "one number of ranks");
  refuses("[study]\nranks = [1]\nsearch = \"random\"\n", "needs something to vary");
  refuses("[study]\nranks = [1]\naxes = 1\n", "write [study.axes]");
  refuses("[study]\nranks = [1]\nranges = 1\n", "write [study.ranges]");
  refuses("[study]\nranks = [1]\nhalving = { first_epochs = 1 }\n", "study.halving is for searches");
  const std::string halving =
      "[goal]\nmetric = \"test_loss\"\ntarget = 1\n[train]\nepochs = 9\n[study]\nranks = [1]\n"
      "search = \"random\"\naxes = { seed = [1, 2] }\nhalving = ";
  refuses(halving + "3\n", "needs braces");
  refuses(halving + "{ eta = 3 }\n", "needs the epochs of the first rung");
  refuses(halving + "{ eta = 1, first_epochs = 2 }\n", "study.halving.eta");
  refuses(halving + "{ etta = 3, first_epochs = 2 }\n", "did you mean 'eta'?");
  refuses(halving + "{ first_epochs = 9 }\n", "leaves nothing to stop early");
  refuses("[run]\nrestart = \"never\"\n" + halving + "{ first_epochs = 2 }\n", "resumes a trial that continues");
  refuses("[study]\nranks = [1]\n[study.axis]\nseed = [1]\n", "did you mean 'axes'?");
}

TEST_CASE("a study has a Slurm job for each size, and one that reports after them", "[study]") {
  const StudyPlan study = study_from("[study]\nranks = [1, 4]\nslurm = [\"--time=00:10:00\"]\n", {"data.train=it's"});
  const std::vector<SlurmJob> jobs = slurm_jobs(study, "/opt/echelon", "/home/a b");
  REQUIRE(jobs.size() == 3);
  CHECK(jobs[1].path == "results/digits/jobs/k4.sbatch");
  CHECK_THAT(jobs[1].text, Contains("#SBATCH --ntasks=4\n") && Contains("#SBATCH --time=00:10:00\n") &&
                               Contains("cd '/home/a b'") && Contains("--set 'data.train=it'\\''s' --ranks 4") &&
                               Contains("scontrol requeue"));
  CHECK_FALSE(jobs[1].reports);
  CHECK(jobs[2].reports);
  CHECK_THAT(jobs[2].text, Contains("--report\n") && Contains("--ntasks=1\n"));
  CHECK_THAT(jobs[1].text, !Contains("--array"));
  const std::vector<SlurmJob> arrays = slurm_jobs(study, "/opt/echelon", "/home/a b", 5);
  CHECK_THAT(arrays[1].text, Contains("#SBATCH --array=1-5\n") && Contains("k4-%a.log"));
  CHECK_THAT(arrays[2].text, !Contains("--array"));
  const std::string cuda = "[device]\nkind = \"cuda\"\n[study]\nranks = [1]\n";
  CHECK_THAT(slurm_jobs(study_from(cuda), "e", "/").front().text, Contains("#SBATCH --gpus-per-task=1\n"));
  CHECK_THAT(slurm_jobs(study_from(cuda + "slurm = [\"--gres=gpu:1\"]\n"), "e", "/").front().text,
             !Contains("--gpus-per-task"));
  CHECK_THROWS_WITH(study_from("[study]\nranks = [1]\nslurm = [\"time=1\"]\n"), Contains("not an option of sbatch"));
  CHECK_THROWS_WITH(study_from("[study]\nranks = [1, 2]\n", {"study.ranks=[2]"}),
                    Contains("leave sizes out with --ranks"));
}

TEST_CASE("all batch scripts answer signals, and go back into the queue, with the same lines", "[study]") {
  const std::vector<SlurmJob> jobs = slurm_jobs(study_from("[study]\nranks = [1]\n"), "e", "/");
  const std::string& text = jobs.front().text;
  const std::string lines = text.substr(text.find("step=$!\n"));
  CHECK_THAT(lines, Contains("trap 'ask TERM' TERM") && Contains("scontrol requeue \"$job\""));
  for (const std::string name : {"train", "scaling_array"})
    CHECK_THAT(read_file_whole("slurm/" + name + ".sbatch"), Catch::EndsWith(lines));
}

TEST_CASE("a cell takes the ranks of as few hosts as hold them, or of as many", "[study]") {
  const std::vector<int> hosts = {0, 1, 1, 2, 2, 2, 0, 3};
  using Ranks = std::vector<int>;
  CHECK(members_of(hosts, 1, CellPlacement::compact) == Ranks{0});
  CHECK(members_of(hosts, 2, CellPlacement::compact) == Ranks{0, 6});
  CHECK(members_of(hosts, 5, CellPlacement::compact) == Ranks{0, 6, 3, 4, 5});
  CHECK(members_of(hosts, 8, CellPlacement::compact) == Ranks{0, 6, 3, 4, 5, 1, 2, 7});
  CHECK(members_of(hosts, 4, CellPlacement::spread) == Ranks{0, 3, 1, 7});
  CHECK(members_of(hosts, 6, CellPlacement::spread) == Ranks{0, 3, 1, 7, 6, 4});
}

TEST_CASE("a cell is the same on other ranks", "[study]") {
  const StudyPlan study = study_from("[study]\nranks = [2]\n[study.axes]\n\"optimizer.rule\" = [\"adam\"]\n");
  const StudyCell cell = cells_of(study).front(), there = cell_of_line(to_line(cell));
  CHECK(there.id == cell.id);
  CHECK(there.text == cell.text);
  CHECK(there.ranks == 2);
  CHECK(there.repeat == 1);
  CHECK(there.sets == cell.sets);
}

TEST_CASE("the record of a cell is read as it was written", "[study]") {
  const test::TempFolder folder;
  CHECK(read_cell(folder / "c").state == CellState::waiting);
  const CellRecord record{.state = CellState::left_out,
                          .deaths = 1,
                          .before = "run-1/02",
                          .launch = "n1 77",
                          .exit_code = 6,
                          .reason = "too \"much\"",
                          .attempt = "a/b",
                          .seconds = 1.5};
  write_cell(folder / "c", record);
  const CellRecord back = read_cell(folder / "c");
  CHECK(back.state == record.state);
  CHECK(back.deaths == 1);
  CHECK(back.before == "run-1/02");
  CHECK(back.launch == "n1 77");
  CHECK(back.exit_code == 6);
  CHECK(back.reason == record.reason);
  CHECK(back.attempt == record.attempt);
  CHECK(back.seconds == 1.5);
  write_file_whole(folder / "c/cell.json", "{\"state\": \"done\"}");
  CHECK_THROWS_WITH(read_cell(folder / "c"), Contains("unknown state \"done\""));
}

}  // namespace echelon

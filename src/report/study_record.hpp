// SPDX-License-Identifier: Apache-2.0
// The plain records of a study: a repetition of a setting as study.json stores it, the rules of the verdict, and the
// verdict. Evidence (evidence.hpp) is made from runs or read back from study.json; the verdict (verdict.hpp) is made
// from evidence alone; pages are written from both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/record.hpp"
#include "report/study_rules.hpp"
#include "report/to_target.hpp"

namespace echelon::inline report {

// A cell that came to an end, as a study hands it over. Cells that were left out or have not run are not handed
// over.
struct LabelledRun {
  std::string label;  // label of the variant with its axes, without the environment; the same on other numbers of ranks
  RunRecord run;      // has a summary if the outcome is "finished"; else whatever the attempt left
  std::string environment = {};      // name of its block in [study.environments]; "": there is only one environment
  int repeat = 1;                    // the round, from 1
  std::uint64_t seed = 0;            // seed of the repetition; equal seeds are paired over settings
  std::string outcome = "finished";  // "finished" | "diverged" | "failed"
  int code = 0;                      // exit code of the cell
  double sharpness = kUnknown;       // sharpness of its minimum (study.sharpness)
  int ranks = 0;                     // ranks that the cell takes, servers included; 0: as the run says
};

// The control cell of a round: a setting that is measured in each round to detect changes of the machine itself.
struct ControlRate {
  std::string environment;
  int repeat = 1;
  double samples_per_s = kUnknown;
};

enum class Outcome : std::uint8_t { finished, diverged, failed };
const char* outcome_name(Outcome outcome);
Outcome outcome_of(const std::string& name);  // ConfigError for another name

// One repetition of a setting. Unknown numbers are NaN, and null in study.json. A paced run has no curve and no
// metrics, because its losses and accuracies are meaningless.
struct Repetition {
  int repeat = 1;
  std::uint64_t seed = 0;
  Outcome outcome = Outcome::finished;
  int code = 0;
  std::string attempt;              // folder of the attempt
  double samples_per_s = kUnknown;  // over all steps after the warm-up
  double samples = kUnknown;        // samples trained
  // Values from the start of the run until it reached the goal. Unknown: not reached, which counts as later than every
  // repetition that reached it.
  double samples_to_target = kUnknown, seconds_to_target = kUnknown;
  double train_loss = kUnknown, test_loss = kUnknown, test_accuracy = kUnknown;  // final values
  double test_mean_iou = kUnknown, test_macro_f1 = kUnknown, test_auc = kUnknown, test_mae = kUnknown,
         test_r2 = kUnknown;
  double train_accuracy = kUnknown;  // on evaluate.train_fraction of the data, at the last evaluation
  double drift = kUnknown, noise_scale = kUnknown, sharpness = kUnknown;  // as in RunFigures; study.sharpness
  double bytes_per_step = kUnknown;                                       // on the wire, sum over ranks
  double down_bytes_per_step = kUnknown;                                  // part of it: servers to workers
  double warm_bytes_per_step = kUnknown;                                  // bytes_per_step after all warm-ups
  double peak_rss_mb = kUnknown, device_peak_mb = kUnknown;               // peak of the rank that uses most
  double wall_s = kUnknown;                                               // whole run: start-up, training, evaluations
  double cpu_s = kUnknown;                                                // processor time, sum over ranks
  std::vector<Evaluation> curve = {};                                     // thinned to kCurvePoints points
  double machine = kUnknown;  // control cell's rate over its median of all rounds; unknown: no control cell
  bool finished() const { return outcome == Outcome::finished; }
  bool reached() const { return finished() && seconds_to_target == seconds_to_target; }
  bool marked() const;  // the machine's speed changed by more than kMachineMoved in this round
};

inline constexpr double kMachineMoved = 0.05;
inline constexpr std::size_t kCurvePoints = 50;

// yes: distribute. no: use one worker. undecided: more repetitions, or another study, may decide.
enum class Answer : std::uint8_t { yes, no, undecided };
const char* answer_name(Answer answer);  // "yes" | "no" | "not decided"

// Ratio to the single worker, or difference from it, with an interval; unknown if it is not known.
struct Effect {
  double value = kUnknown, low = kUnknown, high = kUnknown;  // low, high: 95 % interval
  bool ratio = true;  // 3.9: that many times faster, or that many times the cost; else a difference of the metric
  int pairs = 0;      // repetitions that both settings have
};

// "If you want the least time, then 4 ranks, ring: 3.9x faster than one worker (3.7 to 4.1); tied with ..".
struct GoalRow {
  std::string environment;
  std::string want;            // "the least time to test accuracy 0.9", "the best test accuracy", "the lowest cost" ..
  int setting = -1;            // index into Evidence::settings; -1: no winner is named, `text` says why
  std::string value;           // "12.3 s", "0.953", "0.0243 node-hours"
  Effect effect;               // against one worker; no pairs: the setting is one worker, or there is none
  std::vector<int> ties = {};  // settings that cannot be told apart from it
  std::string text = {};       // the row as a sentence
};

// One test behind the verdict, recorded so that a reader of study.json can repeat it.
struct TestRecord {
  std::string environment;
  std::string question;  // "faster", "no gain", "not worse", "worse"
  std::string measure;   // "seconds to the target", "samples/s", "test_accuracy" ..
  int setting = -1, against = -1;
  std::string method;  // "paired t"; "rank sum" if a repetition of either diverged or did not reach the goal
  int pairs = 0;
  double threshold_error = 0;  // standard error of an estimated threshold: a margin from one worker's seeds
  double threshold = 0;        // ratio (1.1) or difference (-0.009) that the effect is tested against
  Effect effect;
  double p = kUnknown;        // one-sided
  double flips_p = kUnknown;  // the same by exact sign flips, from 8 pairs on
  double level = kUnknown;    // the level at which p was judged, after looks and Holm
  bool shown = false;         // p <= level
};

// A setting that is faster but not as good as one worker. It is never recommended, and listed separately.
struct PricedGain {
  int setting = -1;
  Effect gain = {}, loss = {};  // gain: in time or rate; loss: in the metric
  std::string text = {};        // "2 ranks, int8: 1.9x faster at the price of 0.021 test accuracy"
};

// The answer for one environment. Settings of different environments are never compared.
struct EnvironmentVerdict {
  std::string environment;  // "": there is only one
  Answer answer = Answer::undecided;
  std::string headline;         // one or two whole sentences, as a person would say it: "Yes: 4 ranks, .."
  int baseline = -1;            // the single worker that every setting is compared with; -1: no run finished
  int recommended = -1;         // for "yes" the setting; else -1
  Effect gain = {}, cost = {};  // recommended setting: times as fast, times the cost
  std::vector<int> ties = {};
  double margin = kUnknown;  // margin of the metric as used; unknown: there is no metric
  int repetitions = 0;       // pairs behind the answer
  int needed = 0;            // undecided: more repetitions that find the observed effect in 9 of 10 studies; 0: unknown
  std::vector<PricedGain> faster_but_worse = {};
};

struct GoalLine {  // a limit of [goal]
  bool met = false;
  std::string text;
};

struct StudyVerdict {
  Answer answer = Answer::undecided;
  std::string headline;  // over all environments
  int recommended = -1;  // the first environment's that has one; -1: one worker, or not decided
  std::vector<EnvironmentVerdict> environments = {};
  std::vector<GoalRow> rows = {};         // "if you want .. then ..", in the order of environments
  std::vector<std::string> limits = {};   // sentences: what limits the speed, and up to how many ranks more ranks pay
  std::vector<std::string> caveats = {};  // sentences: what to keep in mind when reading the answer
  std::vector<GoalLine> goals = {};       // empty: [goal] sets no limits
  std::vector<TestRecord> tests = {};
  bool met() const;
};

}  // namespace echelon::inline report

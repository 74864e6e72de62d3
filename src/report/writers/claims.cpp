// SPDX-License-Identifier: Apache-2.0
#include "report/writers/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/atomic_file.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"
#include "report/scaling.hpp"

namespace echelon::inline report {
namespace {

constexpr double kFalseDiscoveries = 0.1;

std::string number_text(double value) {
  if (std::isnan(value)) return "";
  const double whole = std::round(value);
  if (value == whole && std::fabs(value) < 1e15) return count_text(static_cast<std::int64_t>(whole));
  return fmt::format("{:.4g}", value);
}

const std::string& instrument_of(const Claim& claim) {
  return kInstruments[static_cast<std::size_t>(claim.instrument)];
}

// The test that decides a claim: the first with the claim's word; if words differ, the first that is not confirmed.
const TestVerdict* decisive(const ClaimVerdict& verdict) {
  const auto first = [&](auto accepted) {
    const auto at = std::find_if(verdict.tests.begin(), verdict.tests.end(),
                                 [&](const TestVerdict& t) { return !t.effects.empty() && accepted(t.word); });
    return at == verdict.tests.end() ? nullptr : &*at;
  };
  const TestVerdict* open = first([](ClaimWord word) { return word != ClaimWord::confirmed; });
  return open ? open : first([](ClaimWord) { return true; });
}

std::string effect_text(const ClaimEffect& effect) {
  const std::string measured = number_text(effect.measured);
  return std::isnan(effect.expected) ? measured : fmt::format("{} of {}", measured, number_text(effect.expected));
}

// "0.683 to 0.703"; one number if both ends are written alike, as for an exact effect.
std::string range_text(double low, double high) {
  const std::string from = fmt::format("{:.3g}", low), to = fmt::format("{:.3g}", high);
  return from == to ? from : from + " to " + to;
}

std::string interval_text(const ClaimEffect& effect) {
  if (std::isinf(effect.low) || std::isinf(effect.high)) return "unknown";
  return range_text(effect.low, effect.high);
}

std::string region_text(const ClaimEffect& effect) {
  if (effect.region_low == -effect.region_high && effect.region_high > 0)
    return fmt::format("within {:.3g}", effect.region_high);
  return range_text(effect.region_low, effect.region_high);
}

// "ranks=4, variant=SGD": the settings of an effect without spaces around "=".
std::string settings_text(std::string what) {
  for (std::size_t at = 0; (at = what.find(" = ", at)) != std::string::npos;) what.replace(at, 3, "=");
  return what;
}

// P-values adjusted over all tests with noise on the page.
std::map<const ClaimEffect*, double> adjusted(const std::vector<JudgedClaim>& claims) {
  std::vector<const ClaimEffect*> effects;
  std::vector<double> p;
  for (const JudgedClaim& claim : claims)
    for (const TestVerdict& test : claim.verdict.tests)
      if (claim.record.claim.instrument != Instrument::exact && !test.effects.empty()) {
        effects.push_back(&test.decisive());
        p.push_back(test.decisive().p);
      }
  const std::vector<double> after = adjusted_p(p);
  std::map<const ClaimEffect*, double> by_effect;
  for (std::size_t i = 0; i < effects.size(); ++i) by_effect[effects[i]] = after[i];
  return by_effect;
}

// Whether some claim is decided by measurements with noise. If not, all are exact, and the page says so once.
bool is_noisy(const std::vector<JudgedClaim>& claims) {
  return std::any_of(claims.begin(), claims.end(),
                     [](const JudgedClaim& claim) { return claim.record.claim.instrument != Instrument::exact; });
}

Table rows_of(const std::vector<JudgedClaim>& claims) {
  const bool noisy = is_noisy(claims);
  std::vector<std::string> header = {"claim", "verdict", "measured", "effect"};
  if (noisy) {
    header.insert(header.begin() + 1, "instrument");
    header.insert(header.end(), {"seeds", "p", "adjusted p", "would find"});
  }
  const std::size_t columns = header.size();
  Table table(std::move(header));
  const auto after = adjusted(claims);
  for (const JudgedClaim& claim : claims) {
    const bool exact = claim.record.claim.instrument == Instrument::exact;
    std::vector<std::string> row = {std::to_string(claim.record.claim.number),
                                    std::string(text_of(claim.verdict.word))};
    if (noisy) row.insert(row.begin() + 1, instrument_of(claim.record.claim));
    if (const TestVerdict* test = decisive(claim.verdict)) {
      const ClaimEffect& effect = test->decisive();
      const auto p = after.find(&effect);
      for (const std::string& cell : {effect_text(effect), interval_text(effect), std::to_string(effect.seeds),
                                      exact ? std::string("exact") : fmt::format("{:.2g}", effect.p),
                                      p == after.end() ? std::string() : fmt::format("{:.2g}", p->second),
                                      exact ? std::string() : number_text(effect.would_find)})
        row.push_back(cell);
    }
    row.resize(columns);
    table.row(std::move(row));
  }
  return table;
}

// Wraps a paragraph or a list item of a page.
std::string folded(const std::string& text, const std::string& first = "", const std::string& others = "") {
  constexpr std::size_t kColumns = 120;
  return folded_text(escaped_for_markdown(text), kColumns, first, others);
}

// One test of a claim. The verdict is named only if it is not the claim's.
std::string item_of(const ClaimTest& test, const TestVerdict& verdict, ClaimWord of_claim) {
  std::string out = verdict.word == of_claim ? test.says : fmt::format("{}: {}", text_of(verdict.word), test.says);
  if (verdict.effects.empty()) return folded(out + " " + verdict.problem + ".", "* ", "  ");
  const ClaimEffect& effect = verdict.decisive();
  const std::string settings = settings_text(effect.what);
  out += verdict.effects.size() == 1 ? fmt::format(" At {}", settings)
                                     : fmt::format(" Of {} comparisons, {} decides", verdict.effects.size(), settings);
  out += fmt::format(": {}; effect {}, claimed {}.", effect_text(effect), interval_text(effect), region_text(effect));
  return folded(out, "* ", "  ");
}

template <class Of>
std::string distinct(const std::vector<JudgedClaim>& claims, const Of& of) {
  std::set<std::string> values;
  for (const JudgedClaim& claim : claims) values.insert(of(claim.record));
  values.erase("");
  return fmt::format("{}", fmt::join(values, ", "));
}

std::string section_of(const JudgedClaim& claim) {
  const ClaimRecord& r = claim.record;
  std::string out =
      fmt::format("## {}. {}\n\n", r.claim.number, text_of(claim.verdict.word)) +
      folded(r.claim.source.empty() ? r.claim.sentence : fmt::format("{} ({})", r.claim.sentence, r.claim.source), "> ",
             "> ");
  std::string how =
      fmt::format("{}: {} in {}.", r.study, counted(std::ssize(r.cells), "run"), seconds_text(r.machine_s));
  if (!r.claim.note.empty()) how += " " + r.claim.note;
  if (r.registered_hash != r.claim.hash)
    how += fmt::format(" The rule was changed after the first run (it began as {} on {}).", r.registered_hash,
                       r.registered_date);
  out += "\n" + folded(how) + "\n";
  for (std::size_t i = 0; i < claim.verdict.tests.size(); ++i)
    out += item_of(r.claim.tests[i], claim.verdict.tests[i], claim.verdict.word);
  return out + "\n";
}

}  // namespace

std::vector<JudgedClaim> judge_claims(const std::vector<ClaimRecord>& records) {
  std::vector<JudgedClaim> judged;
  for (const ClaimRecord& record : records) judged.push_back({record, judge_claim(record.claim, record.cells)});
  return judged;
}

std::string claims_headline(const std::vector<JudgedClaim>& claims) {
  std::string words;
  for (const ClaimWord word : {ClaimWord::confirmed, ClaimWord::in_part, ClaimWord::refuted, ClaimWord::not_decided}) {
    const auto count = std::count_if(claims.begin(), claims.end(),
                                     [&](const JudgedClaim& claim) { return claim.verdict.word == word; });
    if (count > 0) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, text_of(word));
  }
  return fmt::format("{}: {}", counted(std::ssize(claims), "claim"), words);
}

std::string claims_text(const std::vector<JudgedClaim>& claims) {
  std::string out = claims_headline(claims) + "\n\n";
  for (const JudgedClaim& claim : claims) {
    out += fmt::format("{:>3}  {:<11}  {}\n", claim.record.claim.number, text_of(claim.verdict.word),
                       claim.record.claim.sentence);
    for (std::size_t i = 0; i < claim.verdict.tests.size(); ++i) {
      const TestVerdict& test = claim.verdict.tests[i];
      if (test.word != ClaimWord::confirmed)
        out += fmt::format("     {}: {}\n", text_of(test.word),
                           test.effects.empty() ? test.problem : claim.record.claim.tests[i].says);
    }
  }
  return out;
}

std::string claims_markdown(const std::vector<JudgedClaim>& claims, const std::string& plot) {
  double seconds = 0;
  std::size_t cells = 0;
  for (const JudgedClaim& claim : claims) seconds += claim.record.machine_s, cells += claim.record.cells.size();
  std::string out = "# Claims of the field, tested\n\n";
  out += folded(fmt::format("{}. {} in {} of machine time, echelon {}, on {}.", claims_headline(claims),
                            counted(static_cast<std::int64_t>(cells), "run"), seconds_text(seconds),
                            distinct(claims, [](const ClaimRecord& r) { return r.commit; }),
                            distinct(claims, [](const ClaimRecord& r) { return r.devices; })));
  std::string method =
      "A test is confirmed if the 95 % interval of its effect over seeds lies in the claimed region, and refuted if it "
      "lies outside. Effects are logarithms of ratios, or differences. ";
  method += is_noisy(claims)
                ? fmt::format(
                      "Counts are exact and need one seed. P-values are adjusted over the page after Benjamini and "
                      "Hochberg, at {:.0f} %. \"Would find\" is the effect that the same number of seeds finds in "
                      "9 of 10 studies.",
                      100 * kFalseDiscoveries)
                : "All tests here are exact counts, which need one seed and whose interval is one number.";
  out += "\n" + folded(method) + "\n";
  out += fmt::format("![Effects of all claims]({})\n\n", plot);
  out += rows_of(claims).markdown() + "\n";
  for (const JudgedClaim& claim : claims) out += section_of(claim);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::vector<std::string> write_claims(const std::vector<JudgedClaim>& claims, const std::string& folder,
                                      const std::string& name) {
  make_folders(folder);
  const std::string svg = name + ".svg", page = folder + "/" + name + ".md";
  write_file_whole(folder + "/" + svg, forest_svg(claims));
  write_file_whole(page, claims_markdown(claims, svg));
  return {page, folder + "/" + svg};
}

}  // namespace echelon::inline report

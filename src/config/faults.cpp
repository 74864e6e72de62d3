// SPDX-License-Identifier: Apache-2.0
#include "config/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <regex>

#include "base/error.hpp"
#include "config/refuse.hpp"

namespace echelon::inline config {
namespace {

struct Form {
  FaultKind kind;
  const char* grammar;  // words in capitals are patterns (pattern_of); [parts] are optional
};

constexpr std::array kForms = {
    Form{FaultKind::kill, "kill WHO"},
    Form{FaultKind::stop, "stop WHO[ for TIME]"},
    Form{FaultKind::slow, "slow WHO by NUMBER"},
    Form{FaultKind::delay, "delay messages of WHO by TIME"},
    Form{FaultKind::drop, "drop message of WHO"},
    Form{FaultKind::corrupt, "corrupt message of WHO"},
    Form{FaultKind::cut, "cut WHO"},
    Form{FaultKind::disk_full, "disk full after SIZE[ on WHO]"},
    Form{FaultKind::short_writes, "short writes[ on WHO]"},
    Form{FaultKind::fsync_fails, "fsync fails[ on WHO]"},
    Form{FaultKind::slow_reads, "reads at SIZE a second[ on WHO]"},
    Form{FaultKind::flip_weight, "flip [bit WHOLE of ]weight [WHOLE ]of WHO"},
    Form{FaultKind::flip_gradient, "flip [bit WHOLE of ]gradient [WHOLE ]of WHO"},
    Form{FaultKind::flip_checkpoint, "flip checkpoint bit"},
    Form{FaultKind::flip_shard, "flip shard bit[ on WHO]"},
};
constexpr const char* kMoment = "[ at step WHOLE| at a random step from WHOLE to WHOLE][ in PHASE]";
constexpr std::size_t kLongestSentence = 250;  // the matcher recurses over the sentence
constexpr const char* kPhases = "data, forward, backward, exchange, optimiser, checkpoint, evaluation";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string pattern_of(std::string grammar) {
  grammar += kMoment;
  replace_all(grammar, "[", "(?:");
  replace_all(grammar, "]", ")?");
  replace_all(grammar, "WHOLE", "(\\d{1,15})");
  replace_all(grammar, "WHO", "(rank \\d{1,9}|a random rank)");
  replace_all(grammar, "NUMBER", "(\\d+(?:\\.\\d+)?)");
  replace_all(grammar, "TIME", "(\\d+(?:\\.\\d+)?) ?(s|ms)");
  replace_all(grammar, "SIZE", "(\\d+(?:\\.\\d+)?) ?(B|KB|MB)");
  replace_all(grammar, "PHASE", "(data|forward|backward|exchange|optimiser|checkpoint|evaluation)");
  return grammar;
}

// Returns "kill rank R", the form as messages show it.
std::string shown(const Form& form) {
  std::string text = form.grammar;
  replace_all(text, "WHOLE", "N");
  replace_all(text, "WHO", "rank R");
  replace_all(text, "NUMBER", "F");
  replace_all(text, "TIME", "5ms");
  replace_all(text, "SIZE", "1MB");
  return text;
}

[[noreturn]] void refuse_sentence(std::string_view text) {
  const std::string_view first = text.substr(0, text.find(' '));
  std::string forms;
  for (const bool near : {true, false}) {
    for (const Form& form : kForms)
      if (!near || (!first.empty() && std::string_view(form.grammar).starts_with(first)))
        forms += (forms.empty() ? "" : "; ") + shown(form);
    if (!forms.empty()) break;
  }
  throw ConfigError(
      fmt::format("\"{}\" is not a fault; write {}, then optionally \"at step N\" or \"at a random step from N to M\", "
                  "and \"in\" one of {}; a rank may also be \"a random rank\"",
                  text, forms, kPhases));
}

double unit_of(const std::string& unit) {
  return unit == "ms" ? 1e-3 : unit == "KB" ? 1024.0 : unit == "MB" ? 1024.0 * 1024.0 : 1.0;
}

// The matched groups of a form, in the order of its grammar.
class Groups {
 public:
  explicit Groups(const std::smatch& match) : match_(match) {}
  std::string text() { return match_[at_++].str(); }
  std::int64_t whole(std::int64_t without) {
    const std::string digits = text();
    return digits.empty() ? without : std::strtoll(digits.c_str(), nullptr, 10);
  }
  double number() { return std::strtod(text().c_str(), nullptr); }
  // Returns -1 for a random rank, `without` if none was named.
  std::int64_t rank(std::int64_t without) {
    const std::string who = text();
    if (who.empty()) return without;
    return who.front() == 'a' ? -1 : std::strtoll(who.c_str() + std::string_view("rank ").size(), nullptr, 10);
  }

 private:
  const std::smatch& match_;
  std::size_t at_ = 1;
};

}  // namespace

Fault parse_fault(std::string_view text) {
  const std::string sentence(text);
  if (text.size() > kLongestSentence)
    throw ConfigError(fmt::format("\"{}..\" is not a fault: it has {} characters, and a fault has at most {}",
                                  text.substr(0, 40), text.size(), kLongestSentence));
  for (const Form& form : kForms) {
    std::smatch match;
    if (!std::regex_match(sentence, match, std::regex(pattern_of(form.grammar)))) continue;
    Fault fault{.text = sentence, .kind = form.kind, .phase = {}};
    Groups groups(match);
    const bool on_who = is_of_files(form.kind);  // the rank comes last and defaults to 0
    if (form.kind == FaultKind::flip_weight || form.kind == FaultKind::flip_gradient) {
      fault.bit = groups.whole(-1);
      fault.element = groups.whole(-1);
    }
    if (form.kind != FaultKind::flip_checkpoint && !on_who) fault.rank = groups.rank(0);
    const std::string_view grammar = form.grammar;
    if (grammar.find("NUMBER") != grammar.npos) fault.amount = groups.number();
    if (grammar.find("TIME") != grammar.npos || grammar.find("SIZE") != grammar.npos) {
      const double number = groups.number();
      fault.amount = number * unit_of(groups.text());
    }
    if (on_who) fault.rank = groups.rank(0);
    const std::int64_t step = groups.whole(0), first = groups.whole(0), last = groups.whole(0);
    fault.first_step = std::max(step, first);
    fault.last_step = std::max(step, last);
    fault.phase = groups.text();
    const auto refuse_if = [&](bool wrong, const char* reason) {
      if (wrong) throw ConfigError(fmt::format("\"{}\": {}", text, reason));
    };
    refuse_if(fault.kind == FaultKind::slow && fault.amount < 1,
              "the factor by which a rank is slowed must be at least 1");
    refuse_if(fault.kind == FaultKind::slow_reads && fault.amount < 1, "the rate must be at least one byte per second");
    refuse_if(fault.last_step < fault.first_step, "the last step must not come before the first one");
    if (!fault.phase.empty() && (is_of_messages(fault.kind) || is_of_files(fault.kind)) && fault.first_step == 0)
      fault.first_step = fault.last_step = 1;
    return fault;
  }
  refuse_sentence(text);
}

std::vector<Fault> faults_of(const Config& config) {
  std::vector<Fault> faults;
  for (const std::string& text : config.fault.inject) {
    try {
      faults.push_back(parse_fault(text));
    } catch (const ConfigError& error) {
      refuse(config, "fault.inject", error.what());
    }
  }
  if (!faults.empty() && !config.run.allow_faults)
    refuse(config, "fault.inject",
           fmt::format("\"{}\" would break this run on purpose; write run.allow_faults = true to allow it, or leave "
                       "the fault out",
                       faults.front().text));
  return faults;
}

std::vector<std::string> split_faults(std::string_view text) {
  std::vector<std::string> faults;
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    std::string_view one = text.substr(0, end);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (!one.empty()) faults.emplace_back(one);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return faults;
}

}  // namespace echelon::inline config

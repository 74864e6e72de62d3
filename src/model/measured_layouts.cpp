// SPDX-License-Identifier: Apache-2.0
#include "model/measured_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "device/arenas.hpp"
#include "model/build.hpp"
#include "model/program.hpp"

namespace echelon::inline model {
namespace {

constexpr double kMostFlops = 4e9, kLeastGain = 0.03, kMostSeconds = 0.9, kHopeless = 1.5, kLeastLimit = 0.05;
constexpr int kPasses = 3;

bool is_conv(const OpReport& op) { return std::holds_alternative<ConvDims>(op.spec.dims); }

struct Candidate {
  std::string name;
  ConvTable table;
  std::vector<OpReport> ops = {};
  double seconds_of(const ConvDims& conv, OpKind kind) const {
    double seconds = 0;
    for (const OpReport& op : ops)
      if (is_conv(op) && op.spec.kind == kind && std::get<ConvDims>(op.spec.dims) == conv) seconds += op.seconds;
    return seconds;
  }
  double seconds_of(const ConvDims& conv) const {
    double seconds = 0;
    for (const OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights})
      seconds += seconds_of(conv, kind);
    return seconds;
  }
};

double total(const std::vector<OpReport>& ops) {
  double seconds = 0;
  for (const OpReport& op : ops) seconds += op.seconds;
  return seconds;
}

bool same_code(const std::vector<OpReport>& a, const std::vector<OpReport>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const OpReport& x, const OpReport& y) {
    return x.spec == y.spec && x.implementation == y.implementation;
  });
}

// Times candidates until a second has passed.
class Trials {
 public:
  Trials(const Graph& graph, DType dtype, std::int64_t batch, const OpenWithTable& open)
      : graph_(graph), dtype_(dtype), batch_(batch), open_(open) {}

  // Does nothing where an earlier candidate runs the same code. The first pass packs weights and touches memory; it
  // ends where it takes 1.5 times as long as that of the best.
  void add(std::string name, const ConvTable& table) {
    const double start = now_s();
    if (start + least_ > begin_ + kMostSeconds) {
      left_out_ += fmt::format(" {} (no time),", name);
      return;
    }
    const std::unique_ptr<Device> device = open_(table);
    Arenas arenas(*device, graph_.parameters(), wide_of(dtype_));
    Program program(graph_, arenas, {.batch = batch_, .dtype = dtype_});
    const std::vector<OpReport> code = program.ops();
    if (std::none_of(code.begin(), code.end(), is_conv)) return;
    if (std::any_of(tried_.begin(), tried_.end(), [&](const Candidate& c) { return same_code(c.ops, code); })) return;
    const double first_start = now_s();
    Candidate candidate{std::move(name), table,
                        program.profile({true, std::max(kLeastLimit, kHopeless * least_first_)})};
    const double first = now_s() - first_start;
    least_first_ = std::min(least_first_, first);
    for (int pass = 0; pass < kPasses && std::isfinite(total(candidate.ops)); ++pass) {
      const double pass_start = now_s();
      const std::vector<OpReport> ops = program.profile({.convs_once = true});
      for (std::size_t i = 0; i < ops.size(); ++i)
        candidate.ops[i].seconds = pass == 0 ? ops[i].seconds : std::min(candidate.ops[i].seconds, ops[i].seconds);
      const double now = now_s(), both = first + now - pass_start;
      least_ = least_ > 0 ? std::min(least_, both) : both;
      if (now + (now - pass_start) > start + kMostSeconds / 5) break;
    }
    tried_.push_back(std::move(candidate));
  }

  const std::vector<Candidate>& tried() const { return tried_; }
  const Candidate& fastest() const {
    return *std::min_element(tried_.begin(), tried_.end(),
                             [](const Candidate& a, const Candidate& b) { return total(a.ops) < total(b.ops); });
  }
  const std::string& left_out() const { return left_out_; }
  double seconds() const { return now_s() - begin_; }

 private:
  const Graph& graph_;
  DType dtype_;
  std::int64_t batch_;
  const OpenWithTable& open_;
  std::vector<Candidate> tried_;
  std::string left_out_;
  double begin_ = now_s();
  double least_first_ = std::numeric_limits<double>::infinity();  // seconds of a first pass
  double least_ = 0;  // seconds of a first pass and another one, by the candidate for which they were least
};

// Calls body(conv) for each convolution of a candidate.
template <class Body>
void for_each_conv(const Candidate& candidate, const Body& body) {
  for (const OpReport& op : candidate.ops)
    if (op.spec.kind == OpKind::conv_forward) body(std::get<ConvDims>(op.spec.dims));
}

// A candidate's layouts with all gradients by the library.
ConvTable by_library(const Candidate& candidate) {
  ConvTable table;
  for_each_conv(candidate, [&](const ConvDims& conv) {
    table.set(conv, {candidate.table.of(conv).layout, true, true});
  });
  return table;
}

// Each convolution in the layout, and each gradient by the code, that was faster in it. `library` has the layouts of
// `base`; it may be null.
ConvTable mixed(const std::vector<Candidate>& layouts, const Candidate& base, const Candidate* library) {
  ConvTable table;
  for_each_conv(base, [&](const ConvDims& conv) {
    const auto fastest = std::min_element(layouts.begin(), layouts.end(), [&](const Candidate& a, const Candidate& b) {
      return a.seconds_of(conv) < b.seconds_of(conv);
    });
    ConvChoice choice = fastest->table.of(conv);
    const auto faster = [&](OpKind gradient) {
      return library->seconds_of(conv, gradient) < (1 - kLeastGain) * base.seconds_of(conv, gradient);
    };
    if (library && choice == base.table.of(conv))
      choice = {choice.layout, faster(OpKind::conv_backward_data), faster(OpKind::conv_backward_weights)};
    table.set(conv, choice);
  });
  return table;
}

std::int64_t measured_batch(const Graph& graph, DType dtype, std::int64_t batch) {
  const ModelCosts costs = model_costs(graph, dtype);
  const double fit = kMostFlops / std::max(1.0, costs.forward_flops + costs.backward_flops);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(fit), 1, batch);
}

}  // namespace

MeasuredLayouts measure_layouts(const Graph& graph, DType dtype, std::int64_t batch, const OpenWithTable& open) {
  const std::int64_t samples = measured_batch(graph, dtype, batch);
  Trials trials(graph, dtype, samples, open);
  for (const ConvLayout layout : {ConvLayout::rule, ConvLayout::channels_last, ConvLayout::blocked}) {
    trials.add(std::string(name_of(layout)), ConvTable({layout}));
    if (trials.tried().empty()) return {{}, "no convolutions"};
  }
  const std::vector<Candidate> layouts = trials.tried();
  const Candidate base = trials.fastest();
  trials.add("gradients by the library", by_library(base));
  const bool both = trials.tried().size() > layouts.size();
  trials.add("each as it was fastest", mixed(layouts, base, both ? &trials.tried().back() : nullptr));

  const Candidate& rule = trials.tried().front();
  const Candidate& best = total(trials.fastest().ops) > (1 - kLeastGain) * total(rule.ops) ? rule : trials.fastest();
  MeasuredLayouts found{best.table,
                        fmt::format("of {} in {}:", counted(samples, "sample"), seconds_text(trials.seconds()))};
  for (const Candidate& candidate : trials.tried()) {
    const double seconds = total(candidate.ops);
    found.report += fmt::format(" {} {},", candidate.name, std::isfinite(seconds) ? seconds_text(seconds) : "slower");
  }
  found.report += trials.left_out();
  found.report.back() = ';';
  found.report += fmt::format(" chosen: {}", best.name);
  return found;
}

}  // namespace echelon::inline model

// SPDX-License-Identifier: Apache-2.0
#include "report/figures_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/figures_list.hpp"

namespace echelon::inline report {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json value_json(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }
ordered_json value_json(const std::vector<double>& values) {
  const bool known = values.empty() || !std::isnan(largest(values));
  if (!known) return nullptr;
  ordered_json out = ordered_json::array();
  for (const double value : values) out.push_back(value_json(value));
  return out;
}
ordered_json value_json(const Quartiles& q) {
  return {{"median", value_json(q.median)}, {"p25", value_json(q.p25)}, {"p75", value_json(q.p75)}};
}
ordered_json value_json(const StepTimes& times) {
  ordered_json out = {{"total", times.total_s}};
  for (const TimePart& part : kClaimedTimes) out[part.name] = times.*part.seconds;
  out["other"] = times.other_s();
  return out;
}
ordered_json value_json(const MeshShape& mesh) {
  return {{"data", mesh.data}, {"pipeline", mesh.pipeline}, {"tensor", mesh.tensor}, {"space", mesh.space}};
}
ordered_json value_json(const RankTimes& ranks) {
  return {{"compute", ranks.compute},
          {"exposed", ranks.exposed},
          {"exchange", ranks.exchange},
          {"wire_bytes", ranks.wire_bytes}};
}
ordered_json value_json(const CodecFigures& codec) {
  ordered_json out = {{"bytes_before", codec.bytes_before}, {"bytes_after", codec.bytes_after}};
  if (!std::isnan(codec.seconds)) out["seconds"] = codec.seconds;
  if (!std::isnan(codec.density)) {  // a lossy codec; its residual norm may have overflowed
    out["residual_norm"] = value_json(codec.residual_norm);
    out["density"] = codec.density;
  }
  if (!std::isnan(codec.tau)) out["tau"] = codec.tau;
  return out;
}
ordered_json value_json(const StalenessFigures& workers) {
  return {{"applied", workers.applied},
          {"dropped", workers.dropped},
          {"mean", workers.mean},
          {"largest", workers.largest},
          {"waited_s", workers.waited_s}};
}
template <class T>
ordered_json value_json(const T& value) {
  return value;
}
template <class T>
ordered_json value_json(const std::optional<T>& value) {
  return value ? ordered_json(value_json(*value)) : ordered_json(nullptr);
}

bool is_unknown(const ordered_json& value) {
  return value.is_null() || (value.is_array() && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

template <class T>
void take(const json& from, T& to) {
  from.get_to(to);
}
void take(const json& from, std::vector<double>& to) {
  to.clear();
  for (const json& value : from) to.push_back(value.is_null() ? kUnknown : value.get<double>());
}
template <class T>
void take_field(const json& from, const char* name, T& to) {
  if (const auto at = from.find(name); at != from.end() && !at->is_null()) take(*at, to);
}
void take(const json& from, Quartiles& to) {
  take_field(from, "median", to.median);
  take_field(from, "p25", to.p25);
  take_field(from, "p75", to.p75);
}
void take(const json& from, StepTimes& to) {
  take_field(from, "total", to.total_s);
  for (const TimePart& part : kClaimedTimes) take_field(from, part.name, to.*part.seconds);
}
void take(const json& from, MeshShape& to) {
  take_field(from, "data", to.data);
  take_field(from, "pipeline", to.pipeline);
  take_field(from, "tensor", to.tensor);
  take_field(from, "space", to.space);
}
void take(const json& from, RankTimes& to) {
  take_field(from, "compute", to.compute);
  take_field(from, "exposed", to.exposed);
  take_field(from, "exchange", to.exchange);
  take_field(from, "wire_bytes", to.wire_bytes);
}
void take(const json& from, CodecFigures& to) {
  take_field(from, "bytes_before", to.bytes_before);
  take_field(from, "bytes_after", to.bytes_after);
  take_field(from, "seconds", to.seconds);
  take_field(from, "residual_norm", to.residual_norm);
  take_field(from, "density", to.density);
  take_field(from, "tau", to.tau);
}
void take(const json& from, StalenessFigures& to) {
  take_field(from, "applied", to.applied);
  take_field(from, "dropped", to.dropped);
  take_field(from, "mean", to.mean);
  take_field(from, "largest", to.largest);
  take_field(from, "waited_s", to.waited_s);
}
template <class T>
void take(const json& from, std::optional<T>& to) {
  take(from, to.emplace());
}

template <class Figures>
ordered_json write(const Figures& figures) {
  ordered_json out = ordered_json::object();
  each(figures, [&](const Figure& figure, const auto& value) {
    ordered_json written = value_json(value);
    if (figure.unknown == Unknown::null || !is_unknown(written)) out[figure.name] = std::move(written);
  });
  return out;
}

template <class Figures>
void read(const json& from, Figures& to) {
  each(to, [&](const Figure& figure, auto& value) {
    if (const auto at = from.find(figure.name); at != from.end() && !at->is_null()) take(*at, value);
  });
}

}  // namespace

ordered_json to_json(const StepFigures& figures) { return write(figures); }
ordered_json to_json(const EpochFigures& figures) { return write(figures); }
ordered_json to_json(const CheckpointFigures& figures) { return write(figures); }
ordered_json to_json(const RunFigures& figures) { return write(figures); }
void take_figures(const json& from, StepFigures& to) { read(from, to); }
void take_figures(const json& from, EpochFigures& to) { read(from, to); }
void take_figures(const json& from, RunFigures& to) {
  read(from, to);
  constexpr std::int64_t kOfCnn =
      421642;  // the model that versions before 2026-11-29 called lenet, on (1, 28, 28) and 10 classes
  if (to.model == "lenet" && to.parameters == kOfCnn) to.model = "cnn_32_64";
}

}  // namespace echelon::inline report

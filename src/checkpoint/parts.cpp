// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "checkpoint/state_file.hpp"
#include "comm/collective/message.hpp"
#include "comm/group.hpp"

namespace echelon::inline checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kPartFormat = "echelon-checkpoint-part";
constexpr std::chrono::milliseconds kLookEvery{1};
constexpr const char* kAgain = "again\n";  // first line from rank 0: PartAgreement::again

// Lists a line per tensor: its name, and the part that this rank holds.
class Lister final : public StateVisitor {
 public:
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    const TensorRegion region = region_of(t);
    lines_ += fmt::format("{}\t{}\t{}\n", t.name, region.offset.text(), region.shape.text());
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

// Visits the tensors of one part, without the tensors that other ranks write.
class OwnTensors final : public StateVisitor {
 public:
  OwnTensors(StateVisitor& inner, const std::set<std::string>& left_out) : inner_(inner), left_out_(left_out) {}
  bool loading() const override { return inner_.loading(); }
  void tensor(const StateTensor& t) override {
    if (!left_out_.contains(std::string(t.name))) inner_.tensor(t);
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}

 private:
  StateVisitor& inner_;
  const std::set<std::string>& left_out_;
};

class Counters final : public StateVisitor {
 public:
  explicit Counters(h5::Writer& writer) : writer_(writer) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor&) override {}
  void scalar(std::string_view name, std::int64_t& value, Absent) override { writer_.attribute(name, value); }
  void scalar(std::string_view name, double& value, Absent) override { writer_.attribute(name, value); }

 private:
  h5::Writer& writer_;
};

// Whether an existing checkpoint of this step has parts of these names.
bool takes_names(const std::string& folder, std::int64_t step, bool again) {
  try {
    const std::vector<std::string> files = files_of(checkpoint_path(folder, step));
    return std::find(files.begin(), files.end(), part_path(folder, step, 0, again)) != files.end();
  } catch (const std::exception&) {  // there is no such checkpoint
    return false;
  }
}

DType dtype_named(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::u8})
    if (name_of(dtype) == name) return dtype;
  ECHELON_CHECK(false, "a part of a checkpoint holds values of '{}'", name);
  return DType::f32;
}

// Writes this rank's part and returns its manifest.
ordered_json write_part(const std::string& folder, std::int64_t step, const VisitAll& visit,
                        const PartAgreement& agreed, int part, bool verify) {
  const std::string path = part_path(folder, step, part, agreed.again);
  h5::Writer writer(path);
  writer.attribute("echelon_format", std::string(kPartFormat));
  writer.attribute("step", step);
  writer.attribute("part", std::int64_t{part});
  const std::vector<SavedValues> values = write_state(writer, path, [&](StateVisitor& visitor) {
    OwnTensors own(visitor, agreed.left_out);
    visit(own);
  });
  const ordered_json manifest = part_manifest_of(writer.temporary(), fs::path(path).filename().string(), values);
  if (verify) require_as_written(writer, path, manifest);
  writer.publish();
  return manifest;
}

// Writes the file of whole tensors over all parts, and the manifest of everything.
CheckpointInfo write_whole(const std::string& folder, std::int64_t step, const VisitAll& visit,
                           const std::vector<ordered_json>& parts, const SaveOptions& options) {
  const std::string path = checkpoint_path(folder, step);
  h5::Writer writer(path);
  begin_checkpoint(writer, kPartsVersion, options);
  Counters counters(writer);
  visit(counters);
  struct Tensor {
    DType dtype;
    std::vector<h5::VirtualBox> boxes;
  };
  std::map<std::string, Tensor> tensors;
  std::uint64_t bytes = 0;
  for (const ordered_json& part : parts) {
    const ordered_json& file = part.at("file");
    bytes += file.at("bytes").get<std::uint64_t>();
    for (const SavedValues& box : boxes_in(part)) {
      Tensor& tensor = tensors.try_emplace(box.name, Tensor{dtype_named(box.dtype), {}}).first->second;
      tensor.boxes.push_back({file.at("name").get<std::string>(), box.name, box.region, box.folded});
    }
  }
  for (const auto& [name, tensor] : tensors) {
    std::int64_t elems = 0;
    for (const h5::VirtualBox& box : tensor.boxes) elems += box.region.shape.elems();
    const Shape& whole = tensor.boxes.front().region.whole;
    ECHELON_CHECK_EQ(elems, whole.elems(), "the parts of '{}' of {}", name, whole.text());
    writer.create_virtual(name, tensor.dtype, tensor.boxes);
  }
  (void)writer.lay_out();
  ordered_json manifest = manifest_of(writer.temporary(), step, {});
  manifest["version"] = kPartsVersion;
  manifest["parts"] = parts;
  publish_checkpoint(writer, path, manifest, options);
  return {path, step, bytes + manifest.at("file").at("bytes").get<std::uint64_t>()};
}

// Called on rank 0: receives the manifests of all parts; returns false if another rank could not write its part.
bool collect(std::vector<ordered_json>& parts, std::int64_t step, const PartRanks& ranks) {
  bool complete = true;
  for (int rank = 1; rank < ranks.size(); ++rank) {
    const ordered_json& part = parts.emplace_back(ordered_json::parse(ranks.receive(rank)));
    if (!part.contains("error")) continue;
    log_error("the checkpoint of step {} was not written: {}", step, part.at("error").get<std::string>());
    complete = false;
  }
  return complete;
}

// Removes the parts unless a manifest has made a checkpoint of them.
struct RemovedUnlessCounted {
  const std::string& folder;
  std::int64_t step;
  int parts;
  bool again;

  ~RemovedUnlessCounted() {
    if (takes_names(folder, step, again)) return;
    std::error_code ignored;
    for (int part = 0; part < parts; ++part) fs::remove(part_path(folder, step, part, again), ignored);
  }
};

}  // namespace

std::vector<std::string> PartRanks::gather(const std::string& text) const {
  return Group(engine_, channel_).gather(text);
}

void PartRanks::send(const std::string& text) const {
  auto bytes = static_cast<std::int64_t>(text.size());
  run(make_send_to(0, sizeof bytes), &bytes);
  run(make_send_to(0, bytes), const_cast<char*>(text.data()));
}

std::string PartRanks::receive(int from) const {
  std::int64_t bytes = 0;
  run(make_receive_from(from, sizeof bytes), &bytes);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  run(make_receive_from(from, bytes), text.data());
  return text;
}

void PartRanks::run(std::shared_ptr<const Plan> plan, void* data) const {
  const Ticket ticket = engine_.submit(
      {.plan = std::move(plan), .data = data, .dtype = DType::u8, .channel = channel_, .after = nullptr});
  while (!ticket.done()) std::this_thread::sleep_for(kLookEvery);
  ticket.wait();  // throws its error
}

PartAgreement begin_parts(const std::string& folder, std::int64_t step, const VisitAll& visit, const PartRanks& ranks) {
  const bool taken = ranks.rank() == 0 && takes_names(folder, step, false);
  Lister own;
  visit(own);
  const std::vector<std::string> all = ranks.gather((taken ? kAgain : "") + own.lines());
  PartAgreement agreed{.left_out = {}, .again = all.front().starts_with(kAgain)};
  std::set<std::string> before;
  std::string line;
  for (int rank = 0; rank < ranks.rank(); ++rank)
    for (std::istringstream lines(all[static_cast<std::size_t>(rank)]); std::getline(lines, line);) before.insert(line);
  for (std::istringstream lines(own.lines()); std::getline(lines, line);)
    if (before.contains(line)) agreed.left_out.insert(line.substr(0, line.find('\t')));
  return agreed;
}

std::optional<CheckpointInfo> save_part(const std::string& folder, std::int64_t step, const VisitAll& visit,
                                        const PartAgreement& agreed, const PartRanks& ranks,
                                        const SaveOptions& options) {
  std::exception_ptr failed;
  std::vector<ordered_json> parts;
  try {
    parts.push_back(write_part(folder, step, visit, agreed, ranks.rank(), options.verify));
  } catch (const std::exception& error) {
    failed = std::current_exception();
    parts.assign(1, ordered_json::object({{"error", error.what()}}));
  }
  if (ranks.rank() > 0) {
    ranks.send(parts.front().dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    if (failed) std::rethrow_exception(failed);
    return {};
  }
  const RemovedUnlessCounted incomplete{folder, step, ranks.size(), agreed.again};
  const bool complete = collect(parts, step, ranks);
  if (failed) std::rethrow_exception(failed);
  if (!complete) return {};
  return write_whole(folder, step, visit, parts, options);
}

}  // namespace echelon::inline checkpoint

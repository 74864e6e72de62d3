// SPDX-License-Identifier: Apache-2.0
#include "tests/support/recording_device.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "device/host_device.hpp"
#include "device/reference/reference.hpp"

namespace echelon::test {
namespace {

struct Told {
  Op* op;
  OpArgs args;
  std::array<void*, kMaxArgs> tensors;
};

struct Tape {
  bool running = false;
  std::vector<Told> told = {};
};

class TapedOp final : public Op {
 public:
  TapedOp(const OpSpec& spec, Device& reference, Tape& tape, RecordingCounts& counts)
      : spec_(spec), arguments_(signature(spec).size()), op_(reference.make(spec)), tape_(tape), counts_(counts) {}

  std::size_t saved_bytes() const override { return op_->saved_bytes(); }
  std::size_t scratch_bytes() const override { return op_->scratch_bytes(); }
  std::string implementation() const override { return op_->implementation(); }
  bool replays() const override { return !std::holds_alternative<RnnDims>(spec_.dims); }
  void run(const OpArgs& args) override {
    if (!tape_.running) {
      ++counts_.ops;
      return op_->run(args);
    }
    ECHELON_CHECK(replays(), "{} is recorded", spec_.text());
    Told told{op_.get(), args, {}};
    std::copy_n(args.tensors, arguments_, told.tensors.begin());
    tape_.told.push_back(told);
  }

 private:
  OpSpec spec_;
  std::size_t arguments_;
  std::unique_ptr<Op> op_;
  Tape& tape_;
  RecordingCounts& counts_;
};

class TapeRecording final : public Recording {
 public:
  TapeRecording(std::vector<Told> told, RecordingCounts& counts) : told_(std::move(told)), counts_(counts) {}
  void replay() override {
    ++counts_.replayed;
    for (const Told& told : told_) {
      OpArgs args = told.args;
      args.tensors = told.tensors.data();
      told.op->run(args);
    }
  }

 private:
  std::vector<Told> told_;
  RecordingCounts& counts_;
};

class RecordingDevice final : public HostDevice {
 public:
  explicit RecordingDevice(RecordingCounts& counts)
      : HostDevice({}), counts_(counts), reference_(make_reference_device({})) {}
  std::string_view name() const override { return "recording"; }
  std::string describe() const override { return "reference with a tape"; }
  bool supports(DType dtype) const override { return reference_->supports(dtype); }
  LayoutWish layouts(const OpSpec& spec) const override { return reference_->layouts(spec); }
  std::unique_ptr<Op> make(const OpSpec& spec) override {
    return std::make_unique<TapedOp>(spec, *reference_, tape_, counts_);
  }
  bool records() const override { return true; }
  std::unique_ptr<Recording> record_ops(const std::function<void()>& enqueue) override {
    tape_.running = true;
    enqueue();
    tape_.running = false;
    ++counts_.recorded;
    return std::make_unique<TapeRecording>(std::exchange(tape_.told, {}), counts_);
  }

 private:
  RecordingCounts& counts_;
  Tape tape_;
  std::unique_ptr<Device> reference_;
};

}  // namespace

std::unique_ptr<Device> make_recording_device(RecordingCounts& counts) {
  return std::make_unique<RecordingDevice>(counts);
}

}  // namespace echelon::test

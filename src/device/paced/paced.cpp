// SPDX-License-Identifier: Apache-2.0
#include "device/paced/paced.hpp"

#include <fmt/format.h>

#include <string>

#include "base/check.hpp"
#include "base/text.hpp"
#include "device/host_device.hpp"
#include "device/host_update.hpp"
#include "device/paced/op_time.hpp"
#include "device/paced/pacer.hpp"

namespace echelon::inline device {
namespace {

class PacedOp final : public Op {
 public:
  PacedOp(std::shared_ptr<Pacer> pacer, double seconds, bool tabled)
      : pacer_(std::move(pacer)), seconds_(seconds), tabled_(tabled) {}
  std::string implementation() const override {
    return fmt::format("sleeps {} ({})", seconds_text(seconds_), tabled_ ? "table" : "rates");
  }
  void run(const OpArgs&) override { pacer_->spend(seconds_); }

 private:
  std::shared_ptr<Pacer> pacer_;
  double seconds_;
  bool tabled_;
};

class PacedUpdate final : public Update {
 public:
  PacedUpdate(std::shared_ptr<Pacer> pacer, DType dtype, double bytes_per_s)
      : pacer_(std::move(pacer)), dtype_(dtype), bytes_per_s_(bytes_per_s) {}
  // Takes the time to read w, g and the states, and to write w and the states.
  void apply(void*, const void*, std::span<void* const> states, std::size_t n, const RuleScalars&) override {
    pacer_->spend(static_cast<double>(n * size_of(dtype_) * (3 + 2 * states.size())) / bytes_per_s_);
  }
  void apply_rows(void* w, const void* g, std::span<void* const> states, const RowMarks& marks,
                  const RuleScalars& scalars) override {
    apply(w, g, states, static_cast<std::size_t>(marks.rows * marks.width), scalars);
  }

 private:
  std::shared_ptr<Pacer> pacer_;
  DType dtype_;
  double bytes_per_s_;
};

class PacedDevice final : public HostDevice {
 public:
  explicit PacedDevice(const DeviceOptions& options) : HostDevice(options) {
    ECHELON_CHECK_GT(options.paced_gflops, 0.0);
    ECHELON_CHECK_GT(options.paced_gb_per_s, 0.0);
    if (!options.paced_table.empty()) times_.table = read_paced_table(options.paced_table);
    times_.gflops = options.paced_gflops;
    times_.gb_per_s = options.paced_gb_per_s;
  }

  std::string_view name() const override { return "paced"; }
  std::string describe() const override {
    return fmt::format("sleeps for each op, computes nothing: {} ops by table, else {} GFLOP/s and {} GB/s",
                       times_.table.size(), options().paced_gflops, options().paced_gb_per_s);
  }
  bool computes() const override { return false; }
  bool supports(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }
  LayoutWish layouts(const OpSpec& spec) const override {
    return spec.kind == OpKind::reorder ? LayoutWish{spec.layouts} : LayoutWish{};
  }

  std::unique_ptr<Op> make(const OpSpec& spec) override {
    (void)signature(spec);  // refuses dims that no op has
    return std::make_unique<PacedOp>(pacer_, times_.seconds(spec), times_.tabled(spec));
  }
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    (void)make_host_update(rule, dtype, 1);  // refuses unknown rules
    return std::make_unique<PacedUpdate>(pacer_, dtype, 1e9 * options().paced_gb_per_s);
  }

  void to_host(void* dst, const void* src, std::size_t bytes) override {
    synchronize();
    HostDevice::to_host(dst, src, bytes);
  }
  void synchronize() override { pacer_->settle(); }

 private:
  OpTimes times_;
  std::shared_ptr<Pacer> pacer_ = std::make_shared<Pacer>();
};

}  // namespace

std::unique_ptr<Device> make_paced_device(const DeviceOptions& options) {
  return std::make_unique<PacedDevice>(options);
}

}  // namespace echelon::inline device

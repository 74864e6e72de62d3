// SPDX-License-Identifier: Apache-2.0
// A device: memory, ops built from specs, fused updates, and events that mark when enqueued work is done.
//
// Implementations: `reference` (plain loops, f32 and f64: the oracle), `onednn` (the CPU fast path, f32 and bf16),
// `cuda` (libechelon_cuda.so, opened at run time), `paced` (sleeps for an op's tabled time; for studies with more ranks
// than cores, never for learning).
//
// One rank owns one device and drives it from one thread (its compute thread), or from several that take turns. Any
// thread may call `VectorOps` of host devices and both functions of Event. Work beside the compute thread needs a
// separate device (Device::beside). Every call throws MemoryError above the limit, and EnvironmentError if the device
// itself fails. Work that is enqueued on a GPU may report its failure at a later call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/conv_table.hpp"
#include "device/copy_queue.hpp"
#include "device/device_allreduce.hpp"
#include "device/device_codec.hpp"
#include "device/device_timer.hpp"
#include "device/op.hpp"
#include "device/op_spec.hpp"
#include "device/row_bits.hpp"
#include "device/update_rules/rule.hpp"
#include "device/vector.hpp"

namespace echelon::inline device {

// A block of device memory that its destructor frees, possibly after the device was destroyed and on any thread. Moving
// it moves the ownership; the address does not change.
class Memory {
 public:
  Memory() = default;
  Memory(void* data, std::size_t bytes, std::function<void(void*)> release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    Memory(std::move(other)).swap(*this);
    return *this;
  }
  ~Memory() {
    if (data_ && release_) release_(data_);
  }

  void* data() const { return data_; }
  std::byte* bytes_at(std::size_t offset) const { return static_cast<std::byte*>(data_) + offset; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::function<void(void*)> release_;
};

// A point in the device's stream. On host devices it has always passed.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool ready() const = 0;  // any thread
  virtual void wait() const = 0;   // any thread
};

// A sequence of ops that was enqueued once and can be enqueued again by one call, with the addresses and scalars of the
// first time.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

// One optimiser rule over ranges of the arena.
class Update {
 public:
  virtual ~Update() = default;
  // Applies the rule in place to n elements of the dtype of make_update. w, g and each of `states` point to the first
  // of them; states has one entry for each of the rule's kStates. Enqueued in stream order.
  virtual void apply(void* w, const void* g, std::span<void* const> states, std::size_t n,
                     const RuleScalars& scalars) = 0;
  // The same for only the marked rows of a (marks.rows, marks.width) table, which w, g and the states hold.
  virtual void apply_rows(void* w, const void* g, std::span<void* const> states, const RowMarks& marks,
                          const RuleScalars& scalars) = 0;
};

// The layouts in which an op runs fastest, by argument.
struct LayoutWish {
  std::array<Layout, kMaxArgs> layouts{};
};

struct DeviceOptions {
  int index = 0;                        // cuda: index among the visible GPUs
  int threads = 1;                      // host devices: threads of one op
  std::int64_t memory_limit_bytes = 0;  // 0: no limit but the available memory
  bool only_counts = false;             // allocations are counted and take no memory (host devices: until touched); on
                                        // other devices nothing runs
  bool emulate_halves = false;  // onednn: halves are computed in f32 on rounded values, whatever the processor supports
  bool tf32 = false;            // f32 convolutions and products may round their operands: cuda to TF32, onednn to bf16
  ConvTable conv_table = {};    // onednn: instead of its rule
  bool allow_fallback = false;  // cuda: a convolution that the library cannot run becomes a plain loop, not an error
  std::int64_t workspace_bytes = std::int64_t{1} << 30;  // cuda: largest workspace of a convolution's algorithm
  double paced_gflops = 50.0;                            // paced: rate for flops(spec) if the table has no row
  double paced_gb_per_s = 10.0;                          // paced: rate for traffic_bytes(spec); the two times are added
  std::string paced_table = {};  // paced: JSON {"<spec text>": seconds, ..} as `bench step --table` writes it
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;      // "reference", "onednn", "cuda", "paced"
  virtual std::string describe() const = 0;       // "AMD EPYC, 1 thread, AVX-512" or "NVIDIA H200, 139 GiB, sm_90"
  virtual bool on_host() const = 0;               // whether the CPU may read and write its memory directly
  virtual bool computes() const { return true; }  // false: paced; values have no meaning
  virtual bool supports(DType dtype) const = 0;
  // Whether ops of this kind compute in `dtype`. In mixed precision, kinds that a device does not have in halves
  // (losses) run in f32, with reorders from one dtype to the other around them.
  virtual bool has(OpKind kind, DType dtype) const { return (void)kind, supports(dtype); }

  // Allocates zero-filled memory, aligned to 64 bytes. `tag` names it in the memory table, and in the message when the
  // limit is reached.
  virtual Memory allocate(std::size_t bytes, std::string_view tag) = 0;
  virtual std::size_t allocated_bytes() const = 0;
  virtual std::size_t peak_bytes() const = 0;
  // Total memory of the card; 0 on the host, whose memory all its processes share.
  virtual std::size_t card_bytes() const { return 0; }
  // The reasons why the card runs below its clock at the moment (throttling.hpp); 0: none, or not known. Does not
  // throw.
  virtual unsigned throttled() const { return 0; }

  // These run in stream order; `to_host` and `to_device` return when the host memory may be reused.
  virtual void to_device(void* dst, const void* src, std::size_t bytes);  // default: to_device_async, synchronize
  virtual void to_host(void* dst, const void* src, std::size_t bytes);    // default: to_host_async, synchronize
  virtual void zero(void* dst, std::size_t bytes) = 0;
  // These run in stream order without waiting; host memory must come from `allocate_host`.
  virtual void to_device_async(void* dst, const void* src, std::size_t bytes) = 0;
  virtual void to_host_async(void* dst, const void* src, std::size_t bytes) = 0;
  virtual Memory allocate_host(std::size_t bytes) = 0;  // pinned if that matters
  virtual std::unique_ptr<Event> record() = 0;
  virtual void synchronize() = 0;
  // Null if calls return only when their work is done.
  virtual std::unique_ptr<DeviceTimer> make_timer() { return nullptr; }
  virtual std::unique_ptr<CopyQueue> make_copy_queue(std::size_t slots) { return (void)slots, nullptr; }

  // Ranks of one host share device memory that the CPU cannot read. export_memory returns a handle of a block, to be
  // sent to another process, or an empty string if the device has none. import_memory maps that block there; the result
  // has no data if the device cannot.
  virtual std::string export_memory(const Memory& memory) { return (void)memory, std::string(); }
  virtual Memory import_memory(const std::string& exported) { return (void)exported, Memory(); }
  // Copies from device memory, imported or not, to device memory, in stream order.
  virtual void copy(void* dst, const void* src, std::size_t bytes) { to_device(dst, src, bytes); }

  // The layouts in which an op of this spec runs fastest, given those of its inputs in `spec.layouts`. Default: inputs
  // unchanged, outputs like the first movable input.
  virtual LayoutWish layouts(const OpSpec& spec) const;
  // Builds an op, which may select algorithms and allocate, and is slow compared with Op::run. The device must outlive
  // the op. Throws ConfigError if the device does not implement the kind, dtype or layouts, Error (a defect) if
  // signature(spec) does.
  virtual std::unique_ptr<Op> make(const OpSpec& spec) = 0;
  // The rule of this name in update_rules/, for parameters of f32 or f64. ConfigError with the nearest name for an
  // unknown rule.
  virtual std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) = 0;
  virtual VectorOps& vector_ops() = 0;

  // Returns another device on the same card, with a separate queue, for use by another thread; the memory limit applies
  // to both together. On host devices: one that is exact in f32 and f64, counts separately, and whose memory takes no
  // space until it is touched.
  virtual std::unique_ptr<Device> beside() = 0;

  // Null if the codec runs on the host: always on host devices, on other devices for lossless codecs.
  virtual std::unique_ptr<DeviceCodec> make_codec(const DeviceCodecSpec& spec) { return (void)spec, nullptr; }

  // A name that is unique among the cards of all hosts; empty on devices that are not cards.
  virtual std::string card() const { return {}; }
  // The reason why no library sums over the devices of all ranks from this one; empty if one does.
  virtual std::string allreduce_problem() const;
  // Collective: returns once all ranks have called it. ConfigError with allreduce_problem() if there is no library,
  // EnvironmentError if it fails.
  virtual std::unique_ptr<DeviceAllreduce> make_allreduce(const DeviceGroup& group);

  // Whether sequences of ops can be recorded.
  virtual bool records() const { return false; }
  // Records the ops that `enqueue` enqueues by Op::run, whose replays() must be true, without running them. The ops and
  // their memory must outlive the recording.
  virtual std::unique_ptr<Recording> record_ops(const std::function<void()>& enqueue);
};

// kind: auto | reference | onednn | cuda | paced. `auto` is cuda if a GPU is usable, else onednn. An unknown kind
// is a ConfigError with the nearest known one; if the device is missing, an EnvironmentError names the missing
// part.
std::unique_ptr<Device> open_device(std::string_view kind, const DeviceOptions& options);
std::vector<std::string> device_kinds();

// The number of usable GPUs that this process sees; 0 if the library, the driver or the card is missing, which `why`
// then names.
int visible_gpus(std::string* why = nullptr);
// Whether a device of this kind would be a GPU here.
bool means_gpu(std::string_view kind);

}  // namespace echelon::inline device

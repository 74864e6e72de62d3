// SPDX-License-Identifier: Apache-2.0
#include "fault/injector.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "base/log.hpp"
#include "config/refuse.hpp"
#include "fault/process_faults.hpp"
#include "job/launch.hpp"

namespace echelon::inline fault {
namespace {

constexpr std::uint64_t kRank = 0, kStep = 1, kElement = 2, kBit = 3;  // streams of random draws

bool is_training(std::string_view phase) { return phase != "start" && phase != "end" && phase != "handing over"; }

HashRng random_of(std::uint64_t seed, int number) {
  return HashRng(seed, "fault").at(static_cast<std::uint64_t>(number));
}

std::int64_t rank_of(const Fault& fault, const HashRng& random, int ranks) {
  return fault.rank >= 0 ? fault.rank : static_cast<std::int64_t>(random.below(kRank, static_cast<unsigned>(ranks)));
}

// Whether it is a file that the run writes itself, not a shard.
bool is_in(std::string_view path, std::string_view folder) { return !folder.empty() && path.starts_with(folder); }

// Returns 0 if the file cannot be read.
std::uint64_t bits_of(const std::string& file) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  return error ? 0 : 8 * static_cast<std::uint64_t>(bytes);
}

}  // namespace

FaultInjector::FaultInjector(const Config& config, int rank, int ranks) : seed_(config.fault.seed), rank_(rank) {
  int number = 0;
  for (Fault& fault : faults_of(config)) {
    const HashRng random = random_of(seed_, number);
    Armed armed(std::move(fault), number++);
    if (rank_of(armed.fault, random, ranks) != rank_) continue;
    const std::int64_t steps = armed.fault.last_step - armed.fault.first_step + 1;
    armed.step =
        armed.fault.first_step + static_cast<std::int64_t>(random.below(kStep, static_cast<std::uint64_t>(steps)));
    armed_.push_back(std::move(armed));
  }
  if (std::any_of(armed_.begin(), armed_.end(), [](const Armed& armed) { return is_of_files(armed.fault.kind); }))
    file_faults.store(this, std::memory_order_release);
}

FaultInjector::~FaultInjector() {
  FileFaults* own = this;
  file_faults.compare_exchange_strong(own, nullptr);
}

std::unique_ptr<Transport> FaultInjector::around(std::unique_ptr<Transport> transport) {
  const auto of_messages = [](const Armed& armed) { return is_of_messages(armed.fault.kind); };
  if (std::none_of(armed_.begin(), armed_.end(), of_messages)) return transport;
  return make_disturbed(std::move(transport), {.faults = this});
}

bool FaultInjector::has(FaultKind kind) const {
  return std::any_of(armed_.begin(), armed_.end(), [&](const Armed& armed) { return armed.fault.kind == kind; });
}

void FaultInjector::check(const Config& config, const Arenas& arenas) const {
  const auto bits = static_cast<std::int64_t>(8 * size_of(arenas.dtype()));
  for (const Armed& armed : armed_) {
    const Fault& fault = armed.fault;
    if (fault.kind != FaultKind::flip_weight && fault.kind != FaultKind::flip_gradient) continue;
    if (fault.element >= arenas.elems() || fault.bit >= bits)
      refuse(config, "fault.inject",
             fmt::format("\"{0}\": rank {2} has elements 0 to {1} of the model, each with bits 0 to {3}", fault.text,
                         arenas.elems() - 1, rank_, bits - 1));
  }
}

void FaultInjector::begin(const RunFolder& folder, const std::string& host, PhaseBoard& phase, bool anew) {
  phase_ = &phase;
  run_ = folder.run;
  attempt_ = folder.attempt.substr(folder.attempt.rfind('/') + 1);
  host_ = host;
  if (!anew) read_earlier();
  for (Armed& armed : armed_)
    if (armed.step == 0 && armed.fault.phase.empty() && armed.state == State::waiting &&
        (is_of_files(armed.fault.kind) || is_of_messages(armed.fault.kind)))
      armed.state = State::due;
  begun_.store(true, std::memory_order_release);
  phase.listen(this);
  span_place.watcher = this;
}

void FaultInjector::end() {
  if (!begun_.exchange(false)) return;
  if (phase_) phase_->listen(nullptr);
  span_place.watcher = nullptr;
  for (const Armed& armed : armed_)
    if (armed.state != State::fired)
      log_warning("fault {} (\"{}\") of rank {} did not happen, because its time never came", armed.number + 1,
                  armed.fault.text, rank_);
}

void FaultInjector::read_earlier() {
  std::ifstream lines(run_ + "/faults.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object()) continue;
    for (Armed& armed : armed_)
      if (fires_once(armed.fault.kind) && row.value("rank", -1) == rank_ &&
          row.value("number", 0) == armed.number + 1 && row.value("fault", "") == armed.fault.text)
        armed.state = State::fired;
  }
}

bool FaultInjector::happens(Armed& armed, const std::string& detail) {
  const std::lock_guard lock(mutex_);
  if (armed.state == State::fired) return false;
  armed.state = State::fired;
  const std::string line = nlohmann::ordered_json{{"time", now_utc_text()},
                                                  {"attempt", attempt_},
                                                  {"rank", rank_},
                                                  {"host", host_},
                                                  {"step", phase_->step()},
                                                  {"phase", phase_->name()},
                                                  {"number", armed.number + 1},
                                                  {"fault", armed.fault.text},
                                                  {"detail", detail}}
                               .dump() +
                           "\n";
  const int fd = ::open((run_ + "/faults.jsonl").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0 || ::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()) || ::fsync(fd) != 0)
    log_warning("{}/faults.jsonl cannot be written: {}", run_, std::strerror(errno));
  if (fd >= 0) ::close(fd);
  log_warning("injected fault: \"{}\" on rank {} ({}) at step {}, in phase {}{}", armed.fault.text, rank_, host_,
              phase_->step(), phase_->name(), detail.empty() ? "" : ": " + detail);
  flush_log();
  return true;
}

void FaultInjector::come_to(std::string_view phase, std::int64_t step) {
  if (!is_training(phase)) return;
  for (Armed& armed : armed_) {
    if (armed.state != State::waiting || step < armed.step) continue;
    if (!armed.fault.phase.empty() && armed.fault.phase != phase) continue;
    if (armed.fault.kind == FaultKind::flip_weight || armed.fault.kind == FaultKind::flip_checkpoint) continue;
    armed.state = State::due;
    act(armed);
  }
}

// Performs faults that happen at once; the others wait for the next message, write or gradient.
void FaultInjector::act(Armed& armed) {
  switch (armed.fault.kind) {
    case FaultKind::kill:
      if (happens(armed)) kill_this_process();
      break;
    case FaultKind::stop:
      if (happens(armed)) stop_this_process(armed.fault.amount);
      break;
    case FaultKind::slow:
    case FaultKind::cut: happens(armed); break;
    default: break;
  }
}

bool FaultInjector::is_due(const Armed& armed, FaultKind kind, std::int64_t step) const {
  return armed.fault.kind == kind && armed.state != State::fired && step >= armed.step;
}

FaultInjector::Armed* FaultInjector::active(FaultKind kind) {
  if (!begun_.load(std::memory_order_acquire)) return nullptr;
  for (Armed& armed : armed_) {
    if (armed.fault.kind != kind) continue;
    const State state = armed.state;
    if (state == State::due || (state == State::fired && !fires_once(kind))) return &armed;
  }
  return nullptr;
}

void FaultInjector::entered(const char* phase, std::int64_t step) { come_to(phase, step); }

void FaultInjector::begins(SpanKind kind) {
  if (kind == SpanKind::optimiser) come_to("optimiser", phase_->step());
}

// Sleeps inside the span, so that the run's own figures show a slow rank.
void FaultInjector::ends(SpanKind kind, double begin_s) {
  if (kind != SpanKind::forward && kind != SpanKind::backward) return;
  for (const Armed& armed : armed_)
    if (armed.fault.kind == FaultKind::slow && armed.state == State::fired)
      std::this_thread::sleep_for(std::chrono::duration<double>((armed.fault.amount - 1) * (now_s() - begin_s)));
}

MessageFaults::Fate FaultInjector::fate_of(int peer, int tag, std::size_t bytes) {
  Fate fate;
  const auto message = [&] { return fmt::format("to rank {} of its group, tag {}, {} bytes", peer, tag, bytes); };
  if (Armed* armed = active(FaultKind::delay)) {
    happens(*armed);
    fate.delay_s = armed->fault.amount;
  }
  if (Armed* armed = active(FaultKind::drop); armed && happens(*armed, message())) fate.lost = true;
  if (Armed* armed = active(FaultKind::corrupt); armed && bytes > 0 && happens(*armed, message()))
    fate.flipped_bit = static_cast<std::int64_t>(draw(*armed, kBit, 8 * bytes));
  return fate;
}

bool FaultInjector::is_cut() {
  for (const Armed& armed : armed_)
    if (armed.fault.kind == FaultKind::cut && armed.state == State::fired && begun_) return true;
  return false;
}

int FaultInjector::write_error(std::size_t bytes) {
  Armed* const armed = active(FaultKind::disk_full);
  if (!armed) return 0;
  const auto most = static_cast<std::int64_t>(armed->fault.amount);
  if (written_bytes_.fetch_add(static_cast<std::int64_t>(bytes)) + static_cast<std::int64_t>(bytes) <= most) return 0;
  happens(*armed);
  return ENOSPC;
}

int FaultInjector::write_begins(std::size_t& bytes) {
  if (const int error = write_error(bytes); error != 0) return error;
  if (Armed* armed = active(FaultKind::short_writes)) {
    happens(*armed);
    bytes = (bytes + 1) / 2;
  }
  return 0;
}

int FaultInjector::sync(int fd) {
  if (Armed* armed = active(FaultKind::fsync_fails)) {
    happens(*armed);
    errno = EIO;
    return -1;
  }
  return ::fsync(fd);
}

void FaultInjector::have_read(std::string_view path, void* data, std::size_t bytes) {
  if (bytes == 0 || is_in(path, run_)) return;
  if (Armed* const slow = active(FaultKind::slow_reads)) {
    happens(*slow);
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(bytes) / slow->fault.amount));
  }
  Armed* const armed = active(FaultKind::flip_shard);
  if (!armed) return;
  const std::uint64_t bit = draw(*armed, kBit, 8 * bytes);
  if (happens(*armed, fmt::format("bit {} of {} bytes read from {}", bit, bytes, path)))
    static_cast<std::byte*>(data)[bit / 8] ^= std::byte{1} << (bit % 8);
}

std::uint64_t FaultInjector::draw(const Armed& armed, std::uint64_t what, std::uint64_t bound) const {
  return random_of(seed_, armed.number).below(what, bound);
}

void FaultInjector::flip(Armed& armed, Arenas& arenas, ArenaRange range) {
  const Fault& fault = armed.fault;
  const bool weight = fault.kind == FaultKind::flip_weight;
  const auto bits = static_cast<std::uint64_t>(8 * size_of(arenas.dtype()));
  const auto element =
      fault.element >= 0
          ? fault.element
          : range.begin + static_cast<std::int64_t>(draw(armed, kElement, static_cast<std::uint64_t>(range.elems())));
  const auto bit = fault.bit >= 0 ? fault.bit : static_cast<std::int64_t>(draw(armed, kBit, bits));
  if (!happens(armed, fmt::format("bit {} of {} {}", bit, weight ? "weight" : "gradient", element))) return;
  auto* byte = static_cast<std::byte*>(weight ? arenas.weights_at(element) : arenas.gradients_at(element)) + bit / 8;
  std::byte value{};
  arenas.device().to_host(&value, byte, 1);
  value ^= std::byte{1} << (bit % 8);
  arenas.device().to_device(byte, &value, 1);
  if (weight) arenas.touch();
}

void FaultInjector::flip_gradients(Arenas& arenas, ArenaRange range) {
  for (Armed& armed : armed_) {
    if (armed.fault.kind != FaultKind::flip_gradient || armed.state != State::due) continue;
    const std::int64_t element = armed.fault.element;
    if (range.elems() > 0 && (element < 0 || (element >= range.begin && element < range.end)))
      flip(armed, arenas, range);
  }
}

// Flips one bit, drawn over all files together.
void FaultInjector::flip_checkpoint(std::int64_t step, const std::vector<std::string>& files) {
  for (Armed& armed : armed_) {
    if (!is_due(armed, FaultKind::flip_checkpoint, step)) continue;
    std::uint64_t bits = 0;
    for (const std::string& file : files) bits += bits_of(file);
    if (bits == 0) continue;
    std::uint64_t bit = draw(armed, kBit, bits);
    auto file = files.begin();
    for (; bit >= bits_of(*file); ++file) bit -= bits_of(*file);
    const int fd = ::open(file->c_str(), O_RDWR | O_CLOEXEC);
    char value = 0;
    if (fd >= 0 && ::pread(fd, &value, 1, static_cast<off_t>(bit / 8)) == 1 &&
        happens(armed, fmt::format("bit {} of {}", bit, *file))) {
      value = static_cast<char>(value ^ (1 << (bit % 8)));
      if (::pwrite(fd, &value, 1, static_cast<off_t>(bit / 8)) != 1)
        log_warning("{}: the injected fault could not flip a bit", *file);
    }
    if (fd >= 0) ::close(fd);
  }
}

std::unique_ptr<FaultInjector> make_fault_injector(const Config& config, int rank, int ranks) {
  if (config.fault.inject.empty()) return nullptr;
  try {
    return std::make_unique<FaultInjector>(config, rank, ranks);
  } catch (const ConfigError&) {
    return nullptr;
  }
}

void check_faults(const Config& config, int ranks, bool threads) {
  for (const Fault& fault : faults_of(config)) {
    if (fault.rank >= ranks)
      refuse(config, "fault.inject",
             fmt::format("\"{}\": this launch has ranks 0 to {}; nearest valid: rank {}", fault.text, ranks - 1,
                         ranks - 1));
    if (threads && is_of_processes(fault.kind))
      refuse(config, "fault.inject",
             fmt::format("\"{}\": with --local-ranks all ranks share one process; start them with mpirun or srun",
                         fault.text));
  }
}

}  // namespace echelon::inline fault

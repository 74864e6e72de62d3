// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/session.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <thread>
#include <typeinfo>

#include "base/clock.hpp"
#include "base/crash_note.hpp"
#include "base/error.hpp"

namespace echelon::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr rlim_t kMostMemory = rlim_t{1} << 31;  // address space of a process; sanitisers have their own limit
constexpr int kDone = 0;
constexpr const char* kExplained = "explained";

// Memory shared by the process that tries inputs and the one that watches it.
struct Board {
  std::atomic<std::int64_t> index = -1;  // index of the current input
  std::atomic<double> begun_s = 0, slowest_s = 0;
  std::atomic<std::int64_t> accepted = 0, refused = 0, failed = 0, explained = 0;
};

bool sanitised() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#else
  return false;
#endif
}

std::string type_of(const std::exception& error) {
  int status = 0;
  char* name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
  std::string text = status == 0 ? name : typeid(error).name();
  std::free(name);
  return text;
}

class Runner {
 public:
  Runner(const TargetEntry& entry, const Place& place, const Session& session)
      : entry_(entry), session_(session), place_(place), errors_(place.folder + ".stderr") {
    void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::bad_alloc();
    board_ = new (shared) Board;
    target_ = entry.make(place);
  }
  ~Runner() { ::munmap(board_, sizeof(Board)); }
  Runner(const Runner&) = delete;

  Tally run() {
    const double begun_s = now_s();
    ends_s_ = session_.seconds > 0 ? begun_s + session_.seconds : 0;
    const std::int64_t end = session_.first + session_.inputs;
    for (std::int64_t next = session_.first; next < end && !over() && board_->failed < kMostFailures;) {
      board_->index = next;
      board_->begun_s = now_s();
      const std::string died = watch(start([this, next, end] { try_all(next, end); }));
      next = board_->index + 1;
      if (died.empty()) break;
      if (died == kExplained) {
        ++board_->refused, ++board_->explained;
        continue;
      }
      ++board_->failed;
      const std::string errors = last_errors();  // read before another process writes there
      const std::int64_t index = board_->index;
      board_->begun_s = now_s();
      watch(start([this, index] { keep(index, draw(index)); }));
      tell(index, died + errors);
    }
    return {board_->accepted, board_->refused, board_->failed, board_->explained, now_s() - begun_s, board_->slowest_s};
  }

 private:
  bool over() const { return ends_s_ > 0 && now_s() >= ends_s_; }
  std::string draw(std::int64_t index) {
    Draws draws(session_.seed, entry_.name, index);
    return target_->draw(draws);
  }

  template <class Body>
  pid_t start(Body&& body) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
    if (child > 0) return child;
    if (!sanitised()) {
      const rlimit memory{kMostMemory, kMostMemory};
      ::setrlimit(RLIMIT_AS, &memory);
    }
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    if (const int file = ::open(errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644); file >= 0) ::dup2(file, 2);
    explain_crashes();
    body();
    std::fflush(nullptr);
    ::_exit(kDone);
  }

  void try_all(std::int64_t first, std::int64_t end) {
    for (std::int64_t index = first; index < end && !over(); ++index) {
      board_->index = index;
      const double begun_s = now_s();
      board_->begun_s = begun_s;
      const std::string input = draw(index);
      std::string wrong;
      try {
        ++(target_->take(input) ? board_->accepted : board_->refused);
      } catch (const Error& error) {
        wrong = fmt::format("{} of exit code {}: {}", type_of(error), static_cast<int>(error.code()), error.what());
      } catch (const std::exception& error) {
        wrong = fmt::format("{}: {}", type_of(error), error.what());
      } catch (...) {
        wrong = "an exception of no known type";
      }
      board_->slowest_s = std::max(board_->slowest_s.load(), now_s() - begun_s);
      if (wrong.empty()) continue;
      keep(index, input);
      tell(index, wrong);
      if (++board_->failed >= kMostFailures) return;
    }
  }

  // Returns "" where the process ended normally, kExplained where it named the file that crashed a library, else how.
  std::string watch(pid_t child) {
    for (;;) {
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) == child) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == kDone) return {};
        if (WIFEXITED(status) && WEXITSTATUS(status) == kExitData) return kExplained;
        if (WIFEXITED(status)) return fmt::format("the process ended with code {}", WEXITSTATUS(status));
        return fmt::format("crash: {}", ::strsignal(WTERMSIG(status)));
      }
      if (now_s() - board_->begun_s > session_.input_s) {
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        return fmt::format("hang: more than {} s", session_.input_s);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  std::string path_of(std::int64_t index) const {
    return fmt::format("{}/{}-{}-{}", session_.failures, entry_.name, session_.seed, index);
  }
  void keep(std::int64_t index, const std::string& input) const {
    fs::create_directories(session_.failures);
    write_plain(path_of(index), input);
  }
  void tell(std::int64_t index, const std::string& what) const {
    std::printf("fuzz: %s, input %lld: %s\n  kept as %s; again: %s --target %s --seed %llu --only %lld\n", entry_.name,
                static_cast<long long>(index), what.c_str(), path_of(index).c_str(), session_.command.c_str(),
                entry_.name, static_cast<unsigned long long>(session_.seed), static_cast<long long>(index));
    std::fflush(stdout);
  }
  // Returns what a sanitiser or abort wrote.
  std::string last_errors() const {
    constexpr std::size_t kLongest = 3000;
    const std::string all = read_plain(errors_);
    std::size_t from = all.find("ERROR: ");
    if (from == std::string::npos) from = all.find("runtime error: ");
    if (from == std::string::npos)
      from = all.size() > kLongest ? all.size() - kLongest : 0;
    else
      from = all.rfind('\n', from) == std::string::npos ? 0 : all.rfind('\n', from) + 1;
    return all.empty() ? "" : "\n" + all.substr(from, kLongest);
  }

  const TargetEntry& entry_;
  const Session& session_;
  const Place& place_;
  std::string errors_;
  Board* board_ = nullptr;
  std::unique_ptr<Target> target_;
  double ends_s_ = 0;
};

}  // namespace

Tally run_inputs(const TargetEntry& entry, const Place& place, const Session& session) {
  return Runner(entry, place, session).run();
}

}  // namespace echelon::fuzz

// SPDX-License-Identifier: Apache-2.0
// Main program of the ring under mpirun: MPI starts once, every rank runs the same test cases in the same order, and
// after each case all ranks agree on its verdict, so that a failure on one rank fails the case on all.
//
// Only rank 0 writes to standard output; a failed rank prints its report at the end, on standard error. A rank that
// stays in one place for too long says where, and ends the ring.
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/mpi/world.hpp"
#include "tests/mpi/ring.hpp"
#include "tests/support/process.hpp"
#include "tests/support/session.hpp"

namespace echelon::test {
namespace {

constexpr double kStuck_s = 120;

MpiWorld* world = nullptr;

// Tells where this rank is; a thread watches how long it stays there.
class Watch {
 public:
  Watch() : thread_([this] { run(); }) {}
  ~Watch() {
    stop_ = true;
    thread_.join();
  }
  void now_at(std::string place) {
    const std::lock_guard lock(mutex_);
    place_ = std::move(place);
    since_s_ = now_s();
  }

 private:
  void run() {
    while (!stop_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const std::lock_guard lock(mutex_);
      if (now_s() - since_s_ < kStuck_s) continue;
      std::fprintf(stderr, "rank %d: %g s %s; ending the ring\n", ring_rank(), kStuck_s, place_.c_str());
      std::this_thread::sleep_for(std::chrono::seconds(2));  // time for the other ranks to print
      std::_Exit(kExitLostRank);
    }
  }
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::string place_ = "before the first test";
  double since_s_ = now_s();
  std::thread thread_;
};

void wait_for(Transport& transport, Request request) {
  while (!transport.test(request)) std::this_thread::yield();
}

// Rank 0 collects every rank's verdict and sends the result to all.
bool agree(Transport& control, Watch& watch, const std::string& test, bool passed) {
  const std::string after = " for the verdict on \"" + test + "\"";
  char verdict = passed ? 1 : 0;
  if (control.rank() > 0) {
    watch.now_at("waiting" + after + " of rank 0");
    wait_for(control, control.isend(0, 1, &verdict, 1));
    wait_for(control, control.irecv(0, 2, &verdict, 1));
  } else {
    for (int peer = 1; peer < control.size(); ++peer) {
      watch.now_at("waiting" + after + " of rank " + std::to_string(peer));
      char other = 0;
      wait_for(control, control.irecv(peer, 1, &other, 1));
      if (!other) std::printf("rank %d failed \"%s\"\n", peer, test.c_str());
      verdict = verdict && other;
    }
    for (int peer = 1; peer < control.size(); ++peer) wait_for(control, control.isend(peer, 2, &verdict, 1));
  }
  watch.now_at("in the test after \"" + test + "\"");
  return verdict != 0;
}

int run_ring(int argc, char** argv) {
  const std::unique_ptr<Transport> control = ring_transport();
  Watch watch;
  bool failed_here = false;
  set_agreement([&](const std::string& test, bool passed) {
    failed_here |= !passed;
    return agree(*control, watch, test, passed);
  });
  const bool reports = ring_rank() == 0;
  const TempFolder folder;
  std::string option = "--out", report = folder / "report";
  std::vector<char*> args(argv, argv + argc);
  if (!reports) args.insert(args.end(), {option.data(), report.data()});
  const int code = run_session(static_cast<int>(args.size()), args.data(), "mpi", reports);
  if (!reports && failed_here) {
    std::ifstream text(report);
    for (std::string line; std::getline(text, line);) std::fprintf(stderr, "rank %d: %s\n", ring_rank(), line.c_str());
  }
  return code;
}

}  // namespace

std::unique_ptr<Transport> ring_transport() { return world->transport(); }
int ring_rank() { return world->rank(); }
int ring_size() { return world->size(); }

}  // namespace echelon::test

int main(int argc, char** argv) {
  try {
    echelon::MpiWorld started;
    echelon::test::world = &started;
    return echelon::test::run_ring(argc, argv);
  } catch (const echelon::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.code();
  }
}

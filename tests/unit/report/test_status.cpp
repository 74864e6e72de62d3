// SPDX-License-Identifier: Apache-2.0
#include "report/status.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/process.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

using nlohmann::json;
using test::TempFolder;

// Returns the process_id_text of a child that has ended.
std::string dead_process() {
  const std::string own = process_id_text();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return std::to_string(child) + own.substr(own.find(' '));
}

Status failed(const std::string& reason) {
  Status status;
  status.state = "failed";
  status.exit_code = 7;
  status.reason = reason;
  return status;
}

}  // namespace

TEST_CASE("a status comes back as it was written", "[report][status]") {
  const TempFolder folder;
  CHECK(!read_status(folder.path()));
  Status status{"stopped", 75, "asked \"to\" stop", 12, "checkpoints/step-00000012.h5", {}};
  status.provenance.hosts = {"a", "b"};
  status.provenance.ranks = 2;
  CHECK(conclude(folder.path(), status));
  const auto read = read_status(folder.path());
  REQUIRE(read);
  CHECK(read->state == "stopped");
  CHECK(read->exit_code == 75);
  CHECK(read->reason == "asked \"to\" stop");
  CHECK(read->step == 12);
  CHECK(read->checkpoint == "checkpoints/step-00000012.h5");
  CHECK(read->provenance.hosts == std::vector<std::string>{"a", "b"});
  CHECK(read->provenance.ranks == 2);
}

TEST_CASE("a half-written or foreign status file reads as no status", "[report][status]") {
  const TempFolder folder;
  for (const char* text : {"{\"state\": \"fini", "[1]", "{\"state\": 3}", "{}"}) {
    write_file_whole(folder / "status.json", text);
    CHECK(!read_status(folder.path()));
  }
}

TEST_CASE("while an attempt runs its status has a step and no exit code", "[report][status]") {
  const TempFolder folder;
  Status status;
  status.step = 41;
  status.provenance.process = process_id_text();
  write_running(folder.path(), status);
  const json file = json::parse(read_file_whole(folder / "status.json"));
  CHECK(file["state"] == "running");
  CHECK(file["exit_code"].is_null());
  CHECK(file["step"] == 41);
  CHECK(read_status(folder.path())->state == "running");
  CHECK(!read_status(folder.path())->exit_code);
}

TEST_CASE("a running attempt whose process is gone has died", "[report][status]") {
  const TempFolder folder;
  Status status;
  status.provenance.process = dead_process();
  write_running(folder.path(), status);
  CHECK(read_status(folder.path())->state == "died");
  CHECK(!read_status(folder.path())->exit_code);
  // On another machine, or in another PID namespace, the process number means nothing.
  status.provenance.process = status.provenance.process.substr(0, status.provenance.process.find(' ')) + " far away";
  write_running(folder.path(), status);
  CHECK(read_status(folder.path())->state == "running");
}

TEST_CASE("the first verdict stays, in both files", "[report][status]") {
  const TempFolder folder;
  CHECK(conclude(folder.path(), failed("rank 1 hangs")));
  CHECK_FALSE(conclude(folder.path(), failed("rank 0 hangs")));  // this rank woke up late
  write_running(folder.path(), {});
  CHECK(read_status(folder.path())->reason == "rank 1 hangs");
  CHECK(json::parse(read_file_whole(folder / "status.json"))["reason"] == "rank 1 hangs");
  // A rank may have looked before the verdict and rename its file after it: the verdict still counts.
  write_file_whole(folder / "status.json", "{\"state\": \"running\", \"step\": 9}");
  CHECK(read_status(folder.path())->reason == "rank 1 hangs");
}

TEST_CASE("of many concurrent verdicts one is kept whole, beside a running status that is rewritten",
          "[report][status]") {
  for (int round = 0; round < 20; ++round) {
    const TempFolder folder;
    std::atomic<int> kept{0};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) write_running(folder.path(), {});
    });
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] { kept += conclude(folder.path(), failed("rank " + std::to_string(rank))); });
    for (std::thread& thread : threads) thread.join();
    CHECK(kept == 1);
    CHECK(json::parse(read_file_whole(folder / "status.json"))["state"] == "failed");
    CHECK(read_file_whole(folder / "status.json") == read_file_whole(folder / "verdict.json"));
  }
}

TEST_CASE("processes are told apart", "[base]") {
  CHECK_FALSE(is_gone(process_id_text()));
  CHECK_FALSE(is_gone("1" + process_id_text().substr(process_id_text().find(' '))));  // process 1 exists
  CHECK(is_gone(dead_process()));
  CHECK(start_ticks(process_id_text()) > 0);
  CHECK(start_ticks(dead_process()) == 0);
  CHECK(start_ticks("1 elsewhere -") == 0);
  for (const char* none : {"", "x", "-1 a b", "99999999999999999999 a b"}) CHECK_FALSE(is_gone(none));
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/shared_channels.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "comm/mapped_block.hpp"

namespace echelon::inline comm {
namespace {

// The location of the file, or the reason why there is none.
struct Place {
  int process = 0, file = -1, error = 0;
  std::string path() const { return fmt::format("/proc/{}/fd/{}", process, file); }
};

// The result on all ranks: the first place in the host with an error.
struct Verdict {
  int error = 0, place = 0;
};

class File {
 public:
  explicit File(int file) : file_(file) {}
  ~File() {
    if (file_ >= 0) ::close(file_);
  }
  File(const File&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

}  // namespace

// The exchange of messages that creates one block.
struct MpiSharedChannels::Opening {
  Opening(MPI_Comm communicator, int tag) : host(communicator), message_tag(tag) {
    MPI_Comm_rank(host, &me);
    MPI_Comm_size(host, &ranks);
    if (me == 0)
      make_file();
    else
      receive(0, &place, sizeof place);
  }

  // Returns true once the block exists or cannot be created; sets `missing` to the place that it waits for.
  bool pass(int& missing) {
    for (;;) {
      if (const int peer = open_peer(); peer >= 0) return missing = peer, false;
      ++stage;
      if (me == 0 && stage == 1)
        decide();
      else if (me > 0 && stage == 1)
        map_and_answer();
      else
        return true;
    }
  }

  // The first peer whose message is in flight; -1: all have completed.
  int open_peer() {
    for (Message& message : messages) {
      int done = 1;
      if (message.request != MPI_REQUEST_NULL)
        mpi::check(MPI_Test(&message.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (!done) return message.peer;
    }
    messages.clear();
    return -1;
  }

  void make_file() {
    file.emplace(memfd_create("echelon-sums", MFD_CLOEXEC));
    place = {.process = ::getpid(), .file = file->get()};
    const auto bytes = static_cast<off_t>(SharedChannel::bytes()) * ranks;
    if (file->get() < 0 || ::fchmod(file->get(), 0600) != 0 || ::ftruncate(file->get(), bytes) != 0)
      place.error = errno;
    else
      map(file->get());
    answers.resize(static_cast<std::size_t>(ranks));
    for (int peer = 1; peer < ranks; ++peer) {
      send(peer, &place, sizeof place);
      receive(peer, &answers[static_cast<std::size_t>(peer)], sizeof(int));
    }
    answers[0] = place.error;
  }

  void decide() {
    for (int peer = ranks - 1; peer >= 0; --peer)
      if (const int error = answers[static_cast<std::size_t>(peer)]; error != 0) verdict = {error, peer};
    for (int peer = 1; peer < ranks; ++peer) send(peer, &verdict, sizeof verdict);
    file.reset();
  }

  void map_and_answer() {
    answer = place.error;
    if (answer == 0) {
      const File opened(::open(place.path().c_str(), O_RDWR | O_CLOEXEC));
      if (opened.get() < 0)
        answer = errno;
      else
        map(opened.get());
    }
    send(0, &answer, sizeof answer);
    receive(0, &verdict, sizeof verdict);
  }

  void map(int of_file) {
    try {
      block = std::make_shared<MappedBlock>(of_file, SharedChannel::bytes(), ranks);
    } catch (const EnvironmentError&) {
      place.error = answer = ENOMEM;
    }
  }

  void send(int peer, const void* data, std::size_t bytes) {
    Message& message = messages.emplace_back(Message{.peer = peer});
    mpi::check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, message_tag, host, &message.request),
               "MPI_Isend");
  }
  void receive(int peer, void* data, std::size_t bytes) {
    Message& message = messages.emplace_back(Message{.peer = peer});
    mpi::check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, message_tag, host, &message.request),
               "MPI_Irecv");
  }

  struct Message {
    int peer = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MPI_Comm host;
  int message_tag, me = 0, ranks = 1, stage = 0, answer = 0;
  Place place;
  Verdict verdict;
  std::vector<int> answers;  // by place
  std::vector<Message> messages;
  std::optional<File> file;
  std::shared_ptr<SharedBlock> block;
};

MpiSharedChannels::MpiSharedChannels(MPI_Comm host, std::vector<int> ranks, int size)
    : host_(host), ranks_(std::move(ranks)), parts_(static_cast<std::size_t>(size), -1) {
  MPI_Comm_rank(host_, &place_);
  for (std::size_t place = 0; place < ranks_.size(); ++place)
    parts_[static_cast<std::size_t>(ranks_[place])] = static_cast<int>(place);
}

// The library may still write to the memory of a message in flight.
MpiSharedChannels::~MpiSharedChannels() {
  for (auto& [tag, entry] : entries_)
    if (entry.opening && !entry.opening->messages.empty()) (void)entry.opening.release();
  int ended = 0;
  MPI_Finalized(&ended);
  if (!ended) MPI_Comm_free(&host_);
}

SharedChannel* MpiSharedChannels::channel(int tag, int& missing) {
  Entry& entry = entries_[tag];
  if (entry.channel) return entry.channel.get();
  if (!entry.opening) entry.opening = std::make_unique<Opening>(host_, tag);
  int place = 0;
  if (!entry.opening->pass(place)) {
    missing = rank_of(place);
    return nullptr;
  }
  if (const Verdict verdict = entry.opening->verdict; verdict.error != 0)
    throw EnvironmentError(fmt::format(
        "ranks of this host cannot share memory to sum in: rank {} {}: {}; nearest valid: exchange.algorithm = "
        "\"ring\"",
        rank_of(verdict.place),
        verdict.place == 0
            ? "cannot create a file in memory (memfd_create)"
            : "cannot map that of rank " + std::to_string(rank_of(0)) + " (" + entry.opening->place.path() + ")",
        std::strerror(verdict.error)));
  entry.channel = std::make_unique<SharedChannel>(std::move(entry.opening->block), parts_, rank_of(place_));
  entry.opening.reset();
  return entry.channel.get();
}

}  // namespace echelon::inline comm

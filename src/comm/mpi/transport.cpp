// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/transport.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "base/numbered.hpp"
#include "comm/counters.hpp"
#include "comm/host_groups.hpp"
#include "comm/mpi/library.hpp"
#include "comm/mpi/share.hpp"
#include "comm/mpi/shared_channels.hpp"
#include "comm/mpi/world.hpp"

namespace echelon::inline comm {
namespace {

// A byte count as MPI takes it: counts are ints, so beyond 2 GiB a datatype of 1 GiB blocks and a rest is used.
struct ByteCount {
  explicit ByteCount(std::size_t bytes) {
    if (bytes <= INT_MAX) {
      count = static_cast<int>(bytes);
      return;
    }
    constexpr std::size_t kBlock = std::size_t{1} << 30;
    int lengths[2] = {static_cast<int>(bytes / kBlock), static_cast<int>(bytes % kBlock)};
    MPI_Aint offsets[2] = {0, static_cast<MPI_Aint>(bytes / kBlock * kBlock)};
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    mpi::check(MPI_Type_contiguous(static_cast<int>(kBlock), MPI_BYTE, &types[0]), "MPI_Type_contiguous");
    mpi::check(MPI_Type_create_struct(2, lengths, offsets, types, &type), "MPI_Type_create_struct");
    mpi::check(MPI_Type_commit(&type), "MPI_Type_commit");
    MPI_Type_free(&types[0]);
    count = 1;
  }
  ~ByteCount() {
    if (type != MPI_BYTE) MPI_Type_free(&type);  // operations in flight keep it
  }
  ByteCount(const ByteCount&) = delete;

  int count = 0;
  MPI_Datatype type = MPI_BYTE;
};

enum class Kind : std::uint8_t { send, receive, library, abandoned };  // abandoned: a receive whose owner is gone

struct UnderWay {
  Kind kind = Kind::send;
  int peer = -1;
  std::size_t bytes = 0;
  bool done = false;
  int code = MPI_SUCCESS;
  std::uint64_t seen = 0;  // number of the poll after which it was last tested
};

// MPI_Test of an incomplete request polls the network, which takes 1 us of system calls on TCP. Therefore one
// MPI_Testsome tests all requests, and `test` polls only for a request that it has already tested since the last poll:
// a caller that tests all its requests in turn polls once per round.

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MPI_Comm communicator) : communicator_(communicator) {
    open();
    find_hosts();
  }
  // Over some ranks of `whole`, whose hosts are known; or over all of them, with other hosts.
  MpiTransport(MPI_Comm communicator, const MpiTransport& whole, const std::vector<int>& other_hosts = {})
      : communicator_(communicator) {
    open();
    if (other_hosts.empty())
      take_hosts(whole);
    else
      name_hosts(whole, other_hosts);
    MPI_Comm shared = MPI_COMM_NULL;
    mpi::check(MPI_Comm_split(communicator_, hosts_[static_cast<std::size_t>(rank_)], rank_, &shared),
               "MPI_Comm_split");
    open_channels(shared);
  }
  ~MpiTransport() override {
    int ended = 0;
    MPI_Finalized(&ended);
    if (!ended) MPI_Comm_free(&communicator_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "mpi (" + mpi_version() + ")"; }
  const std::vector<int>& hosts() const override { return hosts_; }
  const std::vector<std::string>& host_names() const override { return host_names_; }
  const std::vector<int>& machines() const override { return machines_; }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    const ByteCount size(bytes);
    const Request request = begin(Kind::send, peer, bytes);
    mpi::check(MPI_Isend(data, size.count, size.type, peer, tag, communicator_,
                         &requests_[static_cast<std::size_t>(request.id)]),
               "MPI_Isend");
    counters_->sent(peer, bytes);
    return request;
  }

  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    const ByteCount size(bytes);
    const Request request = begin(Kind::receive, peer, bytes);
    const int source = peer == kAnySource ? MPI_ANY_SOURCE : peer;
    mpi::check(MPI_Irecv(data, size.count, size.type, source, tag, communicator_,
                         &requests_[static_cast<std::size_t>(request.id)]),
               "MPI_Irecv");
    return request;
  }

  std::optional<Completion> test(Request& request) override {
    UnderWay& op = at(request);
    if (!op.done) {
      if (op.seen == polls_) poll();
      op.seen = polls_;
      if (!op.done) return std::nullopt;
    }
    const Completion completion{op.peer, op.bytes};
    const int code = op.code;
    const Kind kind = op.kind;
    release(request);
    if (code != MPI_SUCCESS)
      mpi::check(code, fmt::format("rank {}, {} rank {}", rank_, kind == Kind::send ? "send to" : "receive from",
                                   completion.peer));
    if (kind == Kind::receive) counters_->received(completion.bytes);
    return completion;
  }

  // A cancelled receive ends by itself: as cancelled, or with its message if that is arriving. A library call cannot be
  // abandoned: its request remains until the process ends.
  void cancel(Request& request) override {
    UnderWay& op = at(request);
    MPI_Request& handle = requests_[static_cast<std::size_t>(request.id)];
    if (op.kind == Kind::receive && handle != MPI_REQUEST_NULL) {
      MPI_Cancel(&handle);
      op.kind = Kind::abandoned;
      ++abandoned_;
      request.id = -1;
      return;
    }
    if (op.kind == Kind::send && handle != MPI_REQUEST_NULL) MPI_Request_free(&handle);
    handle = MPI_REQUEST_NULL;
    release(request);
  }
  std::size_t abandoned() const override { return abandoned_; }

  bool has_library_allreduce() const override { return true; }
  Request iallreduce(void* data, std::size_t elems, DType dtype) override {
    ECHELON_CHECK(dtype == DType::f32 || dtype == DType::f64, "sums are of f32 or f64");
    ECHELON_CHECK_LE(elems, static_cast<std::size_t>(INT_MAX), "one library call");
    const Request request = begin(Kind::library, -1, elems * size_of(dtype));
    mpi::check(MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(elems), dtype == DType::f64 ? MPI_DOUBLE : MPI_FLOAT,
                              MPI_SUM, communicator_, &requests_[static_cast<std::size_t>(request.id)]),
               "MPI_Iallreduce");
    counters_->library(elems * size_of(dtype));
    return request;
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    MPI_Comm part = MPI_COMM_NULL;
    mpi::check(MPI_Comm_split(communicator_, color, key, &part), "MPI_Comm_split");
    return std::make_unique<MpiTransport>(part, *this);
  }

  std::unique_ptr<Transport> with_hosts(const std::vector<int>& hosts) override {
    MPI_Comm copy = MPI_COMM_NULL;
    mpi::check(MPI_Comm_dup(communicator_, &copy), "MPI_Comm_dup");
    return std::make_unique<MpiTransport>(copy, *this, hosts);
  }

  std::shared_ptr<SharedBlock> share(std::size_t bytes) override {
    return host_names_.size() == 1 ? make_shared_window(communicator_, bytes) : nullptr;
  }

  bool shares_channels() const override { return true; }
  SharedChannel* shared_channel(int tag, int& missing) override { return channels_->channel(tag, missing); }

  WireCounters counters() const override { return counters_->read(); }
  std::vector<double> bytes_to_peers() const override { return counters_->bytes_to_peers(); }
  CardRates card_rates() const override { return counters_->card_rates(); }
  void restart_card_rates() override { counters_->restart_card_rates(); }
  [[noreturn]] void abort(int exit_code) override { MpiWorld::abort(exit_code); }

 private:
  void open() {
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &size_);
    counters_.emplace(size_);
  }

  UnderWay& at(const Request& request) { return table_[static_cast<std::size_t>(request.id)]; }

  Request begin(Kind kind, int peer, std::size_t bytes) {
    if (free_.empty()) {
      table_.emplace_back();
      requests_.push_back(MPI_REQUEST_NULL);
      finished_.resize(table_.size());
      statuses_.resize(table_.size());
      free_.reserve(table_.capacity());
      free_.push_back(static_cast<std::int64_t>(table_.size()) - 1);
    }
    const std::int64_t id = free_.back();
    free_.pop_back();
    table_[static_cast<std::size_t>(id)] = {.kind = kind, .peer = peer, .bytes = bytes, .seen = polls_ - 1};
    return {id};
  }

  void poll() {
    ++polls_;
    int n = 0;
    const int code =
        MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &n, finished_.data(), statuses_.data());
    if (code != MPI_ERR_IN_STATUS) mpi::check(code, "MPI_Testsome");
    if (n == MPI_UNDEFINED) return;
    for (int i = 0; i < n; ++i) {
      const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
      UnderWay& op = table_[static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)])];
      op.done = true;
      op.code = code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS;
      if (op.kind == Kind::abandoned) {
        --abandoned_;
        free_.push_back(finished_[static_cast<std::size_t>(i)]);
      }
      if (op.kind != Kind::receive) continue;
      MPI_Count bytes = 0;
      MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
      op.peer = status.MPI_SOURCE;
      op.bytes = static_cast<std::size_t>(bytes);
    }
  }

  void release(Request& request) {
    free_.push_back(request.id);
    request.id = -1;
  }

  // Takes over `shared`, a communicator of the ranks of this host in their order. The hosts must be known.
  void open_channels(MPI_Comm shared) {
    std::vector<int> here;
    for (int rank = 0; rank < size_; ++rank)
      if (hosts_[static_cast<std::size_t>(rank)] == hosts_[static_cast<std::size_t>(rank_)]) here.push_back(rank);
    channels_.emplace(shared, std::move(here), size_);
  }

  // Ranks that can share memory are on one host, which is identified by the lowest of them.
  void find_hosts() {
    MPI_Comm shared = MPI_COMM_NULL;
    mpi::check(MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &shared),
               "MPI_Comm_split_type");
    int first = rank_;
    mpi::check(MPI_Bcast(&first, 1, MPI_INT, 0, shared), "MPI_Bcast");
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    MPI_Get_processor_name(name, &length);
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<int> firsts(ranks);
    std::vector<char> names(ranks * sizeof name);
    mpi::check(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, communicator_), "MPI_Allgather");
    mpi::check(MPI_Allgather(name, sizeof name, MPI_CHAR, names.data(), sizeof name, MPI_CHAR, communicator_),
               "MPI_Allgather");
    machines_ = hosts_ = numbered(firsts);
    for (std::size_t r = 0; r < ranks; ++r)
      if (static_cast<std::size_t>(hosts_[r]) == host_names_.size()) host_names_.emplace_back(&names[r * sizeof name]);
    open_channels(shared);
  }

  void take_hosts(const MpiTransport& whole) {
    std::vector<int> here(static_cast<std::size_t>(size_)), there(here.size()), hosts;
    std::iota(here.begin(), here.end(), 0);
    MPI_Group of_part = MPI_GROUP_NULL, of_whole = MPI_GROUP_NULL;
    mpi::check(MPI_Comm_group(communicator_, &of_part), "MPI_Comm_group");
    mpi::check(MPI_Comm_group(whole.communicator_, &of_whole), "MPI_Comm_group");
    mpi::check(MPI_Group_translate_ranks(of_part, size_, here.data(), of_whole, there.data()),
               "MPI_Group_translate_ranks");
    MPI_Group_free(&of_part);
    MPI_Group_free(&of_whole);
    std::vector<int> machines;
    for (const int rank : there) {
      hosts.push_back(whole.hosts_[static_cast<std::size_t>(rank)]);
      machines.push_back(whole.machines_[static_cast<std::size_t>(rank)]);
    }
    hosts_ = numbered(hosts);
    machines_ = numbered(machines);
    for (std::size_t r = 0; r < hosts.size(); ++r)
      if (static_cast<std::size_t>(hosts_[r]) == host_names_.size())
        host_names_.push_back(whole.host_names_[static_cast<std::size_t>(hosts[r])]);
  }

  void name_hosts(const MpiTransport& whole, const std::vector<int>& hosts) {
    hosts_ = numbered(hosts);
    machines_ = whole.machines_;
    host_names_ = names_of_groups(hosts_, machines_, whole.host_names_);
  }

  MPI_Comm communicator_;
  int rank_ = 0, size_ = 1;
  std::vector<int> hosts_, machines_;
  std::vector<std::string> host_names_;
  std::vector<UnderWay> table_;        // by request id
  std::vector<MPI_Request> requests_;  // by request id, contiguous for MPI_Testsome
  std::vector<int> finished_;          // result of one poll
  std::vector<MPI_Status> statuses_;   // result of one poll
  std::vector<std::int64_t> free_;
  std::uint64_t polls_ = 1;
  std::atomic<std::size_t> abandoned_ = 0;  // any thread may ask
  std::optional<MpiSharedChannels> channels_;
  std::optional<MessageCounters> counters_;  // set once the number of ranks is known
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(MPI_Comm communicator) {
  return std::make_unique<MpiTransport>(communicator);
}

}  // namespace echelon::inline comm

// SPDX-License-Identifier: Apache-2.0
#include "exchange/asynchronous/ledger_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file_faults.hpp"

namespace echelon::inline exchange {
namespace {

constexpr std::string_view kMagic = "echelon arrivals 1\n";
constexpr std::uint32_t kMostBuckets = 1U << 20;

template <class Number>
void append_number(std::string& to, Number value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Visits the fields of the header with the names of their lines.
template <class Header, class Visit>
void visit_header(Header& header, const Visit& visit) {
  visit("rank", header.rank), visit("ranks", header.ranks), visit("workers", header.workers);
  visit("servers", header.servers), visit("pieces", header.pieces);
  visit("first_step", header.first_step), visit("total_steps", header.total_steps);
  visit("samples", header.samples), visit("config", header.config), visit("data", header.data);
  visit("weights", header.weights), visit("device", header.device);
}

LedgerHeader header_of(const std::string& text, const std::string& path) {
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    values[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  LedgerHeader header;
  visit_header(header, [&](const std::string& name, auto& field) {
    const auto found = values.find(name);
    if (found == values.end()) throw DataError(fmt::format("{}: its header has no '{}'", path, name));
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::string>)
      field = found->second;
    else if (!(std::istringstream(found->second) >> field))
      throw DataError(fmt::format("{}: its header has {} = '{}', which is not a number", path, name, found->second));
  });
  return header;
}

// Reads the intact blocks of a file one by one.
class Blocks {
 public:
  explicit Blocks(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) throw EnvironmentError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    std::string magic(kMagic.size(), '\0');
    if (!file_.read(magic.data(), static_cast<std::streamsize>(magic.size())) || magic != kMagic)
      throw DataError(fmt::format("{}: is not an order of arrivals of this version", path));
  }

  // Returns the next block's payload, or nothing after the last intact block.
  std::optional<std::string> next() {
    std::uint32_t bytes = 0;
    std::uint64_t checksum = 0;
    if (!read(&bytes, sizeof bytes) || !read(&checksum, sizeof checksum) || bytes > bytes_left()) return {};
    std::string payload(bytes, '\0');
    if (!read(payload.data(), bytes)) return {};
    checksum_ = checksum64(payload.data(), payload.size(), checksum_);
    if (checksum_ != checksum) return {};
    whole_ = file_.tellg();
    return payload;
  }

  std::uint64_t bytes_after_the_last() {
    file_.clear();
    file_.seekg(whole_);
    return bytes_left();
  }

  LedgerHeader header() {
    const auto text = next();
    if (!text) throw DataError(fmt::format("{}: its header is damaged or truncated", path_));
    return header_of(*text, path_);
  }

 private:
  std::uint64_t bytes_left() {
    const std::streampos here = file_.tellg();
    file_.seekg(0, std::ios::end);
    const std::streampos end = file_.tellg();
    file_.seekg(here);
    return static_cast<std::uint64_t>(end - here);
  }
  bool read(void* to, std::size_t bytes) {
    return static_cast<bool>(file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)));
  }

  std::string path_;
  std::ifstream file_;
  std::streampos whole_ = 0;
  std::uint64_t checksum_ = 0;
};

// Appends the contents of a block to `file`. Returns false if its numbers are inconsistent.
bool take_block(const std::string& payload, LedgerFile& file) {
  std::size_t at = 0;
  const auto number = [&](std::uint32_t& value) {
    if (payload.size() - at < sizeof value) return false;
    std::memcpy(&value, payload.data() + at, sizeof value);
    at += sizeof value;
    return true;
  };
  std::uint32_t meetings = 0, bucket = 0, bytes = 0;
  if (!number(meetings)) return false;
  for (std::uint32_t reasons = 0; meetings > 0; --meetings) {
    if (!number(reasons)) return false;
    file.meetings.push_back(reasons);
  }
  while (at < payload.size()) {
    if (!number(bucket) || !number(bytes) || bytes > payload.size() - at || bucket >= kMostBuckets) return false;
    if (bucket >= file.orders.size()) file.orders.resize(bucket + std::size_t{1});
    LedgerBytes& order = file.orders[bucket];
    order.insert(order.end(), payload.begin() + static_cast<std::ptrdiff_t>(at),
                 payload.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    at += bytes;
  }
  return true;
}

}  // namespace

LedgerWriter::LedgerWriter(std::string path, const LedgerHeader& header) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) throw EnvironmentError(fmt::format("{}: cannot be created: {}", path_, std::strerror(errno)));
  write(std::string(kMagic));
  std::string text;
  visit_header(header, [&](const char* name, const auto& value) { text += fmt::format("{} {}\n", name, value); });
  write_block(text);
}

LedgerWriter::~LedgerWriter() {
  try {
    flush();
  } catch (const std::exception&) {  // a caller who needs the error has called flush() before
  }
  ::close(file_);
}

void LedgerWriter::add(std::vector<LedgerBytes> orders) {
  orders_.resize(std::max(orders_.size(), orders.size()));
  for (std::size_t b = 0; b < orders.size(); ++b) {
    orders_[b].insert(orders_[b].end(), orders[b].begin(), orders[b].end());
    waiting_ += orders[b].size();
  }
  if (waiting_ >= kLedgerBlock) flush();
}

void LedgerWriter::met(std::uint32_t reasons) {
  meetings_.push_back(reasons);
  flush();
}

void LedgerWriter::flush() {
  if (waiting_ == 0 && meetings_.empty()) return;
  std::string payload;
  append_number(payload, static_cast<std::uint32_t>(meetings_.size()));
  for (const std::uint32_t reasons : meetings_) append_number(payload, reasons);
  for (std::size_t b = 0; b < orders_.size(); ++b) {
    if (orders_[b].empty()) continue;
    append_number(payload, static_cast<std::uint32_t>(b));
    append_number(payload, static_cast<std::uint32_t>(orders_[b].size()));
    payload.append(orders_[b].begin(), orders_[b].end());
    orders_[b].clear();
  }
  meetings_.clear();
  waiting_ = 0;
  write_block(payload);
}

void LedgerWriter::write_block(const std::string& payload) {
  checksum_ = checksum64(payload.data(), payload.size(), checksum_);
  std::string block;
  append_number(block, static_cast<std::uint32_t>(payload.size()));
  append_number(block, checksum_);
  write(block + payload);
}

void LedgerWriter::write(const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t wrote = write_some(file_, bytes.data() + at, bytes.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) throw EnvironmentError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
    at += static_cast<std::size_t>(wrote);
  }
  bytes_ += bytes.size();
}

LedgerFile read_ledger_file(const std::string& path) {
  Blocks blocks(path);
  LedgerFile file;
  file.header = blocks.header();
  while (const auto payload = blocks.next())
    if (!take_block(*payload, file)) throw DataError(fmt::format("{}: a whole block has an unknown form", path));
  file.lost_bytes = blocks.bytes_after_the_last();
  return file;
}

LedgerHeader read_ledger_header(const std::string& path) { return Blocks(path).header(); }

}  // namespace echelon::inline exchange

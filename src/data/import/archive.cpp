// SPDX-License-Identifier: Apache-2.0
#include "data/import/archive.hpp"
#include "data/import/file_stamp.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <locale.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string_view>

#include "base/error.hpp"
#include "data/import/image_input.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kBlock = 512;         // of a tar
constexpr unsigned kReadTogether = 1 << 14;  // small, because most of a plain archive is skipped
constexpr std::int64_t kMostAtOnce = 1 << 20;

// While it exists, this thread has a locale in UTF-8. In another one libarchive drops names of zips.
struct InUtf8 {
  static inline const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = uselocale(utf8);
  ~InUtf8() { uselocale(before); }
};

}  // namespace

struct ArchiveReader::Callbacks {
  template <typename Action>
  static std::int64_t guarded(void* reader, Action action) {
    auto& self = *static_cast<ArchiveReader*>(reader);
    try {
      return action(self, self.stream_);
    } catch (const std::exception& error) {
      self.trouble_ = error.what();
      return ARCHIVE_FATAL;
    }
  }

  static la_ssize_t read(archive*, void* reader, const void** bytes) {
    return guarded(reader, [&](ArchiveReader& self, ByteStream& stream) {
      auto& block = self.block_;
      const std::size_t got = stream.read_some(block.data(), block.size());
      const auto end = block.begin() + static_cast<std::ptrdiff_t>(got);
      *bytes = block.data();
      const auto is_zero = [](char c) { return c == '\0'; };
      if (got == 0 || got == block.size() || !self.is_tar_of_stream() || !std::all_of(block.begin(), end, is_zero))
        return static_cast<std::int64_t>(got);
      std::fill(end, block.end(), '\0');  // the zeros that end a tar need not fill a block
      return kBlock;
    });
  }

  static la_int64_t seek(archive*, void* reader, la_int64_t offset, int from) {
    return guarded(reader, [&](ArchiveReader& self, ByteStream& stream) -> std::int64_t {
      if (from != SEEK_SET) offset += from == SEEK_CUR ? stream.offset() : self.file_bytes_;
      if (offset < 0) return ARCHIVE_FATAL;
      stream.seek(offset);
      return offset;
    });
  }

  static la_int64_t skip(archive*, void* reader, la_int64_t bytes) {
    return guarded(reader, [&](ArchiveReader& self, ByteStream& stream) -> std::int64_t {
      if (!stream.plain()) return 0;
      const std::int64_t from = stream.offset();
      stream.seek(from + std::min<std::int64_t>(bytes, std::max<std::int64_t>(0, self.file_bytes_ - from)));
      return stream.offset() - from;
    });
  }
};

ArchiveReader::ArchiveReader(const std::string& path)
    : stream_(path, kReadTogether), file_bytes_(stamp_of(path).bytes), archive_(archive_read_new(), archive_read_free) {
  if (stream_.plain()) {
    const std::string_view start(block_.data(), stream_.read_some(block_.data(), 4));
    zip_ = start == "PK\3\4" || start == "PK\5\6";  // the second is an empty archive
    stream_.rewind();
  }
  archive* const a = archive_.get();
  archive_read_support_filter_bzip2(a);
  archive_read_support_filter_xz(a);
  archive_read_support_filter_zstd(a);
  if (zip_) {
    archive_read_support_format_zip_seekable(a);
    archive_read_set_seek_callback(a, Callbacks::seek);
  } else {
    archive_read_support_format_tar(a);
    archive_read_set_options(a, "read_concatenated_archives");
  }
  archive_read_set_callback_data(a, this);
  archive_read_set_read_callback(a, Callbacks::read);
  archive_read_set_skip_callback(a, Callbacks::skip);
  opened_ = archive_read_open1(a);
}

bool ArchiveReader::is_tar_of_stream() const { return !zip_ && archive_filter_count(archive_.get()) <= 1; }

std::int64_t ArchiveReader::at() const { return archive_filter_bytes(archive_.get(), 0); }

std::string ArchiveReader::reason() const {
  const char* text = archive_error_string(archive_.get());
  return text != nullptr ? text : "libarchive gives no reason";
}

void ArchiveReader::fail(std::int64_t at, const std::string& what) const {
  throw DataError(trouble_.empty() ? fmt::format("{}: byte {}: {}", stream_.path(), at, what) : trouble_);
}

void ArchiveReader::fail_in_last() const {
  const std::int64_t end = last_.offset + (last_.bytes + kBlock - 1) / kBlock * kBlock;
  if (!trouble_.empty())
    throw DataError(fmt::format("{}, in '{}', which begins at byte {}", trouble_, last_.name, last_.header));
  fail(last_.header, is_tar_of_stream()
                         ? fmt::format("'{}' reaches from byte {} to {}, but the archive ends at {}: it is truncated",
                                       last_.name, last_.offset, end, at())
                         : fmt::format("'{}' cannot be read beyond byte {}: {}", last_.name, at(), reason()));
}

bool ArchiveReader::next(ArchiveMember& member) {
  const InUtf8 here;
  archive* const a = archive_.get();
  if (opened_ != ARCHIVE_OK)
    fail(0, file_bytes_ == 0             ? "is empty, not a tar archive"
            : zip_                       ? "a zip archive without the list of members at its end: it is truncated"
            : archive_errno(a) == EILSEQ ? "is not a tar archive, and no zip"
                                         : "cannot be decompressed: " + reason());
  // A header may also claim more than the archive stores for the member.
  if (!whole_ && (archive_read_data_skip(a) != ARCHIVE_OK || (!zip_ && at() < last_.offset + last_.bytes)))
    fail_in_last();
  whole_ = true;
  const std::int64_t end = at();
  archive_entry* entry = nullptr;
  const int status = archive_read_next_header(a, &entry);
  if (status == ARCHIVE_EOF && (zip_ || at() > end)) return false;
  if (status == ARCHIVE_EOF)
    fail(end, "the archive ends without the blocks of zeros that end a tar archive: it is truncated");
  if (status == ARCHIVE_RETRY)
    fail(at() - kBlock, at() - kBlock > end
                            ? "the data after the end of the archive are not the header of a member"
                            : "not the header of a member, because its checksum is wrong; the archive is damaged");
  const std::int64_t left = stream_.offset() - at();
  if (status == ARCHIVE_FATAL && is_tar_of_stream() && left > 0 && left < kBlock)
    fail(at(), fmt::format("the archive ends in a header, after {} of {} bytes: it is truncated", left, kBlock));
  const bool not_utf8 = status == ARCHIVE_WARN && archive_errno(a) == EILSEQ;  // some name in the header
  const char* name = status == ARCHIVE_OK || not_utf8 ? archive_entry_pathname(entry) : nullptr;
  if (name == nullptr) fail(at(), reason());

  member = {.name = name, .header = at() - (zip_ ? 0 : kBlock), .offset = at()};
  member.is_file = archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr &&
                   archive_entry_sparse_count(entry) == 0 && !member.name.ends_with('/');
  if (member.is_file) member.bytes = archive_entry_size(entry);
  if (member.bytes < 0 || member.bytes >> 60 != 0)
    fail(member.header, fmt::format("'{}' claims to have {} bytes", member.name, member.bytes));
  last_ = member;
  whole_ = false;
  return true;
}

std::string ArchiveReader::content() {
  std::string text;
  for (std::int64_t all = 0, got = 1; got > 0 && all <= last_.bytes; all += got) {
    const std::int64_t most = std::min(kMostAtOnce, last_.bytes - all + 1);  // finds what is more than claimed
    text.resize(static_cast<std::size_t>(all + most));
    got = archive_read_data(archive_.get(), text.data() + all, static_cast<std::size_t>(most));
    if (got < 0) fail_in_last();
    text.resize(static_cast<std::size_t>(all + got));
  }
  if (static_cast<std::int64_t>(text.size()) != last_.bytes) fail_in_last();
  return text;
}

}  // namespace echelon::inline data

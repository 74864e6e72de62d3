// SPDX-License-Identifier: Apache-2.0
// Runs importers. An input is a byte, the number of a case below, and the file; gzip is recognised by its content.
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "data/dataset.hpp"
#include "data/import/image_import.hpp"
#include "data/import/sequence_writer.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/text_writer.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"

namespace echelon::fuzz {
namespace {

namespace fs = std::filesystem;

std::string zipped(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string idx_images() {
  std::string all = big_endian(0x803) + big_endian(5) + big_endian(3) + big_endian(4);
  for (int i = 0; i < 60; ++i) all += static_cast<char>(4 * i);
  return all;
}
std::string idx_labels() { return big_endian(0x801) + big_endian(5) + std::string("\0\1\2\1\0", 5); }

std::string npy_of(const std::string& descr, const std::string& shape, const std::string& values) {
  const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + values;
}
std::string npy_labels() { return npy_of("|i1", "(5,)", std::string("\0\1\2\1\0", 5)); }

std::string cifar(std::size_t label_bytes) {
  std::string all;
  for (int i = 0; i < 3; ++i) all += std::string(label_bytes, static_cast<char>(i)) + std::string(3072, 'x');
  return all;
}

std::string png() {  // 2 x 1, grey
  const auto part = [](const std::string& body) {
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return big_endian(static_cast<std::uint32_t>(body.size() - 4)) + body + big_endian(static_cast<std::uint32_t>(sum));
  };
  return "\x89PNG\r\n\x1a\n" + part("IHDR" + big_endian(2) + big_endian(1) + std::string("\x08\0\0\0\0", 5)) +
         part("IDAT" + std::string("\x78\x01\x01\3\0\xfc\xff\0\x10\x20\0\x43\0\x31", 14)) + part("IEND");
}

// `filter`: how it is compressed, or "".
std::string archive_of_images(const char* format, const char* filter) {
  std::string out(1 << 16, '\0');
  std::size_t used = 0;
  archive* const a = archive_write_new();
  archive_write_set_format_by_name(a, format);
  if (*filter != '\0') archive_write_add_filter_by_name(a, filter);
  archive_write_open_memory(a, out.data(), out.size(), &used);
  const std::string deep = std::string(120, 'd') + "/";
  for (const std::string& name : {std::string("1.png"), std::string("1.cls"), deep + "2.cls", deep + "2.png"}) {
    const std::string content = name.ends_with("png") ? png() : name.substr(name.size() - 5, 1);
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_write_header(a, entry);
    archive_write_data(a, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_free(a);
  out.resize(used);
  if (out.empty()) throw Defect(fmt::format("libarchive makes no {} with {}", format, filter));
  return out;
}

// Makes the checksums of a tar's headers right again, so that damage reaches what reads the other fields.
void mend_headers(std::string& tar) {
  for (std::size_t at = 0; at + 512 <= tar.size(); at += 512) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    std::memset(&tar[at + 148], ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(tar[i]);
    tar.replace(at + 148, 7, fmt::format("{:06o}", sum) + '\0');
  }
}

// One format: an undamaged input, and the importer, which writes into the folder `out`.
struct Case {
  std::string usual;
  bool text = false;
  std::string file;  // the input's file name
  std::function<void(const std::string& input, const ShardOptions& options)> import;
};

Case of_samples(std::string usual, const std::string& file, const ImportRequest& request) {
  return {std::move(usual), request.format == "csv", file, [request](const std::string& input, const ShardOptions& to) {
            ImportRequest with = request;
            for (std::string& path : with.inputs)
              if (path.empty()) path = input;
            write_shards(*open_source(with), to);
          }};
}
Case of_sequences(std::string usual, const std::string& file, const TextRequest& request) {
  return {std::move(usual), true, file, [request](const std::string& input, const ShardOptions& to) {
            TextRequest with = request;
            with.inputs = {input};
            if (with.format == "text" || with.format == "words")
              write_token_shards(with, to);
            else
              write_sequences(*open_sequences(with), to);
          }};
}

Case of_archive(const char* format, const char* filter, bool skip_damaged) {
  return {archive_of_images(format, filter), false, "a.tar",
          [skip_damaged](const std::string& input, const ShardOptions& to) {
            write_images({.format = "tar", .inputs = {input}, .height = 2, .width = 2, .skip_damaged = skip_damaged},
                         to);
          }};
}

class ImportTarget final : public Target {
 public:
  explicit ImportTarget(const Place& place) : folder_(place.folder) {
    write_plain(folder_ + "/images", idx_images());
    write_plain(folder_ + "/labels", idx_labels());
    write_plain(folder_ + "/labels.npy", npy_labels());
    write_plain(folder_ + "/samples.npy", npy_of("<f4", "(5, 2)", std::string(40, '\0')));
    const std::string table = "1,2,0\n3,4,1\n5,6,1\n", named = "x,y,class\n1,2,cat\n\"3\",4,dog\n";
    const std::string series = "#c\n@problemName x\n@classLabel true a b\n@data\n1,2,3:4,5,6:a\n1,2:3,4:b\n";
    const std::string prose = "A word, two words: \xc3\xa9 and <unk>.\n\nThe end of it.\n";
    cases_ = {
        of_samples(idx_images(), "idx", {.format = "idx", .inputs = {"", folder_ + "/labels"}}),
        of_samples(idx_labels(), "idx", {.format = "idx", .inputs = {folder_ + "/images", ""}}),
        of_samples(npy_of(">f2", "(5, 1, 2)", std::string(20, '\1')), "x.npy",
                   {.format = "npy", .inputs = {"", folder_ + "/labels.npy"}}),
        of_samples(npy_labels(), "y.npy", {.format = "npy", .inputs = {folder_ + "/samples.npy", ""}}),
        of_samples(cifar(1), "cifar", {.format = "cifar10", .inputs = {""}}),
        of_samples(cifar(2), "cifar", {.format = "cifar100", .inputs = {""}}),
        of_samples(table, "t.csv", {.format = "csv", .inputs = {""}, .shape = {1, 1, 2}}),
        of_samples(named, "t.csv", {.format = "csv", .inputs = {""}, .shape = {1, 1, 2}, .stored = DType::f32}),
        of_samples(table, "t.csv",
                   {.format = "csv", .inputs = {""}, .shape = {1, 1, 1}, .targets = 2, .stored = DType::f32}),
        of_sequences(series, "s.ts", {.format = "sequences"}),
        of_sequences("sequence,label,x,y\na,run,1,2\na,run,3,4\nb,sit,5,6\n", "s.csv", {.format = "sequences"}),
        of_sequences("a b c\td e\nb c\td\n", "pairs.txt", {.format = "pairs"}),
        of_sequences("ab\tcd\nb\td\n", "pairs.txt", {.format = "pairs", .tokens = "characters"}),
        of_sequences(prose, "t.txt", {.format = "text"}),
        of_sequences(prose, "t.txt", {.format = "text", .tokens = "bytes"}),
        of_sequences(prose, "t.txt", {.format = "words", .vocabulary = 5}),
        of_sequences(prose, "t.txt", {.format = "words", .tokens = "verbatim"}),
        {prose, true, "classes/a.txt",
         [this](const std::string&, const ShardOptions& to) {
           write_sequences(*open_sequences({.format = "sequences", .inputs = {folder_ + "/classes"}}), to);
         }},
        of_archive("pax", "", false),
        of_archive("gnutar", "", true),
        of_archive("ustar", "bzip2", true),
        of_archive("ustar", "xz", true),
        of_archive("ustar", "zstd", true),
        of_archive("zip", "", true),
        of_archive("zip", "", false),
    };
    fs::create_directories(folder_ + "/classes");
    write_plain(folder_ + "/classes/b.txt", "other words\nof b\n");
    for (const Case& one : cases_) (one.text ? texts_ : binaries_).push_back(one.usual);
  }

  std::string draw(Draws& draws) override {
    static const std::vector<std::string> kWords = {",",
                                                    "\"",
                                                    "\"\"",
                                                    "\t",
                                                    ":",
                                                    "@data",
                                                    "@classLabel true x\n",
                                                    "#",
                                                    "?",
                                                    "\r\n",
                                                    "\n\n",
                                                    "<unk>",
                                                    "<s>",
                                                    "</s>",
                                                    "na",
                                                    "1e999",
                                                    "-0",
                                                    "\xef\xbb\xbf",
                                                    "\xff",
                                                    std::string(1, '\0'),
                                                    "é"};
    const std::size_t which = draws.below(cases_.size());
    const Case& one = cases_[which];
    std::string file = draws.chance(0.1) ? one.usual
                       : one.text        ? mutate_text(one.usual, texts_, kWords, draws)
                                         : mutate_bytes(one.usual, binaries_, draws);
    if (draws.chance(0.7)) mend_headers(file);
    if (draws.chance(0.2)) {
      file = zipped(file);
      if (draws.chance(0.7)) file = mutate_bytes(file, {}, draws);
    }
    return static_cast<char>(which) + file;
  }

  bool take(const std::string& input) override {
    if (input.empty()) return false;
    const Case& one = cases_[static_cast<unsigned char>(input[0]) % cases_.size()];
    const std::string path = folder_ + "/" + one.file, out = folder_ + "/out";
    write_plain(path, input.substr(1));
    fs::remove_all(out);
    const bool accepted = refused_with({kExitConfig, kExitData}, [&] { one.import(path, {.out = out}); });
    fs::remove(path);
    if (accepted)
      open_dataset(out, one.usual.starts_with("A word") ? 1 : 0);
    else if (fs::exists(out))
      throw Defect("bad input left files behind");
    return accepted;
  }

 private:
  std::string folder_;
  std::vector<Case> cases_;
  std::vector<std::string> texts_, binaries_;
};

}  // namespace

std::unique_ptr<Target> make_import(const Place& place) { return std::make_unique<ImportTarget>(place); }

}  // namespace echelon::fuzz

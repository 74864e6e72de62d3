// SPDX-License-Identifier: Apache-2.0
// Tar archives of images: every kind of tar can be read, and errors name the place.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "data/import/archive.hpp"
#include "tests/support/process.hpp"
#include "tests/support/python.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/data/image_sets.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::import_images;
using test::Labelled;
namespace fs = std::filesystem;
using Members = std::vector<std::pair<std::string, std::string>>;

void put_gzip(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

// Makes samples first .. first + count - 1 with other members between them, in the order of WebDataset; adds their
// labels (i * i mod 7) and files to `all`.
Members members_of(int first, int count, std::vector<std::pair<int, std::string>>& all) {
  Members members;
  for (int i = first; i < first + count; ++i) {
    const std::string key = "part/" + std::to_string(i), file = test::any_image(i, "member " + std::to_string(i));
    const int label = i * i % 7;
    if (i % 3 == 0) members.emplace_back(key + ".cls", std::to_string(label) + "\n");
    members.emplace_back(key + (i % 2 == 0 ? ".png" : ".JPG"), file);
    members.emplace_back(key + ".seg.png", "another picture");
    if (i % 3 != 0) members.emplace_back(key + ".cls", std::to_string(label));
    members.emplace_back(key + ".json", "{}");
    all.emplace_back(label, file);
  }
  return members;
}

std::vector<Labelled> wanted_of(const std::vector<std::pair<int, std::string>>& all) {
  std::vector<Labelled> wanted;
  for (const auto& [label, file] : all) wanted.emplace_back(label, test::fitted(file, 3, 8, 6));
  return wanted;
}

ImageRequest of_archives(const std::vector<std::string>& paths) {
  return {.format = "tar", .inputs = paths, .height = 8, .width = 6};
}

TEST_CASE("archives become shards in their order, plain and gzipped, bit for bit the same on 1 to 4 ranks",
          "[data][import][image]") {
  const Folder folder;
  std::vector<std::pair<int, std::string>> all;
  std::vector<std::string> paths;
  const bool gzip = GENERATE(false, true);
  for (const int count : {5, 17, 1, 8}) {
    paths.push_back(folder / (std::to_string(paths.size()) + ".tar"));
    const std::string tar = test::tar_file(members_of(static_cast<int>(all.size()), count, all));
    gzip ? put_gzip(paths.back(), tar) : test::put_file(paths.back(), tar);
  }
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const std::string out = folder / ("out" + std::to_string(ranks));
    const ImportWritten written =
        import_images(of_archives(paths), {.out = out, .samples_per_shard = 6, .keep_order = true}, ranks);
    CHECK(written.shards.samples == 31);
    CHECK(written.shards.classes == 5);  // the squares modulo 7 are 0, 1, 2 and 4
    if (ranks > 1) CHECK((test::tree_of(out) == test::tree_of(folder / "out1")));
  }
  CHECK((test::samples_of(folder / "out1") == wanted_of(all)));
}

TEST_CASE("names of classes in .txt number the classes, over all archives", "[data][import][image]") {
  const Folder folder;
  const auto file = [](int i) { return test::any_image(i, "named " + std::to_string(i)); };
  test::put_file(folder / "a.tar", test::tar_file({{"README.txt", "about"},
                                                   {"1.png", file(0)},
                                                   {"1.txt", "zebra\n"},
                                                   {"2.txt", " blue whale \r\nmore"},
                                                   {"2.png", file(2)}}));
  test::put_file(folder / "b.tar", test::tar_file({{"3.png", file(4)}, {"3.txt", "ape"}}));
  import_images(of_archives({folder / "a.tar", folder / "b.tar"}), {.out = folder / "out", .keep_order = true}, 2);
  CHECK(open_dataset(folder / "out").class_names == std::vector<std::string>{"ape", "blue whale", "zebra"});
  CHECK((test::samples_of(folder / "out") == wanted_of({{2, file(0)}, {1, file(2)}, {0, file(4)}})));
  test::put_file(folder / "c.tar", test::tar_file({{"4.png", file(6)}, {"4.cls", "1"}}));
  CHECK_THROWS_WITH(import_images(of_archives({folder / "a.tar", folder / "c.tar"}), {.out = folder / "other"}, 2),
                    Contains("a.tar: '1.png' at byte 1536 has names as labels") &&
                        Contains("c.tar: '4.png' at byte 512 has numbers"));
}

TEST_CASE("every kind of tar is read: ustar, GNU's and pax with long names, links and holes passed over",
          "[data][import][image]") {
  const Folder folder;
  const std::string format = GENERATE("ustar", "gnu", "pax", "v7");
  const std::string deep = format == "v7" ? "d" : std::string(90, 'd') + "/" + std::string(50, 'e');
  const std::string name = format == "ustar" || format == "v7" ? "f" : std::string(200, 'f');
  test::put_file(folder / ("in/" + deep + "/" + name), "content of the file");
  test::put_file(folder / ("in/" + deep + "/empty"), "");
  test::put_file(folder / "in/z", std::string(5000, 'z'));
  fs::create_symlink("z", folder / "in/y");
  fs::create_hard_link(folder / "in/z", folder / "in/zz");
  test::put_file(folder / "in/holes", "x");
  fs::resize_file(folder / "in/holes", 1 << 20);
  std::vector<std::string> command = {
      "tar", "--format=" + format, "--sort=name", "-cf", folder / "a.tar", "-C", folder / "in", deep, "y", "z", "zz"};
  if (format == "gnu" || format == "pax") command.insert(command.end(), {"--sparse", "holes"});
  const test::Outcome made = test::run_process({.argv = command, .cwd = "", .env = {}});
  INFO(made.err);
  REQUIRE(made.code == 0);
  ArchiveReader archive(folder / "a.tar");
  std::map<std::string, std::string> found;
  for (ArchiveMember member; archive.next(member);)
    if (member.is_file) found[member.name] = archive.content();
  CHECK(found == std::map<std::string, std::string>{
                     {deep + "/" + name, "content of the file"}, {deep + "/empty", ""}, {"z", std::string(5000, 'z')}});
}

TEST_CASE("what is wrong in an archive is named with archive, member and byte, or left out", "[data][import][image]") {
  const Folder folder;
  std::vector<std::pair<int, std::string>> all;
  const Members good = members_of(0, 6, all);
  const std::string path = folder / "a.tar";
  const bool gzip = GENERATE(false, true);
  const ShardOptions options{.out = folder / "out"};
  // Tests the error for this content, the samples left when damage is skipped, and the number of listed lines.
  const auto wrong = [&](const std::string& tar, std::int64_t left, std::size_t listed) {
    gzip ? put_gzip(path, tar) : test::put_file(path, tar);
    ImageRequest request = of_archives({path});
    const std::string text = test::refusal<CommonError>([&] { import_images(request, options, 2); });
    CHECK_FALSE(fs::exists(options.out));
    request.skip_damaged = true;
    const ImportWritten written = import_images(request, options, 2);
    CHECK(written.shards.samples == left);
    CHECK(written.damaged.size() == listed);
    if (!written.damaged.empty()) CHECK_THAT(text, Contains(written.damaged[0]));
    fs::remove_all(options.out);
    fs::remove_all(options.out + ".importing");
    return text;
  };
  const auto with = [&](std::size_t at, const std::pair<std::string, std::string>& member) {
    Members changed = good;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(at), member);
    return test::tar_file(changed);
  };
  const auto without = [&](std::size_t at) {
    Members changed = good;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
    return test::tar_file(changed);
  };
  const std::string whole = test::tar_file(good);
  const std::size_t last = whole.find("part/5.JPG"), second = whole.find("part/1.JPG");

  CHECK_THAT(wrong(whole.substr(0, last + 700), 5, 1),
             Contains(fmt::format("a.tar: byte {}: 'part/5.JPG' reaches from byte {}", last, last + 512)) &&
                 Contains(fmt::format("but the archive ends at {}: it is truncated", last + 700)));
  CHECK_THAT(wrong(whole.substr(0, last + 100), 5, 1),
             Contains(fmt::format("byte {}: the archive ends in a header, after 100 of 512", last)));
  CHECK_THAT(wrong(whole.substr(0, whole.size() - 1024), 6, 1), Contains("ends without the blocks of zeros"));
  CHECK_THAT(wrong(without(6), 5, 1), Contains("'part/1.JPG' has no label 'part/1.cls' beside it"));
  CHECK_THAT(wrong(without(4), 5, 1), Contains("'part/1.cls' has no image 'part/1.jpg', .jpeg or .png beside it"));
  CHECK_THAT(wrong(with(5, {"part/1.png", "x"}), 5, 1), Contains("'part/1.png' is a second image beside 'part/1.JPG'"));
  CHECK_THAT(wrong(with(5, {"part/7.cls", "seven"}), 5, 3), Contains("has no label"));
  Members changed = good;
  changed[6].second = "-3";
  CHECK_THAT(wrong(test::tar_file(changed), 5, 1), Contains("'part/1.cls' holds '-3', which is not a class number"));
  changed = good;
  changed[4].second.resize(changed[4].second.size() / 2);
  CHECK_THAT(wrong(test::tar_file(changed), 5, 1),
             Contains(fmt::format("a.tar: 'part/1.JPG' at byte {}: is damaged", second + 512)));
  std::string flipped = whole;
  flipped[last] = 'q';
  CHECK_THAT(wrong(flipped, 5, 1), Contains(fmt::format("byte {}: not the header of a member", last)));
  if (!gzip) return;
  put_gzip(path, whole);
  fs::resize_file(path, fs::file_size(path) - 100);
  CHECK_THROWS_WITH(import_images(of_archives({path}), options), Contains("a.tar: cannot be inflated beyond byte"));
}

// Python's modules and zstd make archives of what a tar holds; the ending of `path` says which.
void convert(const std::string& tar, const std::string& path) {
  const test::Outcome made =
      path.ends_with("zst")
          ? test::run_process({.argv = {"zstd", "-q", "--check", tar, "-o", path}, .cwd = "", .env = {}})
          : test::python({"-c", R"(
import bz2, lzma, sys, tarfile, zipfile
tar, path = sys.argv[1:]
if path.endswith("zip"):
    with tarfile.open(tar) as members, zipfile.ZipFile(path, "w") as archive:
        archive.writestr("part/", "")
        for member in members:
            kind = zipfile.ZIP_STORED if member.name.endswith("cls") else zipfile.ZIP_DEFLATED
            archive.writestr(member.name, members.extractfile(member).read(), kind)
else:
    compress = {"bz2": bz2, "xz": lzma}[path.rsplit(".", 1)[1]].compress
    open(path, "wb").write(compress(open(tar, "rb").read()))
)",
                          tar, path});
  INFO(made.err);
  REQUIRE(made.code == 0);
}

TEST_CASE("tars compressed by bzip2, xz and zstd, and zips, become the shards of a gzipped tar",
          "[data][import][image]") {
  const Folder folder;
  const std::string ending = GENERATE("bz2", "xz", "zst", "zip");
  std::vector<std::pair<int, std::string>> all;
  std::vector<std::string> paths;
  for (const int count : {9, 14}) {
    const std::string tar = folder / (std::to_string(paths.size()) + ".tar");
    test::put_file(tar, test::tar_file(members_of(static_cast<int>(all.size()), count, all)));
    paths.push_back(tar + "." + ending);
    convert(tar, paths.back());
  }
  for (int ranks = 1; ranks <= 3; ++ranks) {
    const std::string out = folder / ("out" + std::to_string(ranks));
    const ImportWritten written = import_images(of_archives(paths), {.out = out, .samples_per_shard = 4}, ranks);
    CHECK(passed_over_text(written.passed).find("23 .json files") != std::string::npos);
    CHECK((test::samples_of(out) == wanted_of(all)));
    if (ranks > 1) CHECK((test::tree_of(out) == test::tree_of(folder / "out1")));
  }
  test::put_file(folder / "plain.tar", test::tar_file(members_of(23, 2, all)));
  paths.push_back(folder / "plain.tar");
  import_images(of_archives(paths), {.out = folder / "mixed"}, 2);
  CHECK((test::samples_of(folder / "mixed") == wanted_of(all)));
}

TEST_CASE("names beyond ASCII are kept in a tar and in a zip", "[data][import][image]") {
  const Folder folder;
  test::put_file(folder / "image", test::any_image(0, "named"));
  const test::Outcome made = test::python({"-c", R"(
import sys, tarfile, zipfile
with tarfile.open("a.tar", "w", format=tarfile.PAX_FORMAT) as tar, zipfile.ZipFile("a.zip", "w") as archive:
    for name in "\u00e9.png", "\u00e9.txt", "\u4e2d.txt", "\u4e2d.png":
        file = "image" if name.endswith("png") else "label"
        if file == "label": open(file, "w", encoding="utf-8").write(name[0])
        tar.add(file, name)
        archive.write(file, name)
)"},
                                          folder.path());
  INFO(made.err);
  REQUIRE(made.code == 0);
  for (const std::string name : {"a.tar", "a.zip"}) {
    import_images(of_archives({folder / name}), {.out = folder / ("of " + name)});
    CHECK(open_dataset(folder / ("of " + name)).class_names == std::vector<std::string>{"\xc3\xa9", "\xe4\xb8\xad"});
  }
}

TEST_CASE("damage in compressed archives and in zips is found", "[data][import][image]") {
  const Folder folder;
  std::vector<std::pair<int, std::string>> all;
  const std::string tar = test::tar_file(members_of(0, 6, all));
  test::put_file(folder / "a.tar", tar);
  const auto refused = [&](const std::string& path) {
    return test::refusal<CommonError>([&] { import_images(of_archives({path}), {.out = folder / "out"}); });
  };
  const auto flip = [](const std::string& path, std::size_t at) {
    std::string content = test::file_content(path);
    content[at] = static_cast<char>(content[at] ^ 1);
    test::put_file(path, content);
  };
  for (const char* ending : {"bz2", "xz", "zst", "zip"}) {
    const std::string path = folder / "a." + ending;
    convert(folder / "a.tar", path);
    const std::string whole = test::file_content(path);
    for (const std::size_t part : {3, 5, 7}) {
      test::put_file(path, whole.substr(0, whole.size() * part / 8));
      CHECK_THAT(refused(path), Contains(path + ": byte "));
    }
    test::put_file(path, whole);
    flip(path, whole.starts_with("PK") ? whole.find("part/3.JPG") + 150 : whole.size() / 2);
    CHECK_THAT(refused(path), Contains(path + ": byte ") && !Contains("not a tar"));
  }
  ImageRequest request = of_archives({folder / "a.zip"});
  request.skip_damaged = true;
  const ImportWritten written = import_images(request, {.out = folder / "without"});
  CHECK(written.shards.samples == 5);
  CHECK(written.damaged.size() == 1);
  put_gzip(folder / "a.gz", tar);
  flip(folder / "a.gz", fs::file_size(folder / "a.gz") - 5);  // of the checksum
  CHECK_THAT(refused(folder / "a.gz"), Contains("a.gz: cannot be inflated beyond byte"));
}

TEST_CASE("sizes that an archive does not have are refused before memory is taken", "[data][import][image]") {
  const Folder folder;
  const std::string which = GENERATE("size", "GNU.sparse.realsize", "SCHILY.realsize");
  const test::Outcome made = test::python({"-c", R"(
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w", format=tarfile.PAX_FORMAT) as archive:
    for name in "1.cls", "1.png", "2.cls":
        member = tarfile.TarInfo(name)
        member.size = 1
        if name == "1.png": member.pax_headers = {sys.argv[2]: str(2**59)}
        archive.addfile(member, io.BytesIO(b"1"))
)",
                                           folder / "a.tar", which});
  INFO(made.err << which);
  REQUIRE(made.code == 0);
  put_gzip(folder / "b.tar", test::file_content(folder / "a.tar"));
  for (const char* name : {"a.tar", "b.tar"})
    CHECK_THROWS_WITH(import_images(of_archives({folder / name}), {.out = folder / "out"}),
                      Contains(std::string(name) + ": byte 2048: '1.png' reaches from byte 2560 to 576460752303"));
}

TEST_CASE("files that are no archives of images are refused", "[data][import][image]") {
  const Folder folder;
  const auto refused = [&](const std::string& content) {
    test::put_file(folder / "a.tar", content);
    return test::refusal<CommonError>([&] { import_images(of_archives({folder / "a.tar"}), {.out = folder / "out"}); });
  };
  CHECK_THAT(refused(""), Contains("a.tar: byte 0: is empty, not a tar archive"));
  CHECK_THAT(refused(std::string(2000, 'x')), Contains("byte 0: is not a tar archive"));
  CHECK_THAT(refused(test::tar_file({{"a.txt", "text"}})), Contains("a.tar: holds no image with a label"));
  CHECK_THROWS_WITH(import_images(of_archives({folder / "none.tar"}), {.out = folder / "out"}),
                    Contains("none.tar: cannot be read: No such file"));
  CHECK_THROWS_WITH(import_images(of_archives({}), {.out = folder / "out"}),
                    Contains("tar takes one or more archives"));
  CHECK(folder.files() == std::vector<std::string>{"a.tar"});
}

}  // namespace
}  // namespace echelon

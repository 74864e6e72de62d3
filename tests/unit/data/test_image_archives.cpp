// SPDX-License-Identifier: Apache-2.0
// Tar archives of images: every kind of tar can be read, and errors name the place.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "data/import/tar.hpp"
#include "tests/support/process.hpp"
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
    const ImagesWritten written =
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

TEST_CASE("every kind of tar is read: ustar, GNU's and pax with long names, links passed over",
          "[data][import][image]") {
  const Folder folder;
  const std::string format = GENERATE("ustar", "gnu", "pax", "v7");
  const std::string deep = format == "v7" ? "d" : std::string(90, 'd') + "/" + std::string(50, 'e');
  const std::string name = format == "ustar" || format == "v7" ? "f" : std::string(200, 'f');
  test::put_file(folder / ("in/" + deep + "/" + name), "content of the file");
  test::put_file(folder / ("in/" + deep + "/empty"), "");
  test::put_file(folder / "in/z", std::string(5000, 'z'));
  fs::create_symlink("z", folder / "in/y");
  const test::Outcome made = test::run_process({.argv = {"tar", "--format=" + format, "--sort=name", "-cf",
                                                         folder / "a.tar", "-C", folder / "in", deep, "y", "z"},
                                                .cwd = "",
                                                .env = {}});
  INFO(made.err);
  REQUIRE(made.code == 0);
  TarReader tar(folder / "a.tar");
  std::map<std::string, std::string> found;
  for (TarMember member; tar.next(member);)
    if (member.is_file) found[member.name] = tar.content(member);
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
    const ImagesWritten written = import_images(request, options, 2);
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

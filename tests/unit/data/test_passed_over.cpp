// SPDX-License-Identifier: Apache-2.0
// No input is left out silently: skipped files are counted by kind, and unsuitable folders are refused.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.hpp"
#include "data/import/sequence_source.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/data/image_sets.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::import_images;
using test::put_file;
namespace fs = std::filesystem;

std::string image(int i) { return test::any_image(2 * i, "image " + std::to_string(i)); }  // PNG

ImageRequest of(const std::string& root, bool skip_damaged = false, bool as_they_are = false) {
  return {.format = "images",
          .inputs = {root},
          .height = 4,
          .width = 4,
          .skip_damaged = skip_damaged,
          .labels_as_they_are = as_they_are};
}

std::string refused(const ImageRequest& request, const std::string& out) {
  return test::refusal<CommonError>([&] { import_images(request, {.out = out}, 2); });
}

}  // namespace

TEST_CASE("what an import of images passes over is counted and named, the same on any number of ranks",
          "[data][import][image]") {
  const Folder folder;
  const std::string in = folder / "in";
  for (int i = 0; i < 3; ++i) {
    put_file(in + "/cat/" + std::to_string(i) + ".PNG", image(i));
    put_file(in + "/dog/deep/" + std::to_string(i) + ".png", image(i));
    put_file(in + "/cat/" + std::to_string(i) + ".webp", "a photo");
    put_file(in + "/dog/.thumbs/" + std::to_string(i) + ".png", image(i));
  }
  put_file(in + "/loose.jpg", image(7));
  put_file(in + "/.DS_Store", "x");
  put_file(in + "/dog/readme", "x");
  put_file(folder / "elsewhere/9.png", image(9));
  fs::create_directory_symlink(folder / "elsewhere", in + "/cat/linked");
  for (const int ranks : {1, 3}) {
    const ImportWritten written = import_images(of(in), {.out = folder / ("out" + std::to_string(ranks))}, ranks);
    CHECK(written.shards.samples == 7);  // includes the linked one
    const std::string text = passed_over_text(written.passed);
    CHECK_THAT(text, Contains("3 .webp images, the first " + in + "/cat/0.webp"));
    CHECK_THAT(text, Contains("1 image beside the folders of classes, " + in + "/loose.jpg"));
    CHECK_THAT(text, Contains("1 hidden file, " + in + "/.DS_Store"));
    CHECK_THAT(text, Contains("1 hidden folder, " + in + "/dog/.thumbs"));
    CHECK_THAT(text, Contains("1 file without an ending, " + in + "/dog/readme"));
  }
  put_file(folder / "webp/cat/1.png", image(1));
  put_file(folder / "webp/dog/1.webp", "a photo");
  CHECK_THAT(refused(of(folder / "webp"), folder / "none"),
             Contains("webp/dog: holds no .jpg, .jpeg or .png file, but 1 .webp image"));
}

TEST_CASE("folders that are the parts of a set, or one level too high, are no classes unless that is asked for",
          "[data][import][image]") {
  const Folder folder;
  for (const char* file : {"parts/Train/cat/1.png", "parts/val/cat/1.png", "one/data/cat/1.png", "one/data/dog/1.png",
                           "cars/train/1.png", "cars/bus/1.png"})
    put_file(folder / file, image(1));
  CHECK_THAT(refused(of(folder / "parts"), folder / "none"),
             Contains("parts: the classes would be Train, val") && Contains("--labels-as-they-are"));
  CHECK(import_images(of(folder / "parts", false, true), {.out = folder / "a"}).shards.classes == 2);
  CHECK_THAT(refused(of(folder / "one"), folder / "none"), Contains("did you mean " + folder / "one/data?"));
  CHECK(import_images(of(folder / "one", false, true), {.out = folder / "b"}).shards.classes == 1);
  CHECK(import_images(of(folder / "cars"), {.out = folder / "c"}).shards.classes == 2);  // one is a vehicle
}

TEST_CASE("links without an end, to devices and to nothing are named, or left out and their class kept",
          "[data][import][image]") {
  const Folder folder;
  put_file(folder / "loop/cat/1.png", image(1));
  fs::create_directory_symlink("..", folder / "loop/cat/up");
  CHECK_THAT(refused(of(folder / "loop"), folder / "none"), Contains("is a link to a folder that holds it"));
  put_file(folder / "odd/cat/1.png", image(1));
  fs::create_directories(folder / "odd/dog");
  fs::create_symlink("/dev/null", folder / "odd/dog/device.png");
  fs::create_symlink("gone", folder / "odd/dog/broken.png");
  CHECK_THAT(refused(of(folder / "odd"), folder / "none"), Contains("broken.png: cannot be read: No such file"));
  const ImportWritten written = import_images(of(folder / "odd", true), {.out = folder / "out"});
  CHECK(written.damaged.size() == 2);
  CHECK(written.shards.classes == 2);
  CHECK(written.shards.empty_classes == "1 of 2 classes has no sample: 1 (dog)");
}

TEST_CASE("archives that were concatenated are read to the end of the last", "[data][import][image]") {
  const Folder folder;
  const auto member = [](int i) {
    return test::tar_file({{std::to_string(i) + ".png", image(i)},
                           {std::to_string(i) + ".cls", std::to_string(i)},
                           {std::to_string(i) + ".json", "{}"}});
  };
  const auto import = [&](const std::string& tar) {
    put_file(folder / "a.tar", tar);
    fs::remove_all(folder / "out");
    return import_images({.format = "tar", .inputs = {folder / "a.tar"}, .height = 4, .width = 4},
                         {.out = folder / "out"});
  };
  CHECK(import(member(0) + member(1) + member(2)).shards.samples == 3);
  const ImportWritten written = import(member(0) + std::string(10240, '\0') + member(2) + std::string(700, '\0'));
  CHECK(written.shards.samples == 2);
  CHECK_THAT(passed_over_text(written.passed), Contains("2 .json files, the first " + folder / "a.tar: 0.json"));
  CHECK(written.shards.empty_classes == "1 of 3 classes has no sample: 1");
  CHECK_THROWS_WITH(import(member(0) + std::string(600, 'x')),
                    Contains("the data after the end of the archive are not the header of a member"));
}

TEST_CASE("a folder of lines takes .txt in any case, and tells what else is there", "[data][import][sequences]") {
  const Folder folder;
  for (const char* name : {"a.txt", "B.TXT", "notes.md", ".x.txt"}) put_file(folder / name, "ab\nba\n");
  const auto source = open_sequences({.format = "sequences", .inputs = {folder.path()}});
  CHECK(source->info().class_names == std::vector<std::string>{"B", "a"});
  CHECK_THAT(passed_over_text(source->info().passed), Contains("1 .md file") && Contains("1 hidden file"));
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Folders of images become shards, the same on any number of ranks; an import that ended early is resumed.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "tests/unit/data/image_sets.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::import_images;
using test::Labelled;
using test::tree_of;
namespace fs = std::filesystem;

const std::vector<std::string> kClasses = {"apple", "pear", "zebra"};

std::string path_of(int i) {
  const std::string ending = i % 2 == 0 ? ".png" : i % 4 == 1 ? ".jpg" : ".JPEG";
  return kClasses[static_cast<std::size_t>(i % 3)] + (i % 5 == 0 ? "/more/" : "/") + std::to_string(i) + ending;
}

// Writes image i of class i mod 3 anywhere below its class's folder, among other files.
std::vector<std::pair<int, std::string>> write_folder(const std::string& root, int images) {
  std::vector<std::pair<int, std::string>> all;
  for (int i = 0; i < images; ++i) {
    const std::string file = test::any_image(i, "image " + std::to_string(i));
    test::put_file(root + "/" + path_of(i), file);
    all.emplace_back(i % 3, file);
  }
  test::put_file(root + "/apple/notes.txt", "not an image");
  test::put_file(root + "/apple/.hidden.png", "not an image");
  test::put_file(root + "/.cache/1.png", "not an image");
  return all;
}

ImageRequest of_folder(const std::string& root) {
  return {.format = "images", .inputs = {root}, .height = 9, .width = 11};
}

std::string refused(const ImageRequest& request, const ShardOptions& options, int ranks = 1) {
  try {
    import_images(request, options, ranks);
  } catch (const Error& error) {
    return fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
  }
  return "";
}

TEST_CASE("a folder of images becomes shards, bit for bit the same on 1 to 4 ranks", "[data][import][image]") {
  const Folder folder;
  const int channels = GENERATE(1, 3);
  const auto all = write_folder(folder / "in", 47);
  ImageRequest request = of_folder(folder / "in");
  request.channels = channels;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const ShardOptions options{.out = folder / ("out" + std::to_string(ranks)),
                               .samples_per_shard = 9,
                               .chunk = 64,
                               .compress = channels == 1 ? 3 : 0,
                               .hold_out = 8};
    const ImportWritten written = import_images(request, options, ranks);
    CHECK(written.shards.samples == 39);
    CHECK(written.shards.held_out == 8);
    CHECK(written.shards.files.size() == 6);
    CHECK(written.kept == 0);
    if (ranks > 1) CHECK((tree_of(options.out) == tree_of(folder / "out1")));
  }
  CHECK(folder.files() == std::vector<std::string>{"in", "out1", "out2", "out3", "out4"});

  std::vector<Labelled> wanted;
  for (const auto& [label, file] : all) wanted.emplace_back(label, test::fitted(file, channels, 9, 11));
  const std::vector<Labelled> train = test::samples_of(folder / "out1/train");
  std::vector<Labelled> found = train, held = test::samples_of(folder / "out1/test");
  for (int c = 0; c < 3; ++c)  // each class has its share
    CHECK(std::count_if(held.begin(), held.end(), [&](const Labelled& sample) { return sample.first == c; }) >= 2);
  CHECK_FALSE(std::is_sorted(train.begin(), train.end(),
                             [](const Labelled& a, const Labelled& b) { return a.first < b.first; }));
  found.insert(found.end(), held.begin(), held.end());
  std::sort(found.begin(), found.end());
  std::sort(wanted.begin(), wanted.end());
  CHECK((found == wanted));

  const Dataset set = open_dataset(folder / "out1/train");
  CHECK(set.class_names == kClasses);
  CHECK(set.sample_shape == Shape{channels, 9, 11});
  CHECK(set.shards[0].checksums);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    double sum = 0, squares = 0, n = 0;
    for (const Labelled& sample : train)
      for (std::size_t i = 0; i < 99; ++i) {
        const double value = sample.second[c * 99 + i] / 255.0;
        sum += value, squares += value * value, ++n;
      }
    CHECK(set.mean[c] == Approx(sum / n).epsilon(1e-12));
    CHECK(set.std[c] == Approx(std::sqrt(squares / n - sum / n * sum / n)).epsilon(1e-9));
  }
}

TEST_CASE("images of one size need no --size, others do; a set like another takes its classes",
          "[data][import][image]") {
  const Folder folder;
  const auto png = [](int width, int height) {
    return test::png_file(width, height, {}, test::soft_pixels(width, height, 3, "one size"));
  };
  for (int i = 0; i < 6; ++i)
    test::put_file(folder / ("in/" + kClasses[static_cast<std::size_t>(i % 3)] + "/" + std::to_string(i) + ".png"),
                   png(7, 5));
  ImageRequest request{.format = "images", .inputs = {folder / "in"}};
  CHECK(import_images(request, {.out = folder / "out"}, 2).shards.sample_shape == Shape{3, 5, 7});
  for (const Labelled& sample : test::samples_of(folder / "out"))
    CHECK((sample.second == test::fitted(png(7, 5), 3, 5, 7)));

  test::put_file(folder / "test/zebra/1.png", png(14, 11));
  const ImageRequest like{.format = "images", .inputs = {folder / "test"}, .like = folder / "out"};
  CHECK(import_images(like, {.out = folder / "like"}).shards.sample_shape == Shape{3, 5, 7});
  CHECK(open_dataset(folder / "like").mean == open_dataset(folder / "out").mean);
  CHECK((test::samples_of(folder / "like")[0].first == 2));
  test::put_file(folder / "test/ape/1.png", png(14, 11));
  CHECK_THAT(refused(like, {.out = folder / "other"}), Contains("4: unknown class 'ape'"));

  test::put_file(folder / "in/zebra/9.png", png(7, 6));
  const std::string text = refused(request, {.out = folder / "other"}, 2);
  CHECK_THAT(text,
             Contains("in/zebra/9.png: has 6 x 7 pixels (height x width), but the first image has 5 x 7; --size"));
  CHECK(folder.files() == std::vector<std::string>{"in", "like", "out", "test"});  // no shard was complete
}

TEST_CASE("folders that hold no classes, no images or nothing are refused", "[data][import][image]") {
  const Folder folder;
  const ShardOptions options{.out = folder / "out"};
  const auto request = [&](const std::string& name) { return of_folder(folder / name); };
  CHECK_THAT(refused(request("none"), options), Contains("4: ") && Contains("No such file"));
  test::put_file(folder / "flat/1.png", "x");
  CHECK_THAT(refused(request("flat"), options), Contains("holds no folder") && Contains("not sorted into classes"));
  test::put_file(folder / "empty/pear/readme", "x");
  CHECK_THAT(refused(request("empty"), options), Contains("empty/pear: holds no .jpg, .jpeg or .png file"));
  CHECK_THAT(refused({.format = "images", .inputs = {"a", "b"}}, options), Contains("2: images takes one folder"));
  CHECK_FALSE(fs::exists(folder / "out"));
}

TEST_CASE("damaged images end an import with their names, or are left out, counted and listed",
          "[data][import][image]") {
  const Folder folder;
  const auto all = write_folder(folder / "in", 40);
  const int ranks = GENERATE(1, 3);
  const std::string bad = folder / "in/pear/4.png", odd = folder / "in/zebra/odd.jpg";
  fs::resize_file(bad, fs::file_size(bad) - 20);
  ImageRequest request = of_folder(folder / "in");
  const ShardOptions options{.out = folder / "out", .samples_per_shard = 7};
  CHECK_THAT(refused(request, options, ranks), Contains("4: ") && Contains("in/pear/4.png: is damaged or not a PNG"));
  CHECK_FALSE(fs::exists(folder / "out"));
  test::put_file(odd, "GIF89a");
  request.skip_damaged = true;
  const ImportWritten written = import_images(request, options, ranks);
  CHECK(written.shards.samples == 39);
  REQUIRE(written.damaged.size() == 2);
  const std::string list = test::file_content(folder / "out/left_out.txt");
  CHECK_THAT(list, Contains("in/pear/4.png: is damaged or not a PNG") && Contains("odd.jpg: is neither JPEG nor PNG"));
  std::vector<Labelled> wanted, found = test::samples_of(folder / "out");
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i != 4) wanted.emplace_back(all[i].first, test::fitted(all[i].second, 3, 9, 11));
  std::sort(found.begin(), found.end());
  std::sort(wanted.begin(), wanted.end());
  CHECK((found == wanted));
  import_images(request, {.out = folder / "again", .samples_per_shard = 7}, 4 - ranks);
  CHECK((tree_of(folder / "again") == tree_of(folder / "out")));
}

TEST_CASE("an import that ended early keeps the shards that are whole and of the same images and options",
          "[data][import][image]") {
  const Folder folder;
  const auto all = write_folder(folder / "in", 40);
  const ImageRequest request = of_folder(folder / "in");
  const auto options = [&](const char* out) {
    return ShardOptions{.out = folder / out, .samples_per_shard = 5, .hold_out = 5};
  };
  import_images(request, options("whole"));
  const auto whole = tree_of(folder / "whole");
  const Labelled twelfth = test::samples_of(folder / "whole/train")[12];
  int at = 0;  // image that is sample 12, of shard 2
  while (Labelled(all[static_cast<std::size_t>(at)].first,
                  test::fitted(all[static_cast<std::size_t>(at)].second, 3, 9, 11)) != twelfth)
    ++at;
  const std::string bad = folder / ("in/" + path_of(at)), good = test::file_content(bad);
  const std::string work = folder / "out.importing";
  const auto end_early = [&] {
    test::put_file(bad, good.substr(0, good.size() / 2));
    CHECK_THAT(refused(request, options("out")), Contains(path_of(at) + ": is damaged"));
    test::put_file(bad, good);
    REQUIRE(tree_of(work + "/made").size() == 2);
  };
  const auto take_up = [&](int ranks) {
    const ImportWritten written = import_images(request, options("out"), ranks);
    CHECK((tree_of(folder / "out") == whole));
    CHECK_FALSE(fs::exists(work));
    fs::remove_all(folder / "out");
    return written.kept;
  };
  const auto first_shard = [&] { return work + "/data/" + tree_of(work + "/made").begin()->first; };

  end_early();
  CHECK(take_up(3) == 2);

  end_early();
  const std::string cut = first_shard();  // as after a crash of the file system
  fs::resize_file(cut, fs::file_size(cut) - 1);
  test::put_file(work + "/data/train/shard-0099.h5.tmp-77-0", "of a killed writer");
  CHECK(take_up(1) == 1);

  end_early();
  std::string torn = test::file_content(first_shard());  // the header, half written
  torn[9] = static_cast<char>(torn[9] ^ 1);
  test::put_file(first_shard(), torn);
  CHECK(take_up(2) == 1);

  end_early();
  std::string note = tree_of(work + "/made").begin()->second;
  note[note.size() / 2] = static_cast<char>(note[note.size() / 2] ^ 1);
  test::put_file(work + "/made/" + tree_of(work + "/made").begin()->first, note);
  CHECK(take_up(2) == 1);

  end_early();
  ShardOptions other = options("out");
  other.chunk = 64;
  CHECK(import_images(request, other).kept == 0);
  CHECK_THROWS_WITH(import_images(request, other), Contains("exists already"));
}

TEST_CASE("a shard from which something was left out is kept only where that is still wanted",
          "[data][import][image]") {
  const Folder folder;
  const auto path = [&](int i) { return folder / ("in/pear/" + std::to_string(i) + ".png"); };
  for (int i = 0; i < 12; ++i)
    test::put_file(path(i), test::png_file(i == 9 ? 8 : 7, 5, {}, test::soft_pixels(i == 9 ? 8 : 7, 5, 3, "left out")));
  const std::string good = test::file_content(path(4));
  test::put_file(path(4), "damaged");
  ImageRequest request{.format = "images", .inputs = {folder / "in"}, .skip_damaged = true};
  const ShardOptions options{.out = folder / "out", .samples_per_shard = 3};
  CHECK_THAT(refused(request, options), Contains("pear/9.png: has 5 x 8 pixels"));
  std::string notes;
  for (const auto& [name, content] : tree_of(folder / "out.importing/made")) notes += content;
  REQUIRE_THAT(notes, Contains("pear/4.png: is neither"));
  test::put_file(path(9), good);
  request.skip_damaged = false;
  CHECK_THAT(refused(request, options), Contains("pear/4.png: is neither"));
  request.skip_damaged = true;
  CHECK(import_images(request, options).kept >= 1);
}

}  // namespace
}  // namespace echelon

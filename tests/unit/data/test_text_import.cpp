// SPDX-License-Identifier: Apache-2.0
// Text, sequences and pairs become shards: what is stored, what a loader reads, and which errors name which place.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.hpp"
#include "data/import/sequence_writer.hpp"
#include "data/import/text_writer.hpp"
#include "data/loader.hpp"
#include "data/location.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using Ids = std::vector<std::int32_t>;

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// Returns the stored integers of all shards of a folder, in order.
Ids stored(const std::string& folder, const char* name) {
  Ids all;
  for (const std::string& file : files_at(folder)) {
    const h5::Reader reader(file);
    Ids some(static_cast<std::size_t>(reader.info(name).shape[0]));
    reader.read_all(name, some.data(), DType::i32);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string spelt(const Ids& ids, const Vocabulary& vocabulary, const std::string& between = "") {
  std::string text;
  for (const std::int32_t id : ids) text += vocabulary[id] + between;
  return text;
}

// Imports in the order of the input.
SequencesWritten convert(const TextRequest& request, ShardOptions options) {
  options.keep_order = true;
  return write_sequences(*open_sequences(request), options);
}

// Returns the error of an import, which must leave no files behind.
std::string refusal(const Folder& folder, const TextRequest& request, ShardOptions options = {}) {
  options.out = folder / "never";
  const std::string text = test::refusal<Error>([&] {
    if (request.format == "text" || request.format == "words")
      write_token_shards(request, options);
    else
      convert(request, options);
  });
  REQUIRE_FALSE(std::filesystem::exists(options.out));
  return text;
}

DataConfig in_order() {
  DataConfig config;
  config.shuffle = false;
  return config;
}

}  // namespace

TEST_CASE("a text becomes tokens whose end is held out", "[data][import][text]") {
  const Folder folder;
  const std::string first = "Über den\nFluß", second = "\nund zurück.\n";
  put(folder / "1.txt", first);
  put(folder / "2.txt", second);
  const TextWritten written = write_token_shards({.format = "text", .inputs = {folder / "1.txt", folder / "2.txt"}},
                                                 {.out = folder / "out", .shards = 2, .hold_out_part = 0.2});
  CHECK(written.tokens == 21);
  CHECK(written.held_out == 5);
  CHECK(written.vocabulary == 17);
  const Dataset train = open_dataset(folder / "out/train", 4), test = open_dataset(folder / "out/test", 4);
  CHECK(train.kind == DataKind::text);
  CHECK(train.stored == DType::u8);
  CHECK(train.vocabulary == test.vocabulary);
  CHECK(std::is_sorted(train.vocabulary.entries().begin(), train.vocabulary.entries().end()));
  CHECK(train.shards.size() == 2);
  CHECK(train.shards[0].tokens == 10);
  CHECK(train.samples() == 4);  // (10 - 1) / 4 and (11 - 1) / 4
  const std::string text = spelt(stored(folder / "out/train", "tokens"), train.vocabulary) +
                           spelt(stored(folder / "out/test", "tokens"), train.vocabulary);
  CHECK(text == first + second);
}

TEST_CASE("bytes need no UTF-8, and a set can take another's vocabulary", "[data][import][text]") {
  const Folder folder;
  put(folder / "a.txt", "ab\xff");
  put(folder / "b.txt",
      "\xff\xff"
      "a");
  put(folder / "c.txt", "abc");
  write_token_shards({.format = "text", .inputs = {folder / "a.txt"}, .tokens = "bytes"}, {.out = folder / "a"});
  write_token_shards({.format = "text", .inputs = {folder / "b.txt"}, .tokens = "bytes", .like = folder / "a"},
                     {.out = folder / "b"});
  CHECK(stored(folder / "b", "tokens") == Ids{2, 2, 0});
  CHECK_THAT(refusal(folder, {.format = "text", .inputs = {folder / "c.txt"}, .like = folder / "a"}),
             Contains("c.txt:1: 'c' is not in the vocabulary"));
}

TEST_CASE("words: the most frequent of the training part, the rest is <unk>", "[data][import][text]") {
  const Folder folder;
  put(folder / "t.txt", "the cat's the dog.\nthe dog, cat's\nzebra zebra zebra zebra");
  const TextWritten written = write_token_shards({.format = "words", .inputs = {folder / "t.txt"}, .vocabulary = 6},
                                                 {.out = folder / "out", .hold_out = 4});
  const Dataset train = open_dataset(folder / "out/train", 3);
  CHECK(train.vocabulary.entries() == std::vector<std::string>{"<unk>", "the", "\n", "cat's", "dog", ","});
  CHECK(spelt(stored(folder / "out/train", "tokens"), train.vocabulary, " ") ==
        "the cat's the dog <unk> \n the dog , cat's \n ");
  CHECK(stored(folder / "out/test", "tokens") == Ids{0, 0, 0, 0});
  CHECK(written.unknown == 5);
}

TEST_CASE("text that is cut into tokens already is taken as it stands", "[data][import][text]") {
  const Folder folder;
  put(folder / "t.txt", " the <unk> 's $ N.5 <unk> \r\n\n\tno-one\tthe  end, é");  // the last line has no end
  const TextRequest request{.format = "words", .inputs = {folder / "t.txt"}, .tokens = "verbatim"};
  const TextWritten written = write_token_shards(request, {.out = folder / "out"});
  const Dataset data = open_dataset(folder / "out", 3);
  CHECK(spelt(stored(folder / "out", "tokens"), data.vocabulary, "|") ==
        "the|<unk>|'s|$|N.5|<unk>|\n|\n|no-one|the|end,|é|\n|");
  CHECK(written.tokens == 13);
  CHECK(written.vocabulary == 9);  // <unk> occurs once
  CHECK(data.vocabulary[0] == "<unk>");
  put(folder / "held.txt", "the new\n");
  const TextWritten more = write_token_shards(
      {.format = "words", .inputs = {folder / "held.txt"}, .tokens = "verbatim", .like = folder / "out"},
      {.out = folder / "held"});
  CHECK(more.unknown == 1);
  CHECK(stored(folder / "held", "tokens") == Ids{data.vocabulary.find("the"), 0, data.vocabulary.find("\n")});

  std::string many;  // more than the 10,000 words that `words` keeps
  for (int i = 0; i < 12000; ++i) many += "w" + std::to_string(i) + (i % 5 == 4 ? "\n" : " ");
  put(folder / "many.txt", many);
  const auto kinds = [&](std::int64_t most) {
    const TextRequest all{.format = "words", .inputs = {folder / "many.txt"}, .tokens = "verbatim", .vocabulary = most};
    return write_token_shards(all, {.out = folder / ("many" + std::to_string(most))}).vocabulary;
  };
  CHECK(kinds(0) == 12002);
  CHECK(kinds(5000) == 5000);
  put(folder / "zero.txt", std::string("a b\0c\n", 6));
  CHECK_THAT(refusal(folder, {.format = "words", .inputs = {folder / "zero.txt"}, .tokens = "verbatim"}),
             Contains("zero.txt:1, column 4: a zero byte"));
}

TEST_CASE("bad texts are named with their place", "[data][import][text]") {
  const Folder folder;
  put(folder / "latin.txt", "fine\nna\xefve\n");
  put(folder / "zero.txt", std::string("a\0b", 3));
  put(folder / "empty.txt", "");
  put(folder / "good.txt", "good text\n");
  const auto text = [&](const std::string& file) { return TextRequest{.format = "text", .inputs = {folder / file}}; };
  CHECK_THAT(refusal(folder, text("latin.txt")), Contains("latin.txt:2, column 3: byte 0xef is not UTF-8"));
  CHECK_THAT(refusal(folder, text("zero.txt")), Contains("zero.txt:1, column 2: a zero byte"));
  CHECK_THAT(refusal(folder, text("empty.txt")), Contains("empty.txt: is empty"));
  CHECK_THAT(refusal(folder, text("none.txt")), Contains("none.txt: cannot be read"));
  CHECK_THAT(refusal(folder, text("good.txt"), {.hold_out_part = 1.0}), Contains("--hold-out-part is 1"));
  CHECK_THAT(refusal(folder, text("good.txt"), {.hold_out = 10}), Contains("cannot be held out of 10"));
  CHECK_THAT(refusal(folder, {.format = "text", .inputs = {folder / "good.txt"}, .tokens = "wrods"}),
             Contains("did you mean 'words'"));
  CHECK_THAT(refusal(folder, {.format = "text", .inputs = {folder / "good.txt"}, .vocabulary = 9}),
             Contains("--vocabulary is for words"));
}

TEST_CASE("lines of text by class become labelled token sequences, mixed", "[data][import][sequences]") {
  const Folder folder;
  put(folder / "in/ru.txt", "да\nнет\n\nда да\n");
  put(folder / "in/en.txt", "yes\r\nno\n");
  put(folder / "in/LICENSE", "not a class");
  const SequencesWritten written =
      convert({.format = "sequences", .inputs = {folder / "in"}}, {.out = folder / "out", .shards = 2});
  CHECK(written.samples == 5);
  CHECK(written.shortest == 2);
  CHECK(written.longest == 5);
  const Dataset data = open_dataset(folder / "out");
  CHECK(data.class_names == std::vector<std::string>{"en", "ru"});
  CHECK(data.form() == SampleForm{.shape = {5}, .vocabulary = data.vocabulary.size(), .classes = 2, .lengths = true});
  const Ids tokens = stored(folder / "out", "tokens"), labels = stored(folder / "out", "labels");
  std::vector<std::string> lines;
  for (std::int64_t id = 0; id < 5; ++id) {
    const std::int64_t begin = (*data.starts)[static_cast<std::size_t>(id)];
    lines.push_back(std::to_string(labels[static_cast<std::size_t>(id)]) +
                    spelt(Ids(tokens.begin() + begin, tokens.begin() + begin + data.length_of(id)), data.vocabulary));
  }
  CHECK(lines != std::vector<std::string>{"0yes", "0no", "1да", "1нет", "1да да"});  // shuffled
  std::sort(lines.begin(), lines.end());
  CHECK(lines == std::vector<std::string>{"0no", "0yes", "1да", "1да да", "1нет"});
}

TEST_CASE("time series become rows of features, step by step", "[data][import][sequences]") {
  const Folder folder;
  put(folder / "s.ts",
      "# note\n@problemName s\n@timeStamps false\n@classLabel true b a\n@data\n"
      "1,2,3:10,20,30:a\n4:40:b\n");
  const SequencesWritten written = convert({.format = "sequences", .inputs = {folder / "s.ts"}}, {.out = folder / "o"});
  CHECK(written.mean == std::vector<double>{2.5, 25});
  const Dataset data = open_dataset(folder / "o");
  CHECK(data.form() == SampleForm{.shape = {3, 2}, .classes = 2, .lengths = true});
  CHECK(stored(folder / "o", "labels") == Ids{1, 0});
  Loader loader(data, SamplePlan(plan_request(data, in_order(), {2}, 1)), {.dtype = DType::f64});
  const Batch& batch = loader.next();
  const auto* values = static_cast<const double*>(batch.samples);
  const double deviation = std::sqrt(1.25);
  const std::vector<double> steps = {1, 10, 2, 20, 3, 30, 4, 40};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double scale = i % 2 == 0 ? 1 : 10;
    CHECK(values[i] == Approx((steps[i] - 2.5 * scale) / (deviation * scale)));
  }
  for (std::size_t i = 8; i < 12; ++i) CHECK(values[i] == 0);
  CHECK((batch.lengths[0] == 3 && batch.lengths[1] == 1 && batch.weight == 2));
}

TEST_CASE("bad time series are named with line, dimension and step", "[data][import][sequences]") {
  const Folder folder;
  const std::string head = "@classLabel true one two\n@data\n";
  const auto ts = [&](const std::string& text) {
    put(folder / "s.ts", text);
    return refusal(folder, {.format = "sequences", .inputs = {folder / "s.ts"}});
  };
  CHECK_THAT(ts(head + "1,2:3,4:one\n1:2:tow\n"), Contains("s.ts:4: unknown class 'tow' (did you mean 'two'?)"));
  CHECK_THAT(ts(head + "1,2:3,x:one\n"), Contains("s.ts:3: dimension 2, step 2: 'x' is not a finite number"));
  CHECK_THAT(ts(head + "1,?:3,4:one\n"), Contains("dimension 1, step 2: a missing value"));
  CHECK_THAT(ts(head + "1,2:3:one\n"), Contains("dimension 2 has 1 steps, but dimension 1 has 2"));
  CHECK_THAT(ts(head + "1:2:one\n1:one\n"), Contains("s.ts:4: 1 dimensions, but the first series has 2"));
  CHECK_THAT(ts("@data\n1:one\n"), Contains("no \"@classLabel true"));
  CHECK_THAT(ts("@timeStamps true\n" + head), Contains("s.ts:1: series with time stamps"));
  CHECK_THAT(ts("@classLabel true a\n"), Contains("ends before @data"));
  CHECK_THAT(ts(head), Contains("holds no series"));
}

TEST_CASE("a table of steps: lines of one name are one sequence", "[data][import][sequences]") {
  const Folder folder;
  const auto csv = [&](const std::string& text) {
    put(folder / "s.csv", text);
    return TextRequest{.format = "sequences", .inputs = {folder / "s.csv"}};
  };
  convert(csv("name,label,x,y\nu,10,1,2\nu,10,3,4\nv,9,5,6\n"), {.out = folder / "o"});
  const Dataset data = open_dataset(folder / "o");
  CHECK(data.class_names == std::vector<std::string>{"9", "10"});  // class names that are numbers are sorted by value
  CHECK(stored(folder / "o", "lengths") == Ids{2, 1});
  CHECK(stored(folder / "o", "labels") == Ids{1, 0});
  CHECK_THAT(refusal(folder, csv("a,1,2\nb,1,2\na,1,2\n")), Contains("s.csv:3: sequence 'a' continues after another"));
  CHECK_THAT(refusal(folder, csv("a,1,2\na,2,2\n")),
             Contains("s.csv:2: sequence 'a' has label '2', but it had '1' before"));
  CHECK_THAT(refusal(folder, csv("a,1,2\nb,1,2,3\n")), Contains("s.csv:2: 2 numbers, but the first step has 1"));
  CHECK_THAT(refusal(folder, csv("a,1,2\nb,1,x\n")), Contains("s.csv:2: column 3: 'x'"));
  CHECK_THAT(refusal(folder, {.format = "sequences", .inputs = {folder / "s.npz"}}),
             Contains("s.npz: sequences come from"));
}

TEST_CASE("pairs: a decoder's inputs are its targets, shifted by one place", "[data][import][pairs]") {
  const Folder folder;
  put(folder / "p.tsv", "a b c\tx\nd\tx y z\n");
  convert({.format = "pairs", .inputs = {folder / "p.tsv"}}, {.out = folder / "o"});
  const auto length = GENERATE(0, 2);
  const Dataset data = open_dataset(folder / "o", length);
  const std::int64_t source = length == 0 ? 3 : 2, target = length == 0 ? 4 : 2;
  CHECK(data.form() ==
        SampleForm{
            .shape = {source}, .vocabulary = 5, .label = {target}, .classes = 6, .lengths = true, .target = target});
  CHECK(data.cut() == (length == 0 ? 0 : 2));
  const SamplePlan plan(plan_request(data, in_order(), {2}, 1));
  CHECK(plan.weight(0, 0) == (length == 0 ? 6 : 4));
  Loader loader(data, plan, {});
  const Batch& batch = loader.next();
  CHECK(batch.weight == plan.weight(0, 0));
  const auto row = [&](const std::int32_t* values, std::int64_t i) {
    return spelt(Ids(values + i * target, values + (i + 1) * target), data.target_vocabulary, " ");
  };
  const auto* weights = static_cast<const float*>(batch.weights);
  if (length == 0) {
    CHECK(row(batch.target, 1) == "<s> x y z ");
    CHECK(row(static_cast<const std::int32_t*>(batch.labels), 1) == "x y z </s> ");
    CHECK(row(batch.target, 0).starts_with("<s> x "));
    CHECK(row(static_cast<const std::int32_t*>(batch.labels), 0).starts_with("x </s> "));
    CHECK(std::vector<float>(weights, weights + 8) == std::vector<float>{1, 1, 0, 0, 1, 1, 1, 1});
    CHECK((batch.lengths[0] == 3 && batch.lengths[1] == 1));
  } else {
    CHECK(row(batch.target, 1) == "<s> x ");
    CHECK(row(static_cast<const std::int32_t*>(batch.labels), 1) == "x y ");
    CHECK(batch.lengths[0] == 2);
  }
}

TEST_CASE("bad pairs are named with their line", "[data][import][pairs]") {
  const Folder folder;
  const auto pairs = [&](const std::string& text) {
    put(folder / "p.tsv", text);
    return refusal(folder, {.format = "pairs", .inputs = {folder / "p.tsv"}});
  };
  CHECK_THAT(pairs("a\tb\nno tab\n"), Contains("p.tsv:2: no tab, expected one"));
  CHECK_THAT(pairs("a\tb\tc\n"), Contains("p.tsv:1: more than one tab"));
  CHECK_THAT(pairs("a\tb\n \tc\n"), Contains("p.tsv:2: the source holds no token"));
  CHECK_THAT(pairs(""), Contains("holds no pair"));
  CHECK_THAT(pairs("\n\n\n"), Contains("holds no pair"));
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Tables as people and spreadsheets write them: quotes, headings, classes by name; and imports that match another set.
#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/import/like.hpp"
#include "data/import/sequence_writer.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/text_writer.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::refusal;
using Floats = std::vector<float>;
using Ids = std::vector<std::int32_t>;
using Names = std::vector<std::string>;

constexpr const char* kMark = "\xef\xbb\xbf";  // byte-order mark

struct Table {
  Floats samples;
  Ids labels;
  Names class_names;
  std::string heading;
};

class Importer {
 public:
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  std::string fresh() { return folder_ / ("out" + std::to_string(made_++)); }

  // Imports the table as a set of samples of (1, 1, 2), f32.
  Table csv(const std::string& text, Heading heading = Heading::automatic, const std::string& like = "") {
    ImportRequest request{.format = "csv", .inputs = {put("t.csv", text)}, .shape = {1, 1, 2}, .stored = DType::f32};
    request.heading = heading;
    auto source = open_source(request);
    Table table;
    table.heading = source->info().heading;
    if (!like.empty()) source = source_like(std::move(source), like);
    place = fresh();
    write_shards(*source, {.out = place, .keep_order = true});
    const Dataset dataset = open_dataset(place);
    table.class_names = dataset.class_names;
    table.samples.resize(static_cast<std::size_t>(2 * dataset.samples()));
    table.labels.resize(static_cast<std::size_t>(dataset.samples()));
    const h5::Reader reader(dataset.shards[0].path);
    reader.read_all("samples", table.samples.data(), DType::f32);
    reader.read_all("labels", table.labels.data(), DType::i32);
    return table;
  }

  Dataset series(const std::string& file, const std::string& text, const std::string& like = "") {
    const auto source = open_sequences({.format = "sequences", .inputs = {put(file, text)}, .like = like});
    place = fresh();
    write_sequences(*source, {.out = place, .keep_order = true});
    return open_dataset(place);
  }

  std::string place;  // from the last import

 private:
  test::Folder folder_;
  int made_ = 0;
};

}  // namespace

TEST_CASE("cells of CSV may be quoted, and a byte-order mark is no part of the first", "[data][import]") {
  Importer importer;
  const Table plain = importer.csv("0.5,2,0\n3,4,1\n");
  const std::string quoted = std::string(kMark) + "\"0.5\",\"2\" , \"0\"\r\n 3 ,\"4\",1\r\n";
  const Table same = importer.csv(quoted);
  CHECK(same.samples == plain.samples);
  CHECK(same.labels == plain.labels);
  CHECK(same.heading.empty());
  const Table named = importer.csv("1,2,\"a, \"\"b\"\"\"\n3,4,\"c\"\n5,6,c\n", Heading::absent);
  CHECK(named.class_names == Names{"a, \"b\"", "c"});
  CHECK_THAT(refusal<DataError>([&] { importer.csv("1,2,0\n1,\"2,0\n"); }),
             Contains("line 2, column 2: a quoted cell is not closed"));
  CHECK_THAT(refusal<DataError>([&] { importer.csv("1,\"2\"3,0\n"); }),
             Contains("line 1, column 2: text follows a quoted cell"));
}

TEST_CASE("a first line of CSV is a heading only where it holds no number", "[data][import]") {
  Importer importer;
  CHECK(importer.csv("\"a\",b,class\n1,2,0\n").heading == "\"a\",b,class");
  CHECK(importer.csv(std::string(kMark) + "a,,class\n1,2,0\n").heading == "a,,class");
  const Table quoted = importer.csv("\"1\",\"2\",\"0\"\n3,4,1\n");
  CHECK(quoted.samples == Floats{1, 2, 3, 4});
  for (const char* bad : {"nan", "-inf", "1e999"})
    CHECK_THAT(refusal<DataError>([&] { importer.csv(std::string(bad) + "," + bad + "," + bad + "\n1,2,0\n"); }),
               Contains("line 1, column 1: '" + std::string(bad) + "' is not a finite number"));
  for (const char* bad : {"NA,NA,NA\n1,2,0\n", ",,\n1,2,0\n"})
    CHECK_THAT(refusal<DataError>([&] { importer.csv(bad); }),
               Contains("t.csv: line 1, column 3: '' is not a class") || Contains("in line 1 is the text"));
  CHECK(importer.csv("1,2,0\n3,4,1\n", Heading::present).samples == Floats{3, 4});
  CHECK_THAT(refusal<DataError>([&] { importer.csv("a,b,0\n1,2,0\n", Heading::absent); }),
             Contains("line 1, column 1: 'a' is not"));
  CHECK_THAT(refusal<ConfigError>([] { (void)heading_of("yess"); }), Contains("did you mean 'yes'"));
}

TEST_CASE("classes of CSV may be text, numbered in the order of their names", "[data][import]") {
  Importer importer;
  const Table irises = importer.csv("x,y,kind\n1,2,virginica\n3,4,setosa\n5,6,\"virginica\"\n");
  CHECK(irises.class_names == Names{"setosa", "virginica"});
  CHECK(irises.labels == Ids{1, 0, 1});
  CHECK(irises.heading == "x,y,kind");
  CHECK_THAT(refusal<DataError>([&] { importer.csv("1,2,a\n3,4,0\n"); }),
             Contains("line 2, column 3: '0' is a number, but the class in line 1 is the text 'a'"));
  CHECK_THAT(refusal<DataError>([&] { importer.csv("1,2,0\n3,4,a\n"); }),
             Contains("'a' is not a label: labels are whole numbers"));
  CHECK_THAT(refusal<DataError>([&] { importer.csv("1,2,a\n3,4,\n"); }),
             Contains("line 2, column 3: '' is not a class"));
  // Column names are numbers: is the line a heading or a sample?
  const std::string open = "0,1,kind\n3,4,a\n5,6,a\n";
  CHECK_THAT(refusal<DataError>([&] { importer.csv(open); }),
             Contains("line 1 alone has the class 'kind'") && Contains("--heading yes"));
  CHECK(importer.csv(open, Heading::present).labels == Ids{0, 0});
  CHECK(importer.csv(open, Heading::absent).labels == Ids{1, 0, 0});
  std::string ids;
  for (int i = 0; i < 4001; ++i) ids += "1,2,id" + std::to_string(i) + "\n";
  CHECK_THAT(refusal<DataError>([&] { importer.csv(ids); }), Contains("is one class too many"));
}

TEST_CASE("an import like another set takes over its classes and scaling", "[data][import]") {
  Importer importer;
  importer.csv("1,2,b\n3,4,a\n5,6,c\n", Heading::absent);
  const std::string like = importer.place;
  const Dataset train = open_dataset(like);
  const Table test = importer.csv("70,80,c\n90,100,b\n", Heading::absent, like);
  CHECK(test.labels == Ids{2, 1});
  CHECK(test.class_names == train.class_names);
  CHECK(open_dataset(importer.place).mean == train.mean);
  CHECK(open_dataset(importer.place).std == train.std);
  CHECK_THAT(refusal<DataError>([&] { importer.csv("1,2,bb\n", Heading::absent, like); }),
             Contains("'bb'") && Contains("did you mean"));
  CHECK_THAT(refusal<DataError>([&] { importer.csv("1,2,3\n", Heading::absent, like); }),
             Contains("has classes 0 to 2, but the input has 3"));

  const std::string head = "@timeSeries true\n@classLabel true ";
  const Dataset walks = importer.series("a.ts", head + "run walk stand\n@data\n1,2,3:run\n4,5:stand\n");
  const std::string of_walks = importer.place;
  const Dataset more = importer.series("b.ts", head + "stand run\n@data\n100,200:run\n300:stand\n", of_walks);
  CHECK(more.class_names == walks.class_names);
  CHECK(more.mean == walks.mean);
  CHECK(more.std == walks.std);
  const Dataset table = importer.series("c.csv", "\"x 1\",stand,7\n\"x 1\",stand,8\ny,run,9\n", of_walks);
  CHECK(table.class_names == walks.class_names);
  CHECK(table.length() == 2);
  Ids labels(2);
  h5::Reader(table.shards[0].path).read_all("labels", labels.data(), DType::i32);
  CHECK(labels == Ids{2, 0});
  CHECK_THAT(refusal<DataError>([&] { importer.series("c.csv", "x,crawl,7\n", of_walks); }), Contains("'crawl'"));
  CHECK_THAT(refusal<DataError>([&] { importer.series("c.csv", "x,run,7,8\n", of_walks); }),
             Contains("has steps of 1 features, but the input has 2"));
  CHECK_THAT(refusal<DataError>([&] { importer.series("c.csv", "x,run,7\n", like); }),
             Contains("holds samples, but the input holds sequences"));

  // Without the declared classes the same numbers would mean other classes.
  Dataset first = walks, other = importer.series("b.ts", head + "stand run walk\n@data\n1:run\n");
  CHECK_THAT(refusal<DataError>([&] { see_alike(other, first); }), Contains("numbers its classes [stand, run, walk]"));
}

TEST_CASE("texts too small to learn from are refused; <unk> is one word", "[data][import]") {
  Importer importer;
  const auto text = [&](const std::string& content, ShardOptions options = {}) {
    options.out = importer.fresh();
    return write_token_shards({.format = "text", .inputs = {importer.put("t.txt", content)}}, options);
  };
  CHECK_THAT(refusal<DataError>([&] { text("a"); }), Contains("t.txt: holds one token; at least two are needed"));
  CHECK_THAT(refusal<ConfigError>([&] { text("abcdef", {.hold_out = 1}); }),
             Contains("the part held out for testing would hold 1 token"));
  CHECK_THAT(refusal<ConfigError>([&] { text("abcdef", {.shards = 4}); }), Contains("a shard would hold 1 token"));
  CHECK(text("ab").tokens == 2);
  CHECK(text(std::string(kMark) + "ab").tokens == 2);

  const TextWritten words = write_token_shards(
      {.format = "words", .inputs = {importer.put("w.txt", "the <unk> of <unk><unk>x")}}, {.out = importer.fresh()});
  CHECK(words.tokens == 6);
  CHECK(words.unknown == 3);
  CHECK(words.vocabulary == 4);  // <unk>, of, the, x

  const auto pairs = [&](const std::string& content) {
    const auto source = open_sequences({.format = "pairs", .inputs = {importer.put("p.tsv", content)}});
    write_sequences(*source, {.out = importer.fresh()});
  };
  CHECK_THAT(refusal<DataError>([&] { pairs("a b\tc\nd\t\n"); }), Contains("p.tsv:2: the target holds no token"));
  CHECK_THAT(refusal<DataError>([&] { pairs("a b\tc\n \td\n"); }), Contains("p.tsv:2: the source holds no token"));
  CHECK_THAT(
      refusal<ConfigError>([&] {
        (void)open_sequences(
            {.format = "pairs", .inputs = {importer.put("p.tsv", "a\tb\n")}, .tokens = "characters", .vocabulary = 9});
      }),
      Contains("--vocabulary is for words"));
}

TEST_CASE("semicolons and tabs are told from the first line, missing values by name", "[data][import]") {
  for (const char between : {',', ';', '\t'}) {
    Importer importer;
    std::string text = "a,b,class\n1.5,2,0\n3,\"4\",1\n";
    std::replace(text.begin(), text.end(), ',', between);
    const Table table = importer.csv(text);
    CHECK(table.samples == std::vector<float>{1.5, 2, 3, 4});
    CHECK(table.labels == std::vector<std::int32_t>{0, 1});
  }
  Importer importer;
  for (const char* missing : {"", "NA", "?", "nan"})
    CHECK_THAT(test::refusal<DataError>([&] { importer.csv("1,2,0\n" + std::string(missing) + ",4,1\n"); }),
               Catch::Contains("line 2, column 1: '" + std::string(missing) + "' is not a finite number: a missing"));
}

}  // namespace echelon

// SPDX-License-Identifier: Apache-2.0
// Texts of variable length, which other programs write, are read without the library; damage to them is refused.
#include <hdf5.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;
using test::refusal;

void attribute(hid_t file, const std::string& name, const std::vector<std::string>& texts, bool scalar) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  const hsize_t count = texts.size();
  const hid_t space = scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr);
  const hid_t made = H5Acreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  H5Awrite(made, type, pointers.data());
  H5Aclose(made);
  H5Sclose(space);
  H5Tclose(type);
}

std::vector<std::string> many_names() {
  std::vector<std::string> names;
  for (int i = 0; i < 700; ++i) names.push_back("class of number " + std::to_string(i * 7919));
  return names;
}

void write_foreign(const std::string& path, bool newest, int more) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (newest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  attribute(file, "format", {"sämples"}, true);
  attribute(file, "formatted", {"something else"}, true);
  attribute(file, "names", {"cat", "", "a longer name"}, false);
  if (more > 0) attribute(file, "many", many_names(), false);  // fill several heaps
  for (int i = 0; i < more; ++i) attribute(file, "more_" + std::to_string(i), {"x"}, true);
  H5Fclose(file);
  H5Pclose(access);
}

}  // namespace

TEST_CASE("texts of variable length are read from old and new files", "[h5][texts]") {
  const Folder folder;
  const bool newest = GENERATE(false, true);
  write_foreign(folder / "foreign.h5", newest, newest ? 3 : 40);
  const h5::Reader reader(folder / "foreign.h5");
  CHECK(reader.attribute_text("format") == "sämples");
  CHECK(reader.attribute_text("formatted") == "something else");
  CHECK(reader.attribute_texts("names") == std::vector<std::string>{"cat", "", "a longer name"});
  CHECK(reader.attribute_texts("many") == many_names());
  if (!newest) return;
  write_foreign(folder / "dense.h5", true, 40);  // more attributes than a new header holds
  CHECK_THAT(refusal<DataError>([&] { (void)h5::Reader(folder / "dense.h5").attribute_text("format"); }),
             Contains("dense.h5: attribute 'format' is text of variable length in a storage that cannot be checked"));
}

TEST_CASE("every flipped bit of a heap of texts is refused or harmless", "[h5][texts]") {
  const Folder folder;
  const std::string path = folder / "foreign.h5";
  write_foreign(path, false, 0);
  std::ifstream from(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(from)), {});
  const std::size_t heap = content.find("GCOL");
  REQUIRE(heap != std::string::npos);
  constexpr std::size_t kObjects = 16 + 4 * 32;  // bytes in use
  int refused = 0, other_text = 0;
  for (std::size_t byte = 0; byte < kObjects; ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = content;
      damaged[heap + byte] = static_cast<char>(damaged[heap + byte] ^ (1 << bit));
      std::ofstream(path, std::ios::binary) << damaged;
      const h5::Reader reader(path);
      try {
        const bool same = reader.attribute_text("format") == "sämples" &&
                          reader.attribute_texts("names") == std::vector<std::string>{"cat", "", "a longer name"};
        other_text += same ? 0 : 1;
      } catch (const DataError&) {
        ++refused;
      }
    }
  CHECK(refused > 0);
  CHECK(other_text < 8 * 32);  // the flips hit letters: this old form has no checksum of them
}

}  // namespace echelon

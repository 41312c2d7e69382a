#include "runtime/cpu/elf_object.h"

#include "base/file.h"
#include "runtime/cpu/externals.h"

#include <cmath>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

namespace vortex::cpu {

namespace {

std::vector<uint8_t> readObject(const std::string& name) {
  const std::string text = *base::readFile(std::string(VORTEX_OBJECT_FOLDER) + "/" + name + ".o");
  return {text.begin(), text.end()};
}

Result<std::unique_ptr<LoadedObject>> load(const std::vector<uint8_t>& bytes) {
  return LoadedObject::load(bytes, &findExternal);
}

template <typename F> F* function(const LoadedObject& object, const char* name) {
  return reinterpret_cast<F*>(object.find(name));
}

class CodeModels : public testing::TestWithParam<const char*> {};

TEST_P(CodeModels, CodeConstantsDataAndExternalsWork) {
  const auto object = load(readObject(GetParam()));
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(function<int(int)>(**object, "lookup")(3), 49);  // constant table
  EXPECT_EQ(function<int(int)>(**object, "lookup")(99), -1);
  EXPECT_EQ(function<int()>(**object, "count")(), 41);  // initialised data
  EXPECT_EQ(function<int()>(**object, "count")(), 42);
  EXPECT_EQ(function<long(int)>(**object, "zeros")(1000), 0);                                 // zero-initialised data
  EXPECT_EQ(function<double(double)>(**object, "wave")(0.5), std::sin(0.5) + std::exp(0.5));  // near calls to libm
  EXPECT_EQ(function<float(float, float)>(**object, "rest")(7.5f, 2.0f), 1.5f);
  EXPECT_EQ(function<int(int, int)>(**object, "indirect")(0, 20), 21);  // pointers to functions in constants
  EXPECT_EQ(function<int(int, int)>(**object, "indirect")(1, 20), 40);
  EXPECT_EQ(function<int(int)>(**object, "choose")(4), 404);           // jump table
  EXPECT_EQ(function<double(double)>(**object, "applied")(4.0), 2.0);  // address of an external in data
  char text[32] = {};
  function<void(char*)>(**object, "greet")(text);
  EXPECT_STREQ(text, "a string constant, copied");
  EXPECT_EQ((*object)->find("missing"), nullptr);
  EXPECT_EQ((*object)->find("hidden_helper"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Clang, CodeModels,
                         testing::Values("pic", "static", "medium", "medium_pic", "large", "large_pic", "unoptimised"),
                         [](const auto& info) { return std::string(info.param); });

std::string permissionsAt(const void* address) {
  std::istringstream maps(*base::readFile("/proc/self/maps"));
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) == 3 &&
        reinterpret_cast<uint64_t>(address) >= begin && reinterpret_cast<uint64_t>(address) < end)
      return permissions;
  }
  return "";
}

TEST(LoadedObject, NothingIsWritableAndExecutable) {
  const auto object = load(readObject("pic"));
  ASSERT_TRUE(object);
  EXPECT_EQ(permissionsAt((*object)->find("lookup")), "r-xp");
  EXPECT_EQ(permissionsAt(function<const void*()>(**object, "constant_address")()), "r--p");
  EXPECT_EQ(permissionsAt(function<const void*()>(**object, "data_address")()), "rw-p");
}

TEST(LoadedObject, TwoCopiesShareNoData) {
  const auto first = load(readObject("pic")), second = load(readObject("pic"));
  EXPECT_EQ(function<int()>(**first, "count")(), 41);
  EXPECT_EQ(function<int()>(**second, "count")(), 41);
}

TEST(LoadedObject, AnUnknownExternalIsNamed) {
  EXPECT_NE(load(readObject("unresolved")).error().message.find("'system'"), std::string::npos);
}

TEST(LoadedObject, UnsupportedContentIsNamed) {
  EXPECT_NE(load(readObject("thread_local")).error().message.find("thread-local"), std::string::npos);
  EXPECT_NE(load(readObject("initialiser")).error().message.find("static initialisers"), std::string::npos);
  std::vector<uint8_t> arm = readObject("pic");
  arm[offsetof(Elf64_Ehdr, e_machine)] = static_cast<uint8_t>(EM_AARCH64);
  EXPECT_NE(load(arm).error().message.find("aarch64"), std::string::npos);
  EXPECT_NE(load({}).error().message.find("0 bytes"), std::string::npos);
}

/// Every malformed object is an error or loads; it never crashes and never reads outside (run under ASan as well).
TEST(LoadedObject, TruncatedObjectsAreErrors) {
  const std::vector<uint8_t> whole = readObject("pic");
  for (size_t size = 0; size < whole.size(); size += 7)
    EXPECT_FALSE(load({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)})) << size;
}

TEST(LoadedObject, FlippedBytesNeverCrash) {
  std::mt19937 random(11);
  int accepted = 0, refused = 0;
  for (const char* name : {"pic", "static", "large_pic"}) {
    const std::vector<uint8_t> whole = readObject(name);
    Elf64_Ehdr header;
    std::memcpy(&header, whole.data(), sizeof header);
    for (int round = 0; round < 8000; ++round) {
      std::vector<uint8_t> damaged = whole;
      for (uint32_t edit = 0, edits = 1 + random() % 3; edit < edits; ++edit) {
        // Half of the damage goes where the structure is: the section headers at the end of the file.
        const size_t from = random() % 2 ? header.e_shoff : 0;
        damaged[from + random() % (damaged.size() - from)] = static_cast<uint8_t>(random() % 3 == 0 ? 0xff : random());
      }
      ++(load(damaged) ? accepted : refused);
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace

}  // namespace vortex::cpu

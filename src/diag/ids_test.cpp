#include "diag/diagnostic.h"

#include <gtest/gtest.h>

namespace vortex::diag {
namespace {

TEST(Ids, EveryIdIsFoundAndExplained) {
  ASSERT_FALSE(allIds().empty());
  for (const IdEntry& entry : allIds()) {
    EXPECT_EQ(findId(entry.id), &entry);
    const std::string text = explain(entry.id);
    EXPECT_TRUE(text.starts_with(std::string(entry.id) + ": ")) << text;
    EXPECT_GT(text.size(), entry.title.size() + 40) << entry.id << " needs a real explanation";
  }
}

TEST(Ids, UnknownIdsAreNotFound) {
  for (const char* id : {"", "E", "E0000", "E01010", "e0101", "X0101"}) {
    EXPECT_EQ(findId(id), nullptr);
    EXPECT_EQ(explain(id), "");
  }
}

}  // namespace
}  // namespace vortex::diag

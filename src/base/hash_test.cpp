#include "base/hash.h"

#include <gtest/gtest.h>
#include <set>

namespace {

using namespace vortex::base;

std::string fullHex(std::string_view bytes) {
  std::string text;
  for (uint8_t byte : Hasher().add(bytes).finish()) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// Values published in FIPS 180-2, appendix B.
TEST(Hash, MatchesThePublishedVectors) {
  EXPECT_EQ(fullHex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(fullHex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(fullHex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(fullHex(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Hash, DoesNotDependOnHowTheBytesArrive) {
  std::string bytes(300, 'x');
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    std::string_view all = bytes;
    EXPECT_EQ(Hasher().add(all.substr(0, cut)).add(all.substr(cut)).finishHex(), contentHash(bytes));
  }
}

TEST(Hash, EveryLengthAroundABlockDiffers) {
  std::set<std::string> seen;
  for (size_t length = 0; length < 200; ++length)
    EXPECT_TRUE(seen.insert(contentHash(std::string(length, 'a'))).second);
}

TEST(Hash, FieldsAreSeparated) {
  EXPECT_NE(Hasher().addField("ab").addField("c").finishHex(), Hasher().addField("a").addField("bc").finishHex());
}

}  // namespace

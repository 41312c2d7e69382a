#include "runtime/cuda/ptx_parts.h"

#include <gtest/gtest.h>

namespace vortex::cuda {

namespace {

constexpr const char* kHead = "//\n// Generated\n//\n.version 8.0\n.target sm_90a, debug\n.address_size 64\n"
                              "\t// .globl\tfirst\n.extern .shared .align 1024 .b8 buffer[];\n";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(PtxParts, EachEntryPointIsAPartWithTheDirectives) {
  const std::string text = std::string(kHead) +
                           ".visible .entry first(\n.param .align 8 .b8 p[16]\n)\n.reqntid 256, 1, 1\n"
                           "{\n{ .reg .b32 %a; } // } a comment\n/* } */ ret;\n}\n"
                           ".entry second()\n{\nret;\n}\n";
  const PtxParts parts(text);
  ASSERT_EQ(parts.count(), 2u);
  EXPECT_EQ(parts.partOf("first"), 0u);
  EXPECT_EQ(parts.partOf("second"), 1u);
  EXPECT_EQ(parts.partOf("third"), 2u);
  for (size_t part : {0u, 1u})
    for (const char* always :
         {".version 8.0\n.target sm_90a, debug\n.address_size 64\n", ".extern .shared .align 1024 .b8 buffer[];"})
      EXPECT_TRUE(contains(parts.text(part), always)) << parts.text(part);
  EXPECT_TRUE(contains(parts.text(0), ".reqntid 256, 1, 1\n{\n{ .reg .b32 %a; } // } a comment\n/* } */ ret;\n}\n"));
  EXPECT_FALSE(contains(parts.text(0), "second"));
  EXPECT_FALSE(contains(parts.text(1), "first("));
}

TEST(PtxParts, FunctionsAndVariablesGoWithWhatNeedsThem) {
  const std::string text = std::string(kHead) +
                           ".global .align 4 .b8 table[4] = {1, 2, 3, 4};\n.const .f32 half = 0f3f000000;\n"
                           ".func (.param .b32 r) helper (.param .b32 p);\n"
                           ".func (.param .b32 r) helper (.param .b32 p)\n{\nmov.u64 %rd1, table;\nret;\n}\n"
                           ".visible .entry first()\n{\ncall.uni (r), helper, (p);\nret;\n}\n"
                           ".visible .entry second()\n{\nld.const.f32 %f1, [half];\nret;\n}\n";
  const PtxParts parts(text);
  ASSERT_EQ(parts.count(), 2u);
  EXPECT_TRUE(contains(parts.text(0), "table[4] = {1, 2, 3, 4};"));
  EXPECT_TRUE(contains(parts.text(0), "{\nmov.u64 %rd1, table;"));
  EXPECT_FALSE(contains(parts.text(0), "half"));
  EXPECT_TRUE(contains(parts.text(1), "half"));
  EXPECT_FALSE(contains(parts.text(1), "table"));
  EXPECT_TRUE(contains(parts.text(0), "helper (.param .b32 p);"));
  EXPECT_FALSE(contains(parts.text(1), "helper")) << "a prototype without its function does not link";
}

TEST(PtxParts, EntryPointsThatShareAVariableStayTogether) {
  const std::string text = std::string(kHead) + ".visible .global .u32 counter;\n"
                                                ".visible .entry first()\n{\nst.global.u32 [counter], %r1;\nret;\n}\n"
                                                ".visible .entry second()\n{\nld.global.u32 %r1, [counter];\nret;\n}\n";
  const PtxParts parts(text);
  ASSERT_EQ(parts.count(), 1u);
  EXPECT_EQ(parts.partOf("first"), 0u);
  EXPECT_EQ(parts.partOf("second"), 0u);
  EXPECT_TRUE(contains(parts.text(0), text));
}

TEST(PtxParts, DamagedTextEndsSomewhere) {
  for (const std::string text :
       {"", "{", "\"", "/*", ".version", ".entry", ".entry f({[", "}}}", ".visible .entry f()"})
    EXPECT_LE(PtxParts(text).count(), 1u) << text;
}

}  // namespace

}  // namespace vortex::cuda

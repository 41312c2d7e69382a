#include "msl/front/prelexer.h"

#include <gtest/gtest.h>

namespace vortex::msl::front {
namespace {

TEST(Prelexer, LeavesPlainSourceAlone) {
  const char* source = "int f(int a) {\n  return a[0] ? 1 : 2;\n}\n";
  EXPECT_EQ(prelex(source).text(), source);
}

TEST(Prelexer, MakesAnnotationsOfMetalsAttributesOnly) {
  EXPECT_EQ(prelex("f(int a [[buffer(3)]])").text(), "f(int a __attribute__((annotate(\"msl.buffer\", 3))) )");
  EXPECT_EQ(prelex("f(int a[[buffer(3)]])").text(), "f(int a __attribute__((annotate(\"msl.buffer\", 3))) )");
  EXPECT_EQ(prelex("[[nodiscard]] int f();").text(), "[[nodiscard]] int f();");
  EXPECT_EQ(prelex("x = a[b[0]];").text(), "x = a[b[0]];");
}

TEST(Prelexer, WritesShortFloatsAsCasts) {
  EXPECT_EQ(prelex("x = 1.5h; ").text(), "x = ((half)1.5f); ");
  EXPECT_EQ(prelex("x = 2bf; ").text(), "x = ((bfloat)2); ");
  EXPECT_EQ(prelex("x = 0x1h; ").text(), "x = 0x1h; ");
}

TEST(Prelexer, DropsTheSpaceOfMembersAndTheirTwins) {
  EXPECT_EQ(prelex("struct S { int f() const device { return 1; } };").text(),
            "struct S { int f() const  { return 1; } };");
  EXPECT_EQ(prelex("struct S { int f() const device { return 1; } int f() const threadgroup { return 1; } };").text(),
            "struct S { int f() const  { return 1; }  };");
  EXPECT_EQ(prelex("struct S { int f() device { return 1; } int f() thread { return 1; }; };").text(),
            "struct S { int f()  { return 1; }  };");
}

TEST(Prelexer, TwinsOfOtherClassesStay) {
  EXPECT_EQ(prelex("struct S { int f() device { return 1; } }; struct T { int f() device { return 2; } };").text(),
            "struct S { int f()  { return 1; } }; struct T { int f()  { return 2; } };");
}

TEST(Prelexer, TwinsThatDoSomethingElseAreRefused) {
  for (const char* body : {"{ return 2; }", "{ return 1 + 1; }", ";"}) {
    const std::string text =
        prelex("struct S { int f() device { return 1; } int f() thread " + std::string(body) + " };").text();
    EXPECT_TRUE(text.starts_with("struct S { int f()  { return 1; } static_assert(false, ")) << text;
  }
}

TEST(Prelexer, TheSecondOfTwoSwizzlesBecomesAValue) {
  EXPECT_EQ(prelex("r = a.xy * b[1].yx + c;").text(), "r = a.xy * __msl_value(b[1].yx) + c;");
  for (const char* source :
       {"r = a.xy * b;", "r = a * b.xy;", "r = a.xy * b.xy();", "r = a.size * b.xy;", "a.xy *= b.yx;"})
    EXPECT_EQ(prelex(source).text(), source);
}

TEST(Prelexer, KeepsTheAddressSpaceOfArrayParameters) {
  EXPECT_EQ(prelex("void f(constant float a[4], int b);").text(), "void f(constant float *a, int b);");
}

TEST(Prelexer, PositionsBehindEditsAreThoseOfTheSource) {
  std::string source = "kernel void k(device int* a [[buffer(0)]],\n              uint i [[thread_position_in_grid]]) "
                       "{ a[i] = here; }\n";
  Rewritten made = prelex(source);
  auto at = static_cast<uint32_t>(made.text().find("here"));
  EXPECT_EQ(made.sourceOffset(at), source.find("here"));
  EXPECT_EQ(made.sourceColumn(2, at - made.offsetOf(2, 1) + 1), source.find("here") - source.find('\n'));
}

TEST(Prelexer, LinesStayWhereAnEditSpansThem) {
  std::string source = "int f(int a [[\n  buffer(0)\n]]);\nint g;\n";
  Rewritten made = prelex(source);
  EXPECT_EQ(std::count(made.text().begin(), made.text().end(), '\n'), 4);
  EXPECT_EQ(made.sourceOffset(static_cast<uint32_t>(made.text().find("int g"))), source.find("int g"));
}

TEST(Prelexer, LinesStayWhereAnArgumentSpansThem) {
  for (const char* source :
       {"int f(int a [[buffer(\n  0\n)]]);\nint g;\n", "int f(int a [[buffer( // first\n 1 /* b\n */)]]);\nint g;\n",
        "int f(int a [[buffer(1\\\n2)]]);\nint g;\n", "float x = 1.\\\n5h;\nint g;\n"}) {
    std::string text = source;
    Rewritten made = prelex(text);
    EXPECT_EQ(std::count(made.text().begin(), made.text().end(), '\n'), std::count(text.begin(), text.end(), '\n'))
        << text;
    EXPECT_EQ(made.sourceOffset(static_cast<uint32_t>(made.text().find("int g"))), text.find("int g"));
  }
  EXPECT_EQ(prelex("f(int a [[buffer(1\\\n2)]])").text(),
            "f(int a __attribute__((annotate(\"msl.buffer\", 12))) \\\n)");
}

TEST(Prelexer, WhatIsWidenedMayBeginAndEndWithWhatIsRewritten) {
  const std::string source = "x = half(1.5bf) + (half)(c ? y[i] : z) + g;\n";
  auto range = [&](const char* text) {
    const auto at = static_cast<uint32_t>(source.find(text));
    return Range{at, at + static_cast<uint32_t>(std::string_view(text).size())};
  };
  const Rewritten made = prelex(source, {range("1.5bf"), range("(c ? y[i] : z)")});
  EXPECT_EQ(made.text(),
            "x = half(__msl_wide(((bfloat)1.5f))) + (half)__msl_wide((c ? __msl_value(y[i]) : __msl_value(z))) + g;\n");
  // Places of the text stand for the same places of the source as without it.
  const Rewritten plain = prelex(source);
  for (const char* text : {"half", "((bfloat)1.5f)", "c ?", "y[i]", "+ g"})
    EXPECT_EQ(made.sourceOffset(static_cast<uint32_t>(made.text().find(text))),
              plain.sourceOffset(static_cast<uint32_t>(plain.text().find(text))))
        << text;
  // The bytes that became a literal end where it ends.
  const std::string literal = "((bfloat)1.5f)";
  EXPECT_EQ(plain.sourceEnd(static_cast<uint32_t>(plain.text().find(literal) + literal.size())),
            source.find(") + (half)"));
  EXPECT_EQ(plain.sourceEnd(static_cast<uint32_t>(plain.text().find(" + g"))), source.find(" + g"));
}

TEST(Prelexer, PragmasThatForbidContractionAreSeen) {
  for (const char* source :
       {"#pragma METAL fp contract(off)\nint x;", "  # pragma METAL  fp math_mode(safe) contract( off )\n",
        "f() {\n#pragma clang fp contract(off)\n}", "_Pragma(\"METAL fp contract(off)\") int x;",
        "#pragma STDC FP_CONTRACT OFF\n"})
    EXPECT_TRUE(prelex(source).forbidsContraction()) << source;
  for (const char* source : {"#pragma METAL fp contract(fast)\nint x;", "// #pragma METAL fp contract(off)\n",
                             "#pragma METAL internals : enable\nint contract(off);", "#pragma once"})
    EXPECT_FALSE(prelex(source).forbidsContraction()) << source;
}

TEST(Prelexer, EndsOnSourceThatIsCutOff) {
  for (const char* source :
       {"[[", "[[buffer(", "static_cast<", "a ? b", "f(constant float a[", "struct S { int f() const device {", "1h"})
    EXPECT_GE(prelex(source).text().size(), 0u);
}

}  // namespace
}  // namespace vortex::msl::front

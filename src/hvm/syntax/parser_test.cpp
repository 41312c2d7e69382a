#include "hvm/syntax/program.h"

#include <array>
#include <gtest/gtest.h>

namespace {

using namespace vortex::hvm;

std::string errorOf(const std::string& text) {
  auto program = parseText(text, "p.hvm4");
  return program ? "" : program.error().message.substr(0, program.error().message.find('\n'));
}

const Node& mainOf(const Program& program) {
  return program.nodes[program.definitions[program.definitionIndex.at("main")].root];
}

TEST(Parser, LabelsAreBase64NumbersOf16Bits) {
  EXPECT_EQ(encodeName("a"), 1);
  EXPECT_EQ(encodeName("Z"), 52);
  EXPECT_EQ(encodeName("$$"), 63 * 64 + 63);
  EXPECT_EQ(encodeName("o$$"), 0xffff);
  EXPECT_EQ(encodeName("p_a"), -1);
  for (uint32_t code = 1; code < 0x10000; code += 13)
    EXPECT_EQ(encodeName(decodeName(code)), static_cast<int32_t>(code));
}

TEST(Parser, NumbersHave32Bits) {
  auto program = parseText("@main = 0004294967295", "p");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(mainOf(*program).value, 4294967295u);
  EXPECT_EQ(errorOf("@main = 4294967296"), "PARSE_ERROR (p.hvm4:1:9)");
  EXPECT_EQ(errorOf("@main = 1 + 99999999999999999999999999"), "PARSE_ERROR (p.hvm4:1:13)");
  EXPECT_EQ(errorOf("@main = 18446744073709551617"), "PARSE_ERROR (p.hvm4:1:9)");  // 2^64 + 1
  EXPECT_EQ(errorOf("@main = 18446744073709551617n"), "PARSE_ERROR (p.hvm4:1:9)");
  EXPECT_EQ(errorOf("@main = λ{18446744073709551617: 1; 2}"), "PARSE_ERROR (p.hvm4:1:11)");
  EXPECT_EQ(errorOf("@main = λ{4294967296: 1; 2}"), "PARSE_ERROR (p.hvm4:1:11)");
}

TEST(Parser, WhatIsThereOnceIsNotWrittenTwice) {
  EXPECT_EQ(errorOf("@a = 1\n@main = @a\n @a = 2"), "PARSE_ERROR (p.hvm4:3:3)");
  EXPECT_EQ(errorOf("@main = λ{0: 1; 1: 2; 0: 3; 4}"), "PARSE_ERROR (p.hvm4:1:23)");
  EXPECT_EQ(errorOf("@main = λ{'a': 1; 97: 2; 4}"), "PARSE_ERROR (p.hvm4:1:19)");
  EXPECT_EQ(errorOf("@main = λ{#A: 1 #B: 2 #A: 3}"), "PARSE_ERROR (p.hvm4:1:23)");
  EXPECT_EQ(errorOf("@main = λ{[]: 1; #NIL: 2}"), "PARSE_ERROR (p.hvm4:1:18)");
  EXPECT_EQ(errorOf("@main = λ{0: λ{0: 1; 2}; #ZER: 3}"), "");
}

TEST(Parser, EqualityAndConnectivesTakeWhatBindsTighterToTheirRight) {
  for (std::string text : {"1 === 2 < 3", "1 .&. 2 == 3", "1 .|. 2 && 3"}) {
    auto program = parseText("@main = " + text, "p");
    EXPECT_EQ(program->nodes[mainOf(*program).children[1]].kind, NodeKind::Operator) << text;
  }
  for (std::string text : {"1 === 2 == 3", "1 .&. 2 || 3"}) {
    auto program = parseText("@main = " + text, "p");
    EXPECT_EQ(mainOf(*program).kind, NodeKind::Operator) << text;
  }
}

TEST(Parser, ErrorsSayWhatWasProbablyMeant) {
  const auto expects = [](const std::string& text, std::string_view expected) {
    auto program = parseText(text, "p");
    return !program && program.error().message.find("- expected: " + std::string(expected)) != std::string::npos;
  };
  EXPECT_TRUE(expects("@f = 1\n@main = f(1)", "a variable in scope; `@f` is a definition\n"));
  EXPECT_TRUE(expects("@main = Pair{1, 2}", "a variable in scope; `#Pair` is a constructor\n"));
  EXPECT_TRUE(expects("@main = 3.5", "an operator, a call, or the next definition"));
  EXPECT_TRUE(expects("main = 1", "`@name = term` or `#include`\n"));
  EXPECT_TRUE(expects("@main = λ{0: 1, λn. n}", "`;`, a pattern, the default or `}`\n"));
}

TEST(Parser, OtherLettersAfterABackslashAreErrors) {
  EXPECT_EQ(errorOf("@main = \"a\\q\""), "PARSE_ERROR (p.hvm4:1:12)");
  EXPECT_EQ(errorOf("@main = '\\x'"), "PARSE_ERROR (p.hvm4:1:11)");
  EXPECT_EQ(errorOf("@main = \"\\n\\t\\r\\0\\\\\\'\\\"\\`\""), "");
}

TEST(Parser, ConsAndEqualityIgnoreTheLevelOfTheOperatorOnTheirLeft) {
  auto sum = parseText("@main = 2 + 2 === 4", "p");
  EXPECT_EQ(mainOf(*sum).kind, NodeKind::Operator);
  auto list = parseText("@main = 1 * 2 <> []", "p");
  EXPECT_EQ(mainOf(*list).kind, NodeKind::Operator);
  auto left = parseText("@main = 1 - 2 - 3", "p");
  EXPECT_EQ(left->nodes[mainOf(*left).children[0]].kind, NodeKind::Operator);
}

TEST(Parser, AClonedVariableGetsOneDuplicationPerFurtherUse) {
  auto program = parseText("@main = λ&x.[x,x,x]", "p");
  ASSERT_TRUE(program.ok());
  const Node& outer = program->nodes[mainOf(*program).children[0]];
  ASSERT_EQ(outer.kind, NodeKind::Dup);
  EXPECT_EQ(outer.value, kFirstAutomaticLabel);
  const Node& inner = program->nodes[outer.children[1]];
  ASSERT_EQ(inner.kind, NodeKind::Dup);
  EXPECT_EQ(inner.value, kFirstAutomaticLabel + 1);
  EXPECT_EQ(program->nodes[inner.children[0]].side, Side::One);
  EXPECT_EQ(program->nextLabel, kFirstAutomaticLabel + 2);
}

TEST(Parser, ErrorsNameLineAndColumnInCodePoints) {
  EXPECT_EQ(errorOf("@main = λx.\n  y"), "PARSE_ERROR (p.hvm4:2:3)");
  EXPECT_EQ(errorOf("@main = λλ.1"), "PARSE_ERROR (p.hvm4:1:10)");
  EXPECT_EQ(errorOf("@main = (λx.[x, x])"), "PARSE_ERROR (p.hvm4:1:17)");
  EXPECT_EQ(errorOf("@main = &Tup{1,2}"), "PARSE_ERROR (p.hvm4:1:10)");
  EXPECT_EQ(errorOf("@main = 'ab'"), "PARSE_ERROR (p.hvm4:1:11)");
  EXPECT_EQ(errorOf("@main = \"\xff\""), "PARSE_ERROR (p.hvm4:1:10)");
}

TEST(Parser, UnclosedArgumentsNameWhatClosesThem) {
  for (const auto& [text, place, closing] : {std::array{"@main = %log(\"a\"\n", "2:1", "`)`"},
                                             {"@main = [1, 2", "1:14", "`]`"},
                                             {"@main = @f(1]", "1:13", "`)`"},
                                             {"@main = #A{1,,2}", "1:14", "`}`"}}) {
    const auto program = parseText(text, "p");
    ASSERT_FALSE(program.ok()) << text;
    EXPECT_TRUE(
        program.error().message.starts_with(std::string("PARSE_ERROR (p:") + place + ")\n- expected: " + closing))
        << program.error().message;
  }
}

TEST(Parser, DeepNestingIsAnErrorAndLongListsAreNot) {
  std::string deep(100000, '('), text = "@main = [";
  EXPECT_EQ(errorOf("@main = " + deep).substr(0, 13), "PARSE_ERROR (");
  EXPECT_EQ(errorOf("@main = " + std::string(100000, '!')).substr(0, 13), "PARSE_ERROR (");
  for (const char* opening : {"λ", "↑", "&(", "λ{", "#A{", "1<>", "1+", "@f(", "!x=", "λx,", "^(", "%log(", "1n+"}) {
    std::string nested = "@main = ";
    for (int i = 0; i < 100000; ++i)
      nested += opening;
    EXPECT_EQ(errorOf(nested).substr(0, 13), "PARSE_ERROR (") << opening;
  }
  for (int i = 0; i < 100000; ++i)
    text += "1,";
  EXPECT_EQ(errorOf(text + "]"), "");
}

// Every form counts once, whatever functions of the parser read it.
TEST(Parser, FourThousandTermsLieInsideEachOther) {
  for (const auto& [opening, closing] : {std::pair("λx.", ""),
                                         {"λ&x.", ""},
                                         {"λx&.", ""},
                                         {"λ$x.", ""},
                                         {"x,", ""},  // after a first λ
                                         {"λ{0: ", "}"},
                                         {"λ{", "}"},
                                         {"(", ")"},
                                         {"#A{", "}"},
                                         {"[", "]"},
                                         {"↑", ""},
                                         {"1 <> ", ""},
                                         {"@f(", ")"},
                                         {"!x = 1; ", ""},
                                         {"!!x = 1; ", ""},
                                         {"!x&A = 1; ", ""},
                                         {"!x&(1) = 1; ", ""},
                                         {"&A{1, ", "}"}}) {
    for (const auto& [depth, isAllowed] : {std::pair(3999, true), {4000, false}}) {
      const bool isListOfParameters = std::string_view(opening) == "x,";
      std::string text = isListOfParameters ? "@main = λ" : "@main = ";
      for (int i = isListOfParameters; i < depth; ++i)
        text += opening;
      text += isListOfParameters ? "y.7" : "7";
      for (int i = 0; i < depth; ++i)
        text += closing;
      const std::string error = errorOf(text + "\n");
      EXPECT_EQ(error.empty(), isAllowed) << depth << " times " << opening << ": " << error;
    }
  }
}

TEST(Parser, ALetOfALambdaMayHaveAnyLambda) {
  EXPECT_EQ(errorOf("@main = ! f = λ{0: 1; 2}; f(0)"), "");
  EXPECT_EQ(errorOf("@main = ! f = λ&x. x + x; f(0)"), "");
  EXPECT_EQ(errorOf("@main = ! f = λ v; #P{f(1,2), v}"), "");
  EXPECT_EQ(errorOf("@main = ! f = λx.x; f(0)"), "");
}

}  // namespace

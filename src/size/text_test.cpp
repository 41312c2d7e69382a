#include "size/random_tree.h"
#include "size/text.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace {

using namespace vortex::size;

TEST(SizeText, TextReadsBackAsTheSameExpression) {
  test::Random random(11);
  for (int round = 0; round < 20000; ++round) {
    Arena arena, other;
    const Expr expr = random.tree(1 + round % 5).build(arena);
    const std::string text = print(expr);
    auto again = parse(arena, text), elsewhere = parse(other, text);
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(*again, expr) << text;
    ASSERT_EQ(print(*elsewhere), text);
  }
}

TEST(SizeText, OperatorsBindAsDescribed) {
  Arena arena;
  auto printed = [&](const char* text) { return print(*parse(arena, text)); };
  EXPECT_EQ(printed("scalar(0)-(scalar(1)-scalar(2))"), "scalar(0) - (scalar(1) - scalar(2))");
  EXPECT_EQ(printed("(scalar(0) - scalar(1)) - scalar(2)"), "scalar(0) - scalar(1) - scalar(2)");
  EXPECT_EQ(printed("(scalar(0)+1)*ceildiv(dim(0,0),128)<stride(1,0)|!scalar(1)&address(0)==-3"),
            "(scalar(0) + 1) * ceildiv(dim(0,0), 128) < stride(1,0) | !scalar(1) & address(0) == -3");
}

TEST(SizeText, WhatCannotBeReadIsNamed) {
  Arena arena;
  auto message = [&](std::string_view text) {
    auto expr = parse(arena, text);
    return expr ? std::string("read") : expr.error().message;
  };
  EXPECT_NE(message("").find("expected a number, an argument or a function at character 1"), std::string::npos);
  EXPECT_NE(message("dim(0,0) 256 ceildiv").find("expected an operator or the end at character 10"), std::string::npos);
  EXPECT_NE(message("dim(0)").find("`(argument,dimension)`"), std::string::npos);
  EXPECT_NE(message("frobnicate(1)").find("function"), std::string::npos);
  for (const char* text : {"device(0)", "device(clusters0)", "device(clusters9)", "device(clusters)"})
    EXPECT_NE(message(text).find("`(workers)`"), std::string::npos);
  EXPECT_NE(message("min(1)").find("`,` at character 6"), std::string::npos);
  EXPECT_NE(message("(1").find("`)`"), std::string::npos);
  EXPECT_NE(message("99999999999999999999").find("a number"), std::string::npos);
  EXPECT_NE(message(std::string(100000, '(')).find("less nesting"), std::string::npos);
  EXPECT_NE(message(std::string(100000, '!')).find("less nesting"), std::string::npos);
}

/// Random expressions, printed as C row by row, compiled by the system's compiler and compared with evaluate.
TEST(SizeText, CExpressionsHaveTheSameValues) {
  if (std::system("cc --version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no C compiler";
  test::Random random(3);
  Arena arena;
  Table table;
  std::vector<std::pair<Id, test::Tree>> wanted;
  for (int i = 0; i < 150; ++i) {
    test::Tree tree = random.tree(4);
    wanted.emplace_back(table.add(tree.build(arena)), std::move(tree));
  }
  const std::string stem =
      (std::filesystem::path(::testing::TempDir()) / ("size_text_" + std::to_string(std::rand()))).string();
  std::ofstream source(stem + ".c");
  source << "#include <stdint.h>\nstatic int bad(const uint64_t *s) {\n  int64_t v[" << table.rows().size() << "];\n";
  for (size_t i = 0; i < table.rows().size(); ++i) {
    const Row& row = table.rows()[i];
    std::array<std::string, 3> operands;
    for (size_t k = 0; k < 3; ++k)
      operands[k] = "v[" + std::to_string(row.operands[k]) + "]";
    if (row.op != Op::Constant && arity(row.op) == 0)
      operands[0] = "((int64_t)s[" + std::to_string(test::slotOf(row.op, row.operands[0], row.operands[1])) + "])";
    source << "  v[" << i << "] = " << toC(row, operands) << ";\n";
  }
  source << "  int wrong = 0;\n  for (int i = 0; i < " << wanted.size() << "; ++i) wrong |= v[s[" << test::kSlots
         << " + 2 * i]] != (int64_t)s[" << test::kSlots << " + 2 * i + 1];\n  return wrong;\n}\nint main(void) {\n";
  for (int launch = 0; launch < 20; ++launch) {
    std::vector<uint64_t> slots = random.slots();
    source << "  { static const uint64_t s[] = {";
    for (uint64_t slot : slots)
      source << "UINT64_C(" << slot << "), ";
    for (const auto& [id, tree] : wanted)
      source << id.index << ", UINT64_C(" << static_cast<uint64_t>(tree.evaluate(slots)) << "), ";
    source << "};\n    if (bad(s)) return 1; }\n";
  }
  source << "  return 0;\n}\n";
  source.close();
  ASSERT_EQ(std::system(("cc -w -o " + stem + " " + stem + ".c").c_str()), 0);
  EXPECT_EQ(std::system(stem.c_str()), 0);
  std::filesystem::remove(stem);
  std::filesystem::remove(stem + ".c");
}

}  // namespace

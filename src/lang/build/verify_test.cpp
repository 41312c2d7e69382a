#include "lang/build/verify.h"

#include "lang/build/kernel_builder.h"
#include "lang/flow/front.h"

#include <filesystem>
#include <gtest/gtest.h>

namespace {

using namespace vortex;
using namespace vortex::lang;

std::string messages(const Function& kernel) {
  std::string text;
  for (const Violation& violation : verify(kernel))
    text += violation.message + "\n";
  return text;
}

TEST(VerifyTest, KernelsOfTheExamplesKeepTheRules) {
  size_t kernels = 0;
  for (const auto& entry : std::filesystem::directory_iterator("examples")) {
    if (entry.path().extension() != ".vx")
      continue;
    source::SourceManager sources;
    diag::DiagnosticSink sink;
    const auto file = sources.addFile(entry.path().string());
    ASSERT_TRUE(file.ok());
    AnalyzeOptions options;
    options.importPaths = {"std"};
    const auto program = flow::analyze(*file, sources, sink, options, {.races = flow::RacePolicy::Allow});
    for (const Function* kernel : program->kernels) {
      EXPECT_EQ(messages(*kernel), "") << entry.path() << ": " << kernel->uniqueName;
      ++kernels;
    }
  }
  EXPECT_GT(kernels, 30u);
}

class BuiltTest : public testing::Test {
protected:
  source::SourceManager sources_;
  source::SourceRange range_{sources_.addText("k.py", "kernel"), 0, 6};
  Program program_;
  KernelBuilder b_{program_, "k", range_};
  Variable* x_ = b_.tensorParam("x", Scalar::F32, 1, true);
  Expr* index(int64_t value) { return b_.integer(Scalar::I64, value); }
};

TEST_F(BuiltTest, WhatTheBuilderMakesKeepsTheRules) {
  Variable* i = b_.openFor("i", index(0), index(8), index(1));
  b_.openIf(b_.binary(BinaryOp::Lt, b_.read(i), index(5)));
  Variable* v = b_.let("v", b_.element(x_, b_.read(i)), true);
  b_.assign(b_.read(v), b_.binary(BinaryOp::Add, b_.read(v), b_.real(Scalar::F32, 1)));
  b_.assign(b_.element(x_, b_.read(i)), b_.read(v));
  b_.close();
  b_.close();
  EXPECT_EQ(messages(b_.function()), "");
}

TEST_F(BuiltTest, AVariableEndsWithItsBlock) {
  Variable* i = b_.openFor("i", index(0), index(8), index(1));
  Variable* v = b_.let("v", b_.read(i));
  b_.close();
  b_.let("w", b_.read(v));
  EXPECT_EQ(messages(b_.function()), "a variable that is not declared here\n");
}

TEST_F(BuiltTest, BrokenRulesAreNamed) {
  Expr* condition = index(1);
  Expr* statement = program_.newExpr(ExprKind::If, program_.types.unit(), range_);
  statement->args = {condition, b_.function().body};
  Expr* sum = b_.binary(BinaryOp::Add, index(1), index(2));
  sum->args[1] = b_.real(Scalar::F32, 1);
  Expr* assigned = program_.newExpr(ExprKind::Assign, program_.types.unit(), range_);
  assigned->args = {sum, index(1)};
  Expr* element = b_.element(x_, index(0));
  element->args[1] = b_.real(Scalar::F32, 0);
  statement->args[1] = program_.newExpr(ExprKind::Block, program_.types.unit(), range_);
  for (Expr* part : {statement, assigned, element})
    b_.run(part);
  const std::string text = messages(b_.function());
  for (const char* rule : {"a condition that is no bool", "operands of two types", "an assignment to what is no place",
                           "a subscript that is no integer"})
    EXPECT_NE(text.find(rule), std::string::npos) << rule;
}

}  // namespace

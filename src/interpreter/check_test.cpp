// What checked runs report.
#include "interpreter/test_program.h"
#include "ir/size_attr.h"

namespace vortex::interpreter {
namespace {

const std::vector<std::string> kOne = {"1", "1", "1"}, kThreads64 = {"64", "1", "1"}, k2 = {"2", "1", "1"};

/// Runs a per-thread body on one or two blocks of 64 threads with %a: ?xi32 of 64 elements, %r a result of 64.
struct Outcome {
  Finding::Kind kind = Finding::Kind::Assertion;
  std::string text;
};
Outcome runChecked(const std::string& body, bool twoBlocks = false, Options options = {.check = true}) {
  TestProgram program({input("a", "?xi32"), result("r", "?xi32", {"64"})}, {{twoBlocks ? k2 : kOne, kThreads64, body}});
  std::vector<int32_t> a(64, 1);
  std::vector<Argument> arguments{tensorOf(a)};
  std::vector<Finding> findings = program.run(arguments, options);
  return findings.empty() ? Outcome{} : Outcome{findings[0].kind, toText(findings[0])};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Check, AGuardedAccessOutsideIsReportedOnlyWhenChecking) {
  std::string body = perThread(R"(
    %j = arith.addi %i, %one : index
    %v = vx.load %a[%j] guarded : !vx.view<?xi32, global> -> i32
    vx.store %v, %r[%i] : i32, !vx.view<?xi32, global>)");
  EXPECT_EQ(runChecked(body, false, {}).text, "");
  Outcome outcome = runChecked(body);
  EXPECT_EQ(outcome.kind, Finding::Kind::Bounds);
  EXPECT_TRUE(contains(outcome.text, "index 64 is outside dimension 0 of `a`, which has extent 64")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "thread (63, 0, 0) of block (0, 0, 0)")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "test.vx:")) << outcome.text;
}

TEST(Check, SurplusThreadsOfAnInferredGridMayGoOutside) {
  std::string body = perThread(R"(
    %v = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    vx.store %v, %r[%i] guarded : i32, !vx.view<?xi32, global>)");
  TestProgram program({input("a", "?xi32"), result("r", "?xi32", {"dim(0,0)"})},
                      {{{"ceildiv(dim(0,0), 64)", "1", "1"}, kThreads64, body}});
  std::vector<int32_t> a(70, 1);
  std::vector<Argument> arguments{tensorOf(a)};
  EXPECT_TRUE(contains(program.runText(arguments, {.check = true}), "index 70 is outside"));
  mlir::MLIRContext* context = program.module().getContext();
  (*program.module().getOps<ir::KernelOp>().begin())
      ->setAttr("vx.domain", mlir::ArrayAttr::get(context, ir::sizeDim(context, 0, 0)));
  arguments = {tensorOf(a)};
  EXPECT_EQ(program.runText(arguments, {.check = true}), "");
}

TEST(Check, AnUnguardedAccessOutsideAlwaysStops) {
  Outcome outcome =
      runChecked(perThread("%j = arith.subi %i, %one : index\n vx.store %c, %r[%j] : i32, !vx.view<?xi32, global>")
                     .insert(0, "%c = arith.constant 1 : i32"),
                 false, {});
  EXPECT_EQ(outcome.kind, Finding::Kind::Bounds);
  EXPECT_TRUE(contains(outcome.text, "index -1 is outside dimension 0 of `r`")) << outcome.text;
}

TEST(Check, AMaskedOffAccessMayPointAnywhere) {
  EXPECT_EQ(runChecked(perThread(R"(
    %far = arith.muli %i, %nx : index
    %in = arith.cmpi ult, %far, %nx : index
    %v = vx.load %a[%far] mask %in guarded : !vx.view<?xi32, global> -> i32)"))
                .text,
            "");
}

TEST(Check, ReadingWhatNobodyWroteIsReported) {
  Outcome outcome = runChecked(R"(
  %c3 = arith.constant 3 : index
  %s = vx.alloc "cache" : !vx.view<8xi32, shared>
  %v = vx.load %s[%c3] : !vx.view<8xi32, shared> -> i32)");
  EXPECT_EQ(outcome.kind, Finding::Kind::Uninitialised);
  EXPECT_TRUE(contains(outcome.text, "element 3 of `cache` is read before anything was written to it")) << outcome.text;
  outcome = runChecked(perThread("%v = vx.load %r[%i] : !vx.view<?xi32, global> -> i32"));
  EXPECT_EQ(outcome.kind, Finding::Kind::Uninitialised);
  EXPECT_TRUE(contains(outcome.text, "element 0 of `r`")) << outcome.text;
  outcome = runChecked("%l = vx.alloc : !vx.view<4xi32, local>" +
                       perThread("%v = vx.load %l[%one] : !vx.view<4xi32, local> -> i32"));
  EXPECT_EQ(outcome.kind, Finding::Kind::Uninitialised);
}

TEST(Check, BlocksWritingOneElementRace) {
  std::string write = perThread("%c = arith.constant 1 : i32\n vx.store %c, %r[%x] : i32, !vx.view<?xi32, global>");
  EXPECT_EQ(runChecked(write).text, "");
  Outcome outcome = runChecked(write, true);
  EXPECT_EQ(outcome.kind, Finding::Kind::Race);
  EXPECT_TRUE(contains(outcome.text,
                       "write by thread (0, 0, 0) of block (1, 0, 0) and write by thread (0, 0, 0) of block (0, 0, 0)"))
      << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "blocks are unordered"));
}

TEST(Check, ThreadsWritingOneElementRaceUnlessAtomic) {
  std::string target = "%c0 = arith.constant 0 : index\n %c = arith.constant 1 : i32\n";
  Outcome outcome = runChecked(perThread(target + "vx.store %c, %r[%c0] : i32, !vx.view<?xi32, global>"));
  EXPECT_EQ(outcome.kind, Finding::Kind::Race);
  std::string atomic = target + "vx.atomic_store relaxed device %c, %r[%c0] : i32, !vx.view<?xi32, global>\n";
  EXPECT_EQ(runChecked(perThread(atomic), true).text, "");
  outcome = runChecked(perThread(atomic + "%v = vx.load %r[%c0] : !vx.view<?xi32, global> -> i32"));
  EXPECT_EQ(outcome.kind, Finding::Kind::Race);
  EXPECT_TRUE(contains(outcome.text, "atomic write")) << outcome.text;
}

TEST(Check, SyncWarpOrdersOneWarpOnly) {
  auto exchange = [](const std::string& between, const std::string& distance) {
    return R"(
  %s = vx.alloc : !vx.view<64xi32, shared>)" +
           perThread(R"(
    %d = arith.constant )" +
                     distance + R"( : index
    %c = arith.constant 1 : i32
    vx.store %c, %s[%x] : i32, !vx.view<64xi32, shared>
    )" + between + R"(
    %j = arith.xori %x, %d : index
    %v = vx.load %s[%j] : !vx.view<64xi32, shared> -> i32)");
  };
  EXPECT_EQ(runChecked(exchange("vx.warp_barrier", "1")).text, "");
  EXPECT_EQ(runChecked(exchange("", "1")).kind, Finding::Kind::Race);
  // Across warps: the second warp's elements are not even written when the first reads.
  EXPECT_NE(runChecked(exchange("vx.warp_barrier", "32")).text, "");
}

TEST(Check, ReleaseAndAcquireOrderBlocks) {
  // The last block to arrive reads what the first wrote.
  auto lastBlock = [](const char* order) {
    return std::string(R"(
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %c1 = arith.constant 1 : i32
  %bx = vx.block_id x
  vx.store %c1, %r[%bx] : i32, !vx.view<?xi32, global>
  %old = vx.atomic_rmw addi )") +
           order + R"( device %c1, %a[%zero] : !vx.view<?xi32, global> -> i32
  %last = arith.cmpi sgt, %old, %c1 : i32
  scf.if %last {
    %u = vx.load %r[%zero] : !vx.view<?xi32, global> -> i32
    %v = vx.load %r[%one] : !vx.view<?xi32, global> -> i32
  })";
  };
  EXPECT_EQ(runChecked(lastBlock("acq_rel"), true).text, "");
  EXPECT_EQ(runChecked(lastBlock("relaxed"), true).kind, Finding::Kind::Race);
}

TEST(Check, FencesAroundRelaxedAtomicsOrderThreads) {
  // Thread 0 tells the others by a flag that its value is there; lanes of a warp run in order.
  auto message = [](const std::string& release, const std::string& acquire) {
    return "%s = vx.alloc : !vx.view<2xi32, shared>\n" + perThread(R"(
    %zero = arith.constant 0 : index
    %second = arith.constant 1 : index
    %c1 = arith.constant 1 : i32
    %isFirst = arith.cmpi eq, %x, %zero : index
    scf.if %isFirst {
      vx.store %c1, %s[%zero] : i32, !vx.view<2xi32, shared>
      )" + release + R"(
      vx.atomic_store relaxed block %c1, %s[%second] : i32, !vx.view<2xi32, shared>
    } else {
      %flag = vx.atomic_load relaxed block %s[%second] : !vx.view<2xi32, shared> -> i32
      )" + acquire + R"(
      %isThere = arith.cmpi eq, %flag, %c1 : i32
      scf.if %isThere {
        %v = vx.load %s[%zero] : !vx.view<2xi32, shared> -> i32
      }
    })");
  };
  for (const char* order : {"release", "acq_rel", "seq_cst"})
    EXPECT_EQ(runChecked(message(std::string("vx.fence ") + order + " block", "vx.fence acquire block")).text, "");
  EXPECT_EQ(runChecked(message("", "vx.fence seq_cst block")).kind, Finding::Kind::Race);
  EXPECT_EQ(runChecked(message("vx.fence seq_cst block", "")).kind, Finding::Kind::Race);
  EXPECT_EQ(runChecked(message("vx.fence acquire block", "vx.fence acquire block")).kind, Finding::Kind::Race);
}

TEST(Check, BlockLevelCodeRacesWithThreads) {
  std::string write = "%s = vx.alloc : !vx.view<64xi32, shared>" +
                      perThread("%c = arith.constant 1 : i32\n vx.store %c, %s[%x] : i32, !vx.view<64xi32, shared>");
  std::string read = "%zero = arith.constant 0 : index\n%v = vx.load %s[%zero] : !vx.view<64xi32, shared> -> i32";
  EXPECT_EQ(runChecked(write + read).kind, Finding::Kind::Race);
  EXPECT_EQ(runChecked(write + "vx.barrier\n" + read).text, "");
}

TEST(Check, AWarpOperationUnderDivergenceIsReported) {
  Outcome outcome = runChecked(perThread(R"(
    %c5 = arith.constant 5 : index
    %low = arith.cmpi ult, %x, %c5 : index
    scf.if %low {
      %s = vx.warp_reduce addi %x : index
    })"));
  EXPECT_EQ(outcome.kind, Finding::Kind::Divergence);
  EXPECT_TRUE(contains(outcome.text, "reached by 5 of the warp's 32 threads")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "thread (5, 0, 0) of block (0, 0, 0) does not reach it")) << outcome.text;
}

TEST(Check, AssertionsAndPrintsNameThreadAndPlace) {
  std::vector<std::string> lines;
  Options options;
  options.print = [&](std::string_view line) { lines.emplace_back(line); };
  Outcome outcome = runChecked(perThread(R"(
    %c2 = arith.constant 2 : index
    %low = arith.cmpi ult, %x, %c2 : index
    %half = arith.constant 2.5 : f16
    %neg = arith.constant -1 : i8
    vx.print "{}: {} {} {}!", %x, %half, %neg, %neg : index, f16, i8, i8 {is_unsigned = array<i1: true, false, false, true>}
    vx.assert %low, "x is small" id "E0701")"),
                               false, options);
  EXPECT_EQ(outcome.kind, Finding::Kind::Assertion);
  EXPECT_TRUE(contains(outcome.text, "x is small\nin thread (2, 0, 0)")) << outcome.text;
  ASSERT_EQ(lines.size(), 32u);
  EXPECT_EQ(lines[1], "1: 2.5 -1 255!");
}

TEST(Check, OverflowOfCheckedArithmeticIsReported) {
  std::string body = perThread(R"(
    %big = arith.constant 2147483600 : i32
    %kWide = arith.index_cast %x : index to i64
    %k = arith.trunci %kWide : i64 to i32
    %s = vx.checked_addSIGN %big, %k : i32)");
  auto with = [&](const std::string& sign) {
    std::string text = body;
    return text.replace(text.find("SIGN"), 4, sign);
  };
  EXPECT_EQ(runChecked(with(" unsigned"), false, {.check = true, .overflow = true}).text, "");
  EXPECT_EQ(runChecked(with("")).text, "");
  EXPECT_EQ(runChecked(with(""), false, {.check = true, .overflow = true}).kind, Finding::Kind::Overflow);
}

TEST(Check, ShapesConstraintsAndStepsAreChecked) {
  TestProgram program({input("a", "?x4xi32")}, {{kOne, kOne, ""}});
  std::vector<int32_t> a(15);
  std::vector<Argument> arguments{tensorOf(a, {5, 3})};
  EXPECT_TRUE(contains(program.runText(arguments), "argument 0 (`a`): dimension 1 has extent 3 instead of 4"));

  TestProgram endless({input("a", "?xi32")}, {{kOne, kOne, R"(
  %true = arith.constant true
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    %n = vx.dim %a, 0 : !vx.view<?xi32, global>
    scf.yield
  })"}});
  arguments = {tensorOf(a)};
  auto interpreter = Interpreter::create(endless.module());
  ASSERT_TRUE(interpreter.ok());
  auto outcome = interpreter->run(arguments, {.maxSteps = 1000});
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome->size(), 1u);
  EXPECT_EQ(outcome->front().kind, Finding::Kind::Steps);
  EXPECT_TRUE(contains(outcome->front().message, "executed 1000 operations")) << outcome->front().message;
}

TEST(Check, AConstraintNamesItsOperands) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"MLIR(
vx.entry @k : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> () args [
  {name = "a", role = #vx.role<param>, access = #vx.access<read>}, {name = "b", role = #vx.role<param>, access = #vx.access<read>}]
  constraints [#vx.constraint<#vx.size<"dim(0,0) == dim(1,0)">, "lengths {0} and {1} differ ({0})", #vx.size<"dim(0,0)">, #vx.size<"dim(1,0)">>])MLIR",
                                                        mlir::ParserConfig(&context), "test.vx");
  ASSERT_TRUE(module);
  auto interpreter = Interpreter::create(*module);
  ASSERT_TRUE(interpreter.ok());
  std::vector<float> a(3), b(4);
  std::vector<Argument> arguments{tensorOf(a), tensorOf(b)};
  auto findings = interpreter->run(arguments);
  ASSERT_TRUE(findings.ok());
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ((*findings)[0].kind, Finding::Kind::Constraint);
  EXPECT_EQ((*findings)[0].message, "lengths 3 and 4 differ (3)");
}

TEST(Check, AnUnknownOperationIsNamed) {
  TestProgram program(
      {input("a", "?xi32")},
      {{kOne, kOne, "%c = arith.constant 1 : index\nscf.parallel (%i) = (%c) to (%c) step (%c) { scf.reduce }"}});
  auto interpreter = Interpreter::create(program.module());
  ASSERT_FALSE(interpreter.ok());
  EXPECT_TRUE(contains(interpreter.error().message, "does not execute 'scf.parallel'")) << interpreter.error().message;
}

}  // namespace
}  // namespace vortex::interpreter

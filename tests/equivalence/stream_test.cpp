// Softmax of a product, multiplied: the loop over chunks computes what the program did, and what only resembles it stays as it is.
#include "base/fresh_seed.h"
#include "interpreter/interpreter.h"
#include "ir/vx.h"
#include "passes/build/stream_bounds.h"
#include "passes/phases.h"
#include "passes/stream_reductions.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace vortex::passes {
namespace {

/// Attention over [b, s, d]. Parts are texts of operations; each makes the tile that it is named after.
struct Attention {
  std::string scores = "%s = arith.mulf %qk, %eighth fastmath<contract> : tensor<?x?x?xf32>";
  std::string maximum = "%m = vx.reduce maxf %s dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>";
  std::string power = "%d = arith.subf %s, %mb fastmath<contract> : tensor<?x?x?xf32>\n"
                      "%x = math.exp %d fastmath<contract> : tensor<?x?x?xf32>";
  std::string sum = "%l = vx.reduce addf %x dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>";
  std::string weights = "%w = arith.divf %x, %lb fastmath<contract> : tensor<?x?x?xf32>";
  std::string product = "%o = vx.dot %w, %v, %zo : tensor<?x?x?xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>";
  std::string more;  ///< before the product

  std::string text() const {
    const std::string view = "!vx.view<?x?x?xf32, global>", row = "!vx.view<?x?xf32, global>";
    const std::string types = view + ", " + view + ", " + view + ", " + view + ", " + view + ", " + row;
    std::string out = "vx.entry @a : (" + types + ") -> () args [";
    for (const char* name : {"q", "k", "v", "bias", "out", "lse"})
      out += std::string(name[0] == 'q' ? "" : ", ") + "{name = \"" + name +
             "\", role = #vx.role<param>, access = #vx.access<readwrite>}";
    out += "]\nvx.kernel @a.body(%qv: " + view + ", %kv: " + view + ", %vv: " + view + ", %bv: " + view +
           ", %ov: " + view + ", %rv: " + row + ") attributes {whole_tensor} {\n%c0 = arith.constant 0 : index\n";
    for (auto [name, of, dim] : {std::tuple{"b", "q", "0"}, {"s", "q", "1"}, {"dq", "q", "2"}, {"t", "k", "1"}})
      out += std::string("%n") + name + " = vx.dim %" + of + "v, " + dim + " : " + view + "\n";
    out += "%ne = vx.dim %vv, 2 : " + view + "\n";
    for (auto [name, sizes] : {std::pair{"q", "%ns, %ndq"}, {"k", "%nt, %ndq"}, {"v", "%nt, %ne"}, {"b", "%ns, %nt"}})
      out += std::string("%") + name + " = vx.tile_load %" + name + "v[%c0, %c0, %c0] sizes(%nb, " + sizes +
             ") inbounds : " + view + " -> tensor<?x?x?xf32>\n";
    auto splat = [](const char* name, const char* value, const char* sizes) {
      return std::string("%") + name + "c = arith.constant " + value + " : f32\n%" + name + " = vx.broadcast %" + name +
             "c dims [] sizes(%nb, " + sizes + ") : f32 -> tensor<?x?x?xf32>\n";
    };
    out += splat("eighth", "0.125", "%ns, %nt") + splat("zs", "0.0", "%ns, %nt") + splat("zo", "0.0", "%ns, %ne") +
           splat("inf", "0xFF800000", "%ns, %nt");
    out += "%kt = vx.transpose %k [0, 2, 1] : tensor<?x?x?xf32> -> tensor<?x?x?xf32>\n"
           "%qk = vx.dot %q, %kt, %zs : tensor<?x?x?xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>\n"
           "%row = vx.iota 1 sizes(%nb, %ns, %nt) -> tensor<?x?x?xindex>\n"
           "%column = vx.iota 2 sizes(%nb, %ns, %nt) -> tensor<?x?x?xindex>\n";
    const std::string repeat = " dims [0, 1] sizes(%nb, %ns, %nt) : tensor<?x?xf32> -> tensor<?x?x?xf32>\n";
    out += scores + "\n" + maximum + "\n%mb = vx.broadcast %m" + repeat + power + "\n" + sum +
           "\n%lb = vx.broadcast %l" + repeat + weights + "\n" + more + "\n" + product + "\n";
    return out + "vx.tile_store %o, %ov[%c0, %c0, %c0] inbounds : tensor<?x?x?xf32>, " + view + "\nvx.return\n}\n";
  }
};

class StreamTest : public ::testing::Test {
protected:
  StreamTest() {
    mlir::DialectRegistry registry;
    ir::registerVxDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const Attention& program) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(program.text(), mlir::ParserConfig(&context_));
    VORTEX_CHECK(module, "%s", program.text().c_str());
    return module;
  }

  static unsigned loopsIn(mlir::ModuleOp module) {
    unsigned loops = 0;
    module.walk([&](mlir::scf::ForOp loop) { loops += loop->hasAttr(kStreamedAttr); });
    return loops;
  }

  static std::string textOf(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream(text) << module;
    return text;
  }

  struct Sizes {
    int64_t b, s, d, t, e;
  };

  struct Data {
    std::vector<std::vector<float>> tensors;
    std::vector<std::vector<int64_t>> extents;
  };

  Data draw(const Sizes& n) {
    Data data;
    data.extents = {{n.b, n.s, n.d}, {n.b, n.t, n.d}, {n.b, n.t, n.e}, {n.b, n.s, n.t}, {n.b, n.s, n.e}, {n.b, n.s}};
    std::normal_distribution<float> normal;
    for (const auto& extents : data.extents) {
      size_t count = 1;
      for (int64_t extent : extents)
        count *= static_cast<size_t>(extent);
      data.tensors.emplace_back(count);
      for (float& x : data.tensors.back())
        x = data.tensors.size() > 4 ? 12345.0f : normal(random_);
    }
    return data;
  }

  static void run(mlir::ModuleOp module, Data& data) {
    auto interpreter = interpreter::Interpreter::create(module);
    ASSERT_TRUE(interpreter) << interpreter.error().message;
    std::vector<interpreter::Argument> arguments;
    for (auto [tensor, extents] : llvm::zip(data.tensors, data.extents))
      arguments.push_back(interpreter::Argument::tensor(tensor.data(), extents));
    auto findings = interpreter->run(arguments);
    ASSERT_TRUE(findings) << findings.error().message;
    ASSERT_TRUE(findings->empty()) << interpreter::toText(findings->front());
  }

  static void compare(const Data& found, const Data& expected) {
    for (size_t number : {4, 5})
      for (auto [a, b] : llvm::zip(found.tensors[number], expected.tensors[number])) {
        if (std::isnan(b) || std::isinf(b))
          ASSERT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << a << " instead of " << b;
        else
          ASSERT_NEAR(a, b, 2e-5 * (1 + std::abs(b)));
      }
  }

  /// The loop as a whole-tensor kernel, then in blocks.
  void expectSame(const Attention& program, const Sizes& sizes, int64_t step) {
    SCOPED_TRACE(program.text());
    SCOPED_TRACE("t " + std::to_string(sizes.t) + " step " + std::to_string(step));
    auto before = parse(program), after = parse(program);
    streamReductions(*after, step);
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*after))) << textOf(*after);
    ASSERT_GE(loopsIn(*after), 1u) << textOf(*after);
    Data drawn = draw(sizes), expected = drawn, whole = drawn, blocks = drawn;
    run(*before, expected);
    run(*after, whole);
    compare(whole, expected);
    TensorSchedule schedule;
    schedule.elementsPerBlock = 8, schedule.dotRows = 3, schedule.dotColumns = 4, schedule.minInner = 1;
    ASSERT_TRUE(mlir::succeeded(makePhases(*after, schedule)));
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*after))) << textOf(*after);
    run(*after, blocks);
    compare(blocks, expected);
    // Chunks that masks leave whole apart from others.
    after->walk([&](ir::KernelOp phase) { boundStreams(phase, true); });
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*after))) << textOf(*after);
    Data apart = drawn;
    run(*after, apart);
    compare(apart, expected);
  }

  void expectUnchanged(const Attention& program, const std::string& reason) {
    SCOPED_TRACE(program.text());
    auto module = parse(program);
    streamReductions(*module, 4);
    EXPECT_EQ(loopsIn(*module), 0u);
    auto notes = (*module->getOps<ir::EntryOp>().begin())->getAttrOfType<mlir::ArrayAttr>(kNotesAttr);
    if (reason.empty()) {
      EXPECT_FALSE(notes);
      return;
    }
    ASSERT_TRUE(notes && notes.size() == 1);
    EXPECT_NE(llvm::cast<mlir::StringAttr>(notes[0]).str().find(reason), std::string::npos)
        << llvm::cast<mlir::StringAttr>(notes[0]).str();
  }

  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  unsigned seed_ = base::freshSeed();
  std::mt19937 random_{seed_};
};

const char* kStoreLse = "%ll = math.log %l fastmath<contract> : tensor<?x?xf32>\n"
                        "%lse = arith.addf %m, %ll fastmath<contract> : tensor<?x?xf32>\n"
                        "vx.tile_store %lse, %rv[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>";

std::vector<std::string> scoreForms() {
  const std::string scaled = "%s0 = arith.mulf %qk, %eighth fastmath<contract> : tensor<?x?x?xf32>\n",
                    tile = " : tensor<?x?x?xf32>", masked = ", %s0, %inf : tensor<?x?x?xi1>, tensor<?x?x?xf32>";
  return {
      Attention().scores,
      scaled + "%s = arith.addf %s0, %b fastmath<contract>" + tile,
      scaled + "%s = math.tanh %s0 fastmath<contract>" + tile,
      scaled + "%c = arith.cmpi ule, %column, %row : tensor<?x?x?xindex>\n%s = arith.select %c" + masked,
      scaled + "%c = arith.cmpi ugt, %column, %row : tensor<?x?x?xindex>\n%s = arith.select %c, %inf, %s0 : "
               "tensor<?x?x?xi1>, tensor<?x?x?xf32>",
      // columns of which the first rows see none
      scaled + "%c = arith.cmpi ult, %column, %row : tensor<?x?x?xindex>\n%s = arith.select %c" + masked,
      scaled + "%c = arith.cmpf ogt, %b, %zs : tensor<?x?x?xf32>\n%s = arith.select %c" + masked,
      scaled + "%n = arith.truncf %s0 : tensor<?x?x?xf32> to tensor<?x?x?xbf16>\n%s = arith.extf %n : "
               "tensor<?x?x?xbf16> to tensor<?x?x?xf32>",
  };
}

TEST_F(StreamTest, RandomProgramsKeepTheirResults) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const auto scores = scoreForms();
  const std::string tile = " : tensor<?x?x?xf32>";
  const std::vector<std::string> weights = {
      Attention().weights,
      "%one = arith.constant 1.0 : f32\n%ones = vx.broadcast %one dims [] sizes(%nb, %ns) : f32 -> tensor<?x?xf32>\n"
      "%rl = arith.divf %ones, %l fastmath<contract> : tensor<?x?xf32>\n%rb = vx.broadcast %rl dims [0, 1] sizes(%nb, "
      "%ns, %nt) : tensor<?x?xf32> -> tensor<?x?x?xf32>\n%w = arith.mulf %x, %rb fastmath<contract>" +
          tile,
      "%xb = arith.mulf %b, %x fastmath<contract>" + tile + "\n%w = arith.divf %xb, %lb fastmath<contract>" + tile,
      "%wl = arith.divf %x, %lb fastmath<contract>" + tile + "\n%w = arith.mulf %wl, %b fastmath<contract>" + tile,
      "%keep = arith.cmpf ogt, %b, %zs" + tile +
          "\n%xk = arith.select %keep, %x, %zs : tensor<?x?x?xi1>, "
          "tensor<?x?x?xf32>\n%w = arith.divf %xk, %lb fastmath<contract>" +
          tile,
      "%nx = arith.negf %x" + tile + "\n%xe = arith.mulf %nx, %eighth fastmath<contract>" + tile +
          "\n%w = arith.divf %xe, %lb fastmath<contract>" + tile,
  };
  for (int round = 0; round < 120 && !HasFatalFailure(); ++round) {
    Attention program;
    program.scores = scores[random_() % scores.size()];
    program.weights = weights[random_() % weights.size()];
    if (random_() % 3 == 0)
      program.power =
          "%d = arith.subf %s, %mb fastmath<contract>" + tile + "\n%x = math.exp2 %d fastmath<contract>" + tile;
    if (random_() % 4 == 0)
      program.sum = "%xs = arith.mulf %x, %b fastmath<contract>" + tile + "\n%l = vx.reduce addf %xs dims [2]" + tile +
                    " -> tensor<?x?xf32>";
    if (random_() % 2)
      program.more = kStoreLse;
    auto size = [&](int64_t most) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(most)); };
    Sizes sizes{1 + size(2), 1 + size(9), 1 + size(6), size(14), 1 + size(5)};
    // What divides by a sum that may be anything is no test of rounding.
    if (program.sum.find("%b") != std::string::npos)
      program.weights = "%w = arith.mulf %x, %b fastmath<contract>" + tile;
    expectSame(program, sizes, 1 + size(8));
  }
}

/// Conditions on positions, of which some keep nothing of many chunks, and the same chosen the other way round.
std::vector<std::string> conditions() {
  const std::string tile = " : tensor<?x?x?xindex>", narrow = " : tensor<?x?x?xi32>", bits = " : tensor<?x?x?xi1>",
                    sizes = " dims [] sizes(%nb, %ns, %nt) : ";
  const std::string three = "%c3 = arith.constant 3 : index\n%t3 = vx.broadcast %c3" + sizes +
                            "index -> tensor<?x?x?xindex>\n",
                    many = "%c9 = arith.constant 2147483640 : i32\n%t9 = vx.broadcast %c9" + sizes +
                           "i32 -> tensor<?x?x?xi32>\n%ci = arith.trunci %cj : tensor<?x?x?xi64> to "
                           "tensor<?x?x?xi32>\n",
                    cast = "%cj = arith.index_castui %column : tensor<?x?x?xindex> to tensor<?x?x?xi64>\n";
  return {
      "%c = arith.cmpi ule, %column, %row" + tile,
      "%c = arith.cmpi sgt, %row, %column" + tile,
      "%c = arith.cmpi uge, %column, %row" + tile,
      three + "%p = arith.addi %row, %t3" + tile + "\n%c = arith.cmpi slt, %column, %p" + tile,
      three + "%p = arith.subi %row, %t3" + tile + "\n%c = arith.cmpi sgt, %column, %p" + tile,
      // an unsigned difference that wraps
      three + "%p = arith.subi %row, %t3" + tile + "\n%c = arith.cmpi ugt, %column, %p" + tile,
      three + "%p = arith.subi %column, %row" + tile + "\n%c = arith.cmpi ult, %p, %t3" + tile,
      // a window
      three + "%a = arith.cmpi ule, %column, %row" + tile + "\n%p = arith.addi %column, %t3" + tile +
          "\n%b0 = arith.cmpi ugt, %p, %row" + tile + "\n%c = arith.andi %a, %b0" + bits,
      // rows see what is before them, and the first three
      three + "%a = arith.cmpi ule, %column, %row" + tile + "\n%b0 = arith.cmpi ult, %column, %t3" + tile +
          "\n%c = arith.ori %a, %b0" + bits,
      "%a = arith.cmpi ule, %column, %row" + tile +
          "\n%b0 = arith.cmpf ogt, %b, %zs : tensor<?x?x?xf32>\n%c = "
          "arith.andi %a, %b0" +
          bits,
      "%a = arith.cmpi ule, %column, %row" + tile +
          "\n%b0 = arith.cmpf ogt, %b, %zs : tensor<?x?x?xf32>\n%c = "
          "arith.ori %a, %b0" +
          bits,
      // sums that wrap at the width of the program's integers
      cast + many + "%p = arith.addi %ci, %t9" + narrow + "\n%c = arith.cmpi slt, %p, %t9" + narrow,
      three + "%p = arith.muli %column, %t3" + tile + "\n%c = arith.cmpi ult, %p, %row" + tile,
  };
}

TEST_F(StreamTest, MasksSkipNothingThatCounts) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const std::string scaled = "%s0 = arith.mulf %qk, %eighth fastmath<contract> : tensor<?x?x?xf32>\n";
  for (const std::string& condition : conditions())
    for (int form = 0; form < 4 && !HasFatalFailure(); ++form) {
      Attention program;
      const bool isKept = form % 2 == 0, isScaledAfter = form >= 2;
      program.scores = isScaledAfter ? "" : scaled;
      program.scores += condition + "\n%x0 = arith.select %c, " + (isKept ? "%s1, %inf" : "%inf, %s1") +
                        " : tensor<?x?x?xi1>, tensor<?x?x?xf32>\n" +
                        "%s = arith.mulf %x0, %eighth fastmath<contract> : tensor<?x?x?xf32>";
      for (size_t at; (at = program.scores.find("%s1")) != std::string::npos;)
        program.scores.replace(at, 3, isScaledAfter ? "%qk" : "%s0");
      auto size = [&](int64_t most) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(most)); };
      expectSame(program, {1 + size(2), 1 + size(14), 1 + size(4), 1 + size(20), 1 + size(4)}, 1 + size(5));
    }
}

/// NaN in rows of V that a mask takes from every query of a block stays there.
TEST_F(StreamTest, ChunksWithNothingLeftAreNotRead) {
  Attention program;
  const std::string tile = " : tensor<?x?x?xindex>";
  program.scores = "%c4 = arith.constant 4 : index\n%t4 = vx.broadcast %c4 dims [] sizes(%nb, %ns, %nt) : index -> "
                   "tensor<?x?x?xindex>\n%a = arith.cmpi ule, %column, %row" +
                   tile + "\n%p = arith.addi %column, %t4" + tile + "\n%b0 = arith.cmpi ugt, %p, %row" + tile +
                   "\n%c = arith.andi %a, %b0 : tensor<?x?x?xi1>\n%s = arith.select %c, %qk, %inf : "
                   "tensor<?x?x?xi1>, tensor<?x?x?xf32>";
  for (bool apart : {false, true}) {
    const Sizes sizes{1, 6, 3, 24, 2};
    Data data = draw(sizes), expected = data;
    for (int64_t key = 8; key < sizes.t; ++key)
      for (int64_t column = 0; column < sizes.e; ++column)
        data.tensors[2][static_cast<size_t>(key * sizes.e + column)] = NAN;
    auto before = parse(program), after = parse(program);
    run(*before, expected);
    streamReductions(*after, 4);
    TensorSchedule schedule;
    schedule.elementsPerBlock = 8, schedule.dotRows = 3, schedule.dotColumns = 4, schedule.minInner = 1;
    ASSERT_TRUE(mlir::succeeded(makePhases(*after, schedule)));
    if (apart)
      after->walk([&](ir::KernelOp phase) { boundStreams(phase, true); });
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*after))) << textOf(*after);
    run(*after, data);
    compare(data, expected);
  }
}

TEST_F(StreamTest, SeveralProductsAndSumsShareALoop) {
  Attention program;
  program.more = "%w2 = arith.mulf %x, %b fastmath<contract> : tensor<?x?x?xf32>\n"
                 "%l2 = vx.reduce addf %w2 dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>\n"
                 "vx.tile_store %l2, %rv[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>\n"
                 "%o2 = vx.dot %w2, %v, %zo : tensor<?x?x?xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>";
  program.product = "%o1 = vx.dot %w, %v, %zo : tensor<?x?x?xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>\n"
                    "%o = arith.addf %o1, %o2 : tensor<?x?x?xf32>";
  expectSame(program, {2, 5, 3, 11, 4}, 4);
}

TEST_F(StreamTest, ATensorTimesItselfIsStreamed) {
  Attention program;
  program.product = "%kk = vx.tile_load %kv[%c0, %c0, %c0] sizes(%nb, %nt, %ndq) inbounds : !vx.view<?x?x?xf32, "
                    "global> -> tensor<?x?x?xf32>\n%zk = vx.broadcast %zoc dims [] sizes(%nb, %ns, %ndq) : f32 -> "
                    "tensor<?x?x?xf32>\n%o = vx.dot %w, %k, %zk : tensor<?x?x?xf32>, tensor<?x?x?xf32> -> "
                    "tensor<?x?x?xf32>";
  expectSame(program, {1, 6, 4, 9, 4}, 4);
}

TEST_F(StreamTest, NearMissesStayAsTheyAre) {
  const std::string tile = " : tensor<?x?x?xf32>", view = "!vx.view<?x?x?xf32, global>";
  auto with = [](std::string Attention::* part, const std::string& text) {
    Attention program;
    program.*part = text;
    return program;
  };
  expectUnchanged(with(&Attention::maximum, "%m = vx.reduce minf %s dims [2]" + tile + " -> tensor<?x?xf32>"), "");
  expectUnchanged(with(&Attention::power, "%d = arith.subf %qk, %mb fastmath<contract>" + tile +
                                              "\n%x = math.exp %d fastmath<contract>" + tile),
                  "");
  expectUnchanged(with(&Attention::power, "%half = arith.mulf %mb, %eighth fastmath<contract>" + tile +
                                              "\n%d = arith.subf %s, %half fastmath<contract>" + tile +
                                              "\n%x = math.exp %d fastmath<contract>" + tile),
                  "is not the maximum");
  expectUnchanged(with(&Attention::power, "%d = arith.subf %s, %mb" + tile + "\n%x = math.exp %d" + tile), "@strict");
  expectUnchanged(with(&Attention::power, "%d = arith.subf %s, %mb fastmath<contract>" + tile +
                                              "\n%x = math.sin %d fastmath<contract>" + tile),
                  "");
  for (const char* tensor : {"%x", "%w", "%s", "%mb"})
    expectUnchanged(with(&Attention::more,
                         std::string("vx.tile_store ") + tensor + ", %bv[%c0, %c0, %c0] inbounds" + tile + ", " + view),
                    "stored");
  expectUnchanged(with(&Attention::more, "vx.tile_store %zo, %vv[%c0, %c0, %c0] inbounds" + tile + ", " + view),
                  "elementwise functions of loads");
  expectUnchanged(with(&Attention::weights, "%xx = arith.mulf %x, %x fastmath<contract>" + tile +
                                                "\n%w = arith.divf %xx, %lb fastmath<contract>" + tile),
                  "not linear");
  expectUnchanged(with(&Attention::weights, "%w = arith.divf %lb, %x fastmath<contract>" + tile), "not linear");
  expectUnchanged(with(&Attention::weights, "%w = arith.addf %x, %lb fastmath<contract>" + tile), "not linear");
  expectUnchanged(with(&Attention::sum, "%l = vx.reduce mulf %x dims [2]" + tile + " -> tensor<?x?xf32>"),
                  "something else than the maximum and sums");
  expectUnchanged(with(&Attention::scores, "%s = arith.mulf %b, %eighth fastmath<contract>" + tile),
                  "functions of one product");
  expectUnchanged(with(&Attention::scores, "%qk2 = vx.dot %q, %kt, %qk" + tile +
                                               ", tensor<?x?x?xf32> -> "
                                               "tensor<?x?x?xf32>\n%s = arith.addf %qk2, %qk fastmath<contract>" +
                                               tile),
                  "functions of one product");
  expectUnchanged(with(&Attention::scores, "%s = vx.scan addf %qk dim 2" + tile), "something else");
  expectUnchanged(with(&Attention::product, "%ov2 = vx.tile_load %ov[%c0, %c0, %c0] sizes(%nb, %ns, %ne) inbounds : " +
                                                view + " -> tensor<?x?x?xf32>\n%o = vx.dot %w, %v, %ov2" + tile +
                                                ", tensor<?x?x?xf32> -> tensor<?x?x?xf32>"),
                  "starts from other sums");
}

}  // namespace
}  // namespace vortex::passes

#include "lang/syntax/ast_text.h"
#include "lang/syntax/parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace vortex::lang::syntax {
namespace {

struct Parsed {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  std::unique_ptr<Module> module;
  explicit Parsed(std::string text) { module = parse(sources.addText("t.vx", std::move(text)), sources, sink); }
  std::string errors() const { return diag::renderText(sink.all(), sources); }
  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const diag::Diagnostic& diagnostic : sink.all())
      ids.push_back(diagnostic.id);
    return ids;
  }
};

/// The tree of the statements of `fn f() { … }`, one line each.
std::string statements(const std::string& body) {
  Parsed parsed("fn f() {\n" + body + "\n}\n");
  EXPECT_EQ(parsed.errors(), "");
  std::string out;
  for (const Stmt* stmt : parsed.module->items[0]->as<FunctionItem>()->body->stmts)
    out += (out.empty() ? "" : "\n") + printTree(stmt);
  return out;
}

TEST(Parser, OperatorsBindAsDocumented) {
  EXPECT_EQ(statements("a + b * c - d"), "(- (+ a (* b c)) d)");
  EXPECT_EQ(statements("-x ** 2"), "(- (** x 2))");
  EXPECT_EQ(statements("2 ** -y ** z"), "(** 2 (- (** y z)))");
  EXPECT_EQ(statements("a ** b ** c"), "(** a (** b c))");
  EXPECT_EQ(statements("a || b && c == d | e ^ f & g << h + i"),
            "(|| a (&& b (== c (| d (^ e (& f (<< g (+ h i))))))))");
  EXPECT_EQ(statements("acc + q @ k.transpose() / sqrt(D)"), "(+ acc (/ (@ q (call (. k transpose))) (call sqrt D)))");
  EXPECT_EQ(statements("x as f32 @ y"), "(@ (as x f32) y)");
  EXPECT_EQ(statements("x as usize < y"), "(< (as x usize) y)");
  EXPECT_EQ(statements("-x as u32"), "(as (- x) u32)");
  EXPECT_EQ(statements("x as f32 ** 2"), "(** (as x f32) 2)");
  EXPECT_EQ(statements("!a && *b == &c"), "(&& (! a) (== (* b) (& c)))");
  EXPECT_EQ(statements("&&x"), "(& (& x))");
  EXPECT_EQ(statements("(a < b) == (c < d)"), "(== (< a b) (< c d))");
}

TEST(Parser, RangesAndSlices) {
  EXPECT_EQ(statements("a[block_m..block_m+128, k+32..+32]"),
            "(index a (.. block_m (+ block_m 128)) (..+ (+ k 32) 32))");
  EXPECT_EQ(statements("t[:, ..n, 3.., .., i]"), "(index t : (.. _ n) (.. 3 _) (.. _ _) i)");
  EXPECT_EQ(statements("for i in 0..ceil_div(len, 4) { }"), "(for i (.. 0 (call ceil_div len 4)) {})");
  EXPECT_EQ(statements("1..2"), "(.. 1 2)");
  EXPECT_EQ(statements("x = 1.5..2."), "(= x (.. 1.5 2.))");
}

TEST(Parser, PostfixForms) {
  EXPECT_EQ(statements("k::<f32, 256>(x)"), "(call k::<f32, 256> x)");
  EXPECT_EQ(statements("k.launch(grid = [2, 1], block = 64)(a, &b)"),
            "(call (call (. k launch) grid=[2 1] block=64) a (& b))");
  EXPECT_EQ(statements("t.0.1.x"), "(. (. (. t 0) 1) x)");
  EXPECT_EQ(statements("Tensor::<f32, [N, 3 * D], Global>.zeros()"),
            "(call (. Tensor::<f32, [N (* 3 D)], Global> zeros))");
  EXPECT_EQ(statements("a\n  .b()\n  .c"), "(. (call (. a b)) c)");
  EXPECT_EQ(statements("P { x: 1, y }"), "(struct P x:1 y:y)");
  EXPECT_EQ(statements("m.P::<f32> { x: 1 }"), "(struct m.P<f32> x:1)");
  EXPECT_EQ(statements("softmax(scores, dim = -1)"), "(call softmax scores dim=(- 1))");
  EXPECT_EQ(statements("xs.map(|x, y: f32| x + y)"), "(call (. xs map) (closure x y:f32 (+ x y)))");
  EXPECT_EQ(statements("run(|| { a; b })"), "(call run (closure {a; b}))");
  EXPECT_EQ(statements("f(|x| -> f32 { x })"), "(call f (closure x -> f32 {x}))");
}

TEST(Parser, ArraysAndProgressions) {
  EXPECT_EQ(statements("[a/2, a/4, ..., 1]"), "[(/ a 2) (/ a 4) ... 1]");
  EXPECT_EQ(statements("vec![1.0, 2.0]"), "vec![1.0 2.0]");
  EXPECT_EQ(statements("[0; 4]"), "[0; 4]");
  EXPECT_EQ(statements("vec![0.0; n]"), "vec![0.0; n]");
  EXPECT_EQ(statements("[]"), "[]");
  EXPECT_EQ(statements("((a), (b,), ())"), "(tuple a (tuple b) (tuple))");
}

TEST(Parser, NewlinesEndStatements) {
  EXPECT_EQ(statements("a\nb"), "a\nb");
  EXPECT_EQ(statements("a +\nb"), "(+ a b)");
  EXPECT_EQ(statements("a\n-b"), "a\n(- b)");
  EXPECT_EQ(statements("(a\n-b)"), "(- a b)");
  EXPECT_EQ(statements("f(\na\n,\nb\n)"), "(call f a b)");
  EXPECT_EQ(statements("a; b;"), "a;\nb;");
  EXPECT_EQ(statements("x = \n 3"), "(= x 3)");
  EXPECT_EQ(statements("let x: Vec<f32>\ny = 3"), "(let x :Vec<f32>)\n(= y 3)");
  EXPECT_EQ(statements("a\n(b)"), "a\nb");
  EXPECT_EQ(statements("a\n[b]"), "a\n[b]");
  EXPECT_EQ(statements("x\n@unchecked y"), "x\n@unchecked y");
  EXPECT_EQ(statements("f(|x| {\n a\n -b\n})"), "(call f (closure x {a (- b)}))");
  EXPECT_EQ(statements("return\na"), "(return)\na");
  EXPECT_EQ(statements("if a\n{\nb\n}\nelse\n{\nc\n}"), "(if a {b} {c})");
  EXPECT_EQ(statements("{ a }\n{ b }"), "{a}\n{b}");
  EXPECT_EQ(statements("let a = b\n{ c }"), "(let a = b)\n{c}");
}

TEST(Parser, StatementsAndControlFlow) {
  EXPECT_EQ(statements("let (a, _) = f()"), "(let (a, _) = (call f))");
  EXPECT_EQ(statements("var acc: Tensor<f32, [8, 8]> @local = Tensor.zeros()"),
            "(var acc :Tensor<f32, [8 8]> @local = (call (. Tensor zeros)))");
  EXPECT_EQ(statements("let t: Tensor<f32, [32, 32]> @shared(layout = .row_major)"),
            "(let t :Tensor<f32, [32 32]> @shared(layout=.row_major))");
  EXPECT_EQ(statements("let b: [Tensor<f16, [128, 32]> @shared; 2]"), "(let b :[Tensor<f16, [128 32]> @shared; 2])");
  EXPECT_EQ(statements("for (k, s) in range(0, K, 32).enumerate() { acc += a[s] @ b[s] }"),
            "(for (k, s) (call (. (call range 0 K 32) enumerate)) {(+= acc (@ (index a s) (index b s)))})");
  EXPECT_EQ(statements("if a == b { 1 } else if c { 2 } else { 3 }"), "(if (== a b) {1} c {2} {3})");
  EXPECT_EQ(statements("let v = match x { 0 | 1 => a, -2..5 if c => b, Color.Red => { d } .Blue => e\n _ => f }"),
            "(let v = (match x 0|1=>a -2..5 if c=>b Color.Red=>{d} .Blue=>e _=>f))");
  EXPECT_EQ(statements("let z = loop { break 3 }"), "(let z = (loop {(break 3)}))");
  EXPECT_EQ(statements("while i < n { i += 1; continue }"), "(while (< i n) {(+= i 1); (continue)})");
  EXPECT_EQ(statements("@parallel for i in 0..n { }"), "@parallel (for i (.. 0 n) {})");
  EXPECT_EQ(statements("@unchecked(races)\nt[i] **= 2"), "@unchecked(races) (**= (index t i) 2)");
  EXPECT_EQ(statements("if x == (P { x: 1 }) { }"), "(if (== x (struct P x:1)) {})");
  EXPECT_EQ(statements("let x: Vec<Vec<f32>>= y"), "(let x :Vec<Vec<f32>> = y)");
}

TEST(Parser, LiteralsKeepEveryDigit) {
  EXPECT_EQ(statements("0xFF_FFu32; 1_000.5e-3f16; 0b101; inf; 7f32"), "65535u32;\n1000.5e-3f16;\n5;\ninf;\n7f32");
  const std::string big(400, '9');
  Parsed parsed("const P = " + big);
  ASSERT_EQ(parsed.errors(), "");
  const auto* literal = parsed.module->items[0]->as<ConstItem>()->value->as<IntExpr>();
  EXPECT_EQ(literal->digits, big);
  EXPECT_FALSE(literal->fits128);
  Parsed limit("const P = 0xffffffffffffffffffffffffffffffff");
  EXPECT_TRUE(limit.module->items[0]->as<ConstItem>()->value->as<IntExpr>()->fits128);
  EXPECT_EQ(limit.module->items[0]->as<ConstItem>()->value->as<IntExpr>()->value, ~static_cast<unsigned __int128>(0));
  Parsed text(R"(const S = "a\n\x41\u{e9}\"")");
  EXPECT_EQ(text.module->items[0]->as<ConstItem>()->value->as<StringExpr>()->value, "a\nA\xC3\xA9\"");
}

TEST(Parser, ItemsKeepTheirParts) {
  Parsed parsed(
      "/// about the file\n\n/// doc\n@fused(strategy = .auto)\npub kernel k<T: Float + Readable, const N: usize, M = "
      "f32>(\n"
      "  a: &mut Tensor<T, [N]>, @layout(aos) b: [T; 4],\n) -> T reduce(add)\nwhere N: PowerOfTwo, T: X + Y\n{ }\n"
      "import a.b { X, Y as Z }\nimport a as c\nstruct S : A + B {}\ntype U = struct { x: f32, }\n"
      "enum E { A, B = 3 }\ntrait T: S { fn f(&self) -> i32\n const N: usize\n type Out: X }\n"
      "impl<T> Tr<T> for S { fn f(&mut self) { } }\ntype G<T, Shape> = Tensor<T, Shape, Global>\n");
  ASSERT_EQ(parsed.errors(), "");
  ASSERT_EQ(parsed.module->items.size(), 9u);
  EXPECT_EQ(parsed.module->docLines.size(), 1u);
  const auto* k = parsed.module->items[0]->as<FunctionItem>();
  EXPECT_TRUE(k->isPublic && k->isKernel && k->reduceOp);
  ASSERT_EQ(k->docLines.size(), 1u);
  EXPECT_EQ(k->docLines[0], "doc");
  EXPECT_EQ(k->attributes[0].args[0].value->as<DotNameExpr>()->name.text, "auto");
  EXPECT_EQ(k->generics.params.size(), 3u);
  EXPECT_EQ(k->generics.params[0].bounds.size(), 2u);
  EXPECT_EQ(k->generics.where.size(), 2u);
  EXPECT_EQ(k->params[1].attributes.size(), 1u);
  EXPECT_EQ(parsed.module->items[1]->as<ImportItem>()->names[1].alias.text, "Z");
  EXPECT_EQ(parsed.module->items[3]->as<StructItem>()->traits.size(), 2u);
  EXPECT_EQ(parsed.module->items[4]->as<StructItem>()->fields.size(), 1u);
  EXPECT_EQ(parsed.module->items[6]->as<TraitItem>()->members.size(), 3u);
  EXPECT_EQ(parsed.module->items[7]->as<ImplItem>()->members[0]->as<FunctionItem>()->params[0].self, SelfKind::MutRef);
}

TEST(Parser, ScheduleArgumentsOwnTheirStrategies) {
  Parsed parsed(
      "@schedule(\n stages(0..10): global_memory, coalesced,\n stages(10..24): fused(48 * 1024),\n)\nfn f() { }\n");
  ASSERT_EQ(parsed.errors(), "");
  const List<Arg> args = parsed.module->items[0]->attributes[0].args;
  ASSERT_EQ(args.size(), 2u);
  EXPECT_EQ(args[0].strategies.size(), 2u);
  EXPECT_EQ(args[1].strategies.size(), 1u);
}

std::string readFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Parser, AcceptsEveryBlockOfTheMemoryModel) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("src/lang/syntax/testdata/seed")) {
    ++count;
    const std::string text = readFile(entry.path());
    const size_t code = text.find("\nlet ");
    // Blocks that start with a statement show the inside of a kernel.
    Parsed parsed(code != std::string::npos && code < text.find('{') ? "kernel wrap() {\n" + text + "}\n" : text);
    for (const diag::Diagnostic& diagnostic : parsed.sink.all())
      EXPECT_EQ(diagnostic.id, "E0113") << entry.path() << "\n" << parsed.errors();
  }
  EXPECT_EQ(count, 12u);
}

TEST(Parser, AcceptsTheTourOfTheLanguage) {
  Parsed parsed(readFile("src/lang/syntax/testdata/tour.vx"));
  EXPECT_EQ(parsed.errors(), "");
  EXPECT_GT(parsed.module->items.size(), 20u);
}

TEST(Recovery, ReportsOneErrorPerMistakeAndKeepsTheRest) {
  Parsed parsed("fn a( { let x = }\nfn b(x y, z: i32) { let q = * \n f(1 2)\n if a b { }\n let ok = 3 }\nstruct S { a: "
                "i32 b: i32, c }\nfn c() { 1 }\n");
  const std::vector<std::string> ids = parsed.ids();
  EXPECT_GE(ids.size(), 5u) << parsed.errors();
  EXPECT_LE(ids.size(), 8u) << parsed.errors();
  ASSERT_FALSE(parsed.module->items.empty());
  EXPECT_EQ(parsed.module->items.back()->name.text, "c");
}

TEST(Recovery, OneMissingBracketIsOneError) {
  for (const char* text :
       {"fn f() {\n let a = g(1, (2 + 3)\n let b = 4\n}\n", "fn f() {\n if a {\n b\n}\nfn g() { }\n", "fn f( {\n}\n",
        "fn f() { a[1 }\n", "fn f() { let x = [1, 2\n return x\n}\n", "fn f() { } }\n", "fn f() { a) }\n"}) {
    Parsed parsed(text);
    EXPECT_EQ(parsed.sink.all().size(), 1u) << text << parsed.errors();
  }
}

TEST(Recovery, DeepNestingIsAnErrorAndNoOverflow) {
  const auto repeat = [](const std::string& what, size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i)
      out += what;
    return out;
  };
  const size_t n = 100'000;
  const std::vector<std::string> bodies = {repeat("(", n) + "1" + repeat(")", n),
                                           repeat("[", n) + repeat("]", n),
                                           repeat("{", n) + repeat("}", n),
                                           repeat("-", n) + "1",
                                           repeat("!", n) + "a",
                                           repeat("&", n) + "a",
                                           repeat("a+", n) + "a",
                                           repeat("a**", n) + "a",
                                           repeat("f(", n) + repeat(")", n),
                                           "a" + repeat(".b", n),
                                           "a" + repeat("()", n),
                                           "a" + repeat("[0]", n),
                                           "a" + repeat(" as i32", n),
                                           repeat("|x| ", n) + "x",
                                           repeat("return ", n),
                                           repeat("if a { ", n) + repeat("}", n),
                                           "let x: " + repeat("&", n) + "T",
                                           "let x: " + repeat("V<", n) + "T" + repeat(">", n),
                                           "let x: " + repeat("[", n) + "T" + repeat("; 2]", n),
                                           "let " + repeat("(", n) + "a" + repeat(")", n) + " = b",
                                           "match a { " + repeat("(", n) + repeat(")", n) + " => b }",
                                           repeat("a = ", n) + "b",
                                           repeat("x..", n),
                                           repeat("match a { b => ", n) + repeat("}", n),
                                           repeat("a[", n) + repeat("]", n),
                                           repeat("P { x: ", n) + repeat("}", n),
                                           repeat("while ", n),
                                           repeat("for i in ", n),
                                           repeat("for x in y {", n),
                                           repeat("{", n),
                                           repeat("(", n),
                                           repeat(")", n),
                                           repeat("a.0", n),
                                           repeat("fn f() {", n),
                                           repeat("@a(", n)};
  for (const std::string& body : bodies) {
    Parsed parsed("fn f() {\n" + body + "\n}\n");
    EXPECT_TRUE(parsed.sink.hasErrors()) << body.substr(0, 20);
    EXPECT_LE(parsed.sink.all().size(), 101u);
  }
}

TEST(Recovery, LongElseIfChainsAndFilesAreFine) {
  std::string chain = "fn f() {\nif a { }\n";
  for (int i = 0; i < 100'000; ++i)
    chain += "else if a { }\n";
  EXPECT_EQ(Parsed(chain + "}\n").errors(), "");
  std::string line = "fn f() { ";
  while (line.size() < 10'000'000)
    line += "x = y + 12; ";
  EXPECT_EQ(Parsed(line + "}").errors(), "");
}

TEST(Recovery, AnyPrefixOfASourceIsSafe) {
  const std::string text = readFile("src/lang/syntax/testdata/tour.vx");
  for (size_t length = 0; length < text.size(); length += 7)
    Parsed parsed(text.substr(0, length));
}

TEST(Recovery, RemovingAnyTokenIsSafe) {
  const std::string text = readFile("src/lang/syntax/testdata/tour.vx");
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const source::FileId file = sources.addText("t.vx", text);
  const TokenStream stream = lex(file, sources, sink);
  for (const Token& token : stream.tokens) {
    Parsed parsed(text.substr(0, token.begin) + text.substr(token.end));
    EXPECT_LE(parsed.sink.all().size(), 12u) << "without the token at " << token.begin << "\n" << parsed.errors();
  }
}

}  // namespace
}  // namespace vortex::lang::syntax

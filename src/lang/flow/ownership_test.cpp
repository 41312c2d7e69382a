// What must be accepted. What must be refused is in tests/errors (E0512…E0529).

#include "lang/flow/testing/analyzed.h"

#include "gtest/gtest.h"

#include <ctime>
#include <filesystem>

namespace vortex::lang::flow::testing {
namespace {

void expectAccepted(const std::string& body, const std::string& items = "") {
  Analyzed found(items + "\nfn main() {\n" + body + "\n}\n");
  EXPECT_EQ(found.ids(), "") << found.messages();
}

constexpr const char* kPair = "struct Pair { first: Vec<i32>, second: Vec<i32> }\n"
                              "impl Pair {\n"
                              "  fn size(&self) -> usize { return self.first.len() + self.second.len() }\n"
                              "  fn add(&mut self, n: usize) { self.first.push(n as i32) }\n"
                              "  fn begin(&mut self) -> &mut Vec<i32> { return &mut self.first }\n"
                              "}\n"
                              "fn make() -> Pair { return Pair { first: vec![1], second: vec![2] } }\n"
                              "fn keep(v: Vec<i32>) -> usize { return v.len() }\n"
                              "fn look(v: &Vec<i32>) -> usize { return v.len() }\n"
                              "fn grow(v: &mut Vec<i32>, w: &Vec<i32>) { v.push(w[0]) }\n"
                              "fn both(v: &mut Vec<i32>, w: &mut Vec<i32>) { v[0] = w[0] }\n"
                              "fn longest(a: &Vec<i32>, b: &Vec<i32>) -> &Vec<i32> {\n"
                              "  if a.len() > b.len() { return a }\n  return b\n}\n";

TEST(Ownership, MovedPlacesMayBeFilledAgain) {
  expectAccepted("var v = vec![1]\nprint(keep(v))\nv = vec![2]\nprint(v)", kPair);
  expectAccepted("var p = make()\nlet a = p.first\nprint(p.second, a)\np.first = vec![3]\nprint(p.size())", kPair);
  expectAccepted("var v = vec![1]\nfor i in 0..3 {\n  print(keep(v))\n  v = vec![i]\n}\nprint(v)", kPair);
  expectAccepted("var v = vec![1]\nwhile v.len() < 5 {\n  let w = v\n  v = w.copy()\n  v.push(1)\n}", kPair);
}

TEST(Ownership, ABranchThatLeavesTakesItsMovesAlong) {
  expectAccepted("let v = vec![1]\nif args().len() > 0 {\n  print(keep(v))\n  return\n}\nprint(v)", kPair);
  expectAccepted("let v = vec![1]\nfor i in 0..9 {\n  if i == 3 {\n    print(keep(v))\n    break\n  }\n}", kPair);
  expectAccepted("let v = vec![1]\nlet n = if args().len() > 0 { keep(v) } else { look(&v) }\nprint(n)", kPair);
  expectAccepted("let v = vec![1]\nloop {\n  if args().len() == 0 { continue }\n  print(keep(v))\n  break\n}", kPair);
}

TEST(Ownership, BorrowsEndAtTheirLastUse) {
  expectAccepted("var v = vec![1]\nlet r = &v\nprint(r)\nv.push(2)\nlet s = &mut v\ns.push(3)\nprint(v)", kPair);
  expectAccepted("var v = vec![1]\nlet a = &mut v\na.push(1)\nlet b = &mut v\nb.push(2)\nprint(keep(v))", kPair);
  expectAccepted("var v = vec![1]\nfor i in 0..3 {\n  let r = &mut v\n  r.push(i)\n}\nv.push(2)", kPair);
  expectAccepted("var n = 0\nlet up = |x: i32| { n += x }\nup(1)\nup(2)\nprint(n)", kPair);
  expectAccepted(
      "var v = vec![1]\nif args().len() > 0 {\n  let r = &v\n  print(r)\n} else {\n  v.push(1)\n}\nv.push(2)");
}

TEST(Ownership, ABorrowReturnedOnOnePathDoesNotLastOnTheOthers) {
  expectAccepted("var v = vec![1]\nprint(find(&mut v))",
                 "fn find(v: &mut Vec<i32>) -> &mut i32 {\n  let first = &mut v[0]\n  if first > 3 { return first }\n"
                 "  v.push(4)\n  return &mut v[1]\n}\n");
}

TEST(Ownership, ReceiversAreReservedUntilTheCall) {
  expectAccepted("var v = vec![1]\nv.push(v[0])\nvar p = make()\np.add(p.size())\nprint(p.first, v)", kPair);
  expectAccepted("var p = make()\nlet b = p.begin()\nb.push(1)\nb.push(2)\nprint(p.size())", kPair);
}

TEST(Ownership, AMutableReferenceLendsForReadingWhereThatIsAsked) {
  expectAccepted("var p = make()\nprint(two(&mut p))",
                 std::string(kPair) + "impl Pair { fn list(&self) -> &Vec<i32> { return &self.first } }\n"
                                      "fn two(p: &mut Pair) -> usize {\n  let a = p.list()\n  let b = p.list()\n"
                                      "  return a.len() + b.len() + look(&p.second)\n}\n");
  expectAccepted(
      "var out: Vec<&Vec<i32>> = vec![]\nlet v = vec![1]\nnote(&mut out, &v)\nnote(&mut out, &v)\nprint(out.len())",
      "fn note(out: &mut Vec<&Vec<i32>>, v: &Vec<i32>) { out.push(v) }\n");
}

/// An index outside an array of shared tensors names its last one, so that others may name it, too.
TEST(Ownership, TensorsOfAnArrayAreApartWhereTheirIndicesAreInside) {
  const auto lent = [](const std::string& first, const std::string& second) {
    return Analyzed("fn both(a: &mut Tensor<f32, [64]> @shared, b: &mut Tensor<f32, [64]> @shared) {\n"
                    "  a[thread.local_id] = 1.0\n  b[thread.local_id] = 2.0\n}\n"
                    "@launch(grid = [1], block = 64)\nkernel k(out: &mut Tensor<f32, [64]>, s: usize) {\n"
                    "  let t: [Tensor<f32, [64]> @shared; 2]\n  both(&mut t[" +
                    first + "], &mut t[" + second +
                    "])\n  sync_block()\n  out[thread.local_id] = t[1][thread.local_id]\n}\n")
        .ids();
  };
  EXPECT_EQ(lent("0", "1"), "");
  EXPECT_EQ(lent("s % 2", "(s + 1) % 2"), "");
  EXPECT_EQ(lent("s", "s + 1"), "E0516");
  EXPECT_EQ(lent("1", "s + 2"), "E0516");
}

TEST(Values, EveryWayToAUseMayAssign) {
  expectAccepted("let x: i32\nif args().len() > 0 { x = 1 } else { x = 2 }\nprint(x)");
  expectAccepted("let x: i32\nloop {\n  x = 1\n  break\n}\nprint(x)");
  expectAccepted("let x: i32\nmatch args().len() { 0 => { return } _ => { x = 2 } }\nprint(x)");
  expectAccepted("let v: Vec<i32>\nif args().len() == 0 && { v = vec![1]\n v.len() > 0 } { print(v) }");
  expectAccepted("for i in 0..3 {\n  let x: usize\n  if i > 1 { continue }\n  x = i\n  print(x)\n}");
}

TEST(Ownership, PartsAreBorrowedApart) {
  expectAccepted("var p = make()\ngrow(&mut p.first, &p.second)\nboth(&mut p.second, &mut p.first)", kPair);
  expectAccepted("var v = vec![1, 2, 3, 4]\nboth(&mut v[0..2], &mut v[2..4])", kPair);
  expectAccepted("var v = vec![1, 2, 3, 4]\nlet n = args().len()\nboth(&mut v[0..n], &mut v[n..4])", kPair);
  expectAccepted("var v = vec![1, 2, 3, 4]\nlet n = args().len()\nboth(&mut v[n..+1], &mut v[n + 1..+2])", kPair);
  expectAccepted(
      "var rows = vec![vec![1], vec![2]]\nfor s in 0..4 {\n  both(&mut rows[s % 2], &mut rows[(s + 1) % 2])\n}", kPair);
  expectAccepted("var t: Tensor<f32, [8]> = zeros()\nk(&mut t[0..4], &t[4..8])",
                 "kernel k(a: &mut Tensor<f32, [N]>, b: &Tensor<f32, [N]>) {\n"
                 "  a[thread.global_id] = b[thread.global_id]\n}\n");
}

TEST(Ownership, IndicesThatTypesRangesOrTestsKeepApartAreApart) {
  const auto accept = [](const std::string& params, const std::string& body) {
    expectAccepted("", std::string(kPair) + "fn f(" + params + ") {\nvar v = vec![1, 2, 3, 4]\n" +
                           "var rows = vec![vec![1], vec![2], vec![3]]\n" + body + "\n}\n");
  };
  const std::string thirds = "both(&mut rows[s % 3], &mut rows[(s + 1) % 3])";
  for (const char* type : {"u8", "u16", "i8", "i32", "u64", "usize"}) {
    SCOPED_TRACE(type);
    accept(std::string("n: ") + type, "for s in 0..n { " + thirds + " }");
    accept(std::string("s: ") + type, "if s >= 0 && s < 100 { " + thirds + " }");
    accept(std::string("s: ") + type, "if s < 0 || s > 100 { return }\n" + thirds);
    accept(std::string("s: ") + type, "both(&mut rows[(s % 2) as usize], &mut rows[((s + 1) % 2) as usize])");
    accept(std::string("i: ") + type, "both(&mut v[i as usize..+1], &mut v[i as usize + 1..+1])");
  }
  accept("s: u8", "both(&mut rows[s as usize % 3], &mut rows[(s as usize + 1) % 3])");
  accept("i: usize", "both(&mut rows[(i as u8) as usize], &mut rows[((i + 255) as u8) as usize])");
  accept("i: usize, n: usize", "if n > 0 { both(&mut v[i % n..+1], &mut v[n..+1]) }");
  accept("i: usize", "both(&mut v[2 * i..2 * i + 2], &mut v[2 * i + 2..2 * i + 4])");
  accept("i: usize, j: usize", "if i != j { both(&mut rows[i], &mut rows[j]) }");
  accept("i: usize, j: usize", "if i < j { both(&mut v[0..i], &mut v[j..4]) }");
}

TEST(Ownership, ImmutableIndicesKeepTheirValuesHoweverTheyGetThem) {
  const auto accept = [](const std::string& body) {
    expectAccepted("let n = args().len()\nvar rows = vec![vec![1], vec![2], vec![3]]\n" + body, kPair);
  };
  accept("let k: usize\nif n > 3 { k = 0 } else { k = 1 }\nboth(&mut rows[k], &mut rows[k + 1])");
  accept("let k = if n > 3 { n } else { 1 }\nboth(&mut rows[k], &mut rows[k + 1])");
  accept("for i in 0..2 {\n  let k = keep(rows[0].copy())\n  both(&mut rows[k + i], &mut rows[k + i + 1])\n}");
  accept("let swap = |k: usize| { both(&mut rows[k], &mut rows[k + 1]) }\nswap(0)\nswap(1)");
  accept("for (row, i) in rows.copy().enumerate() {\n  both(&mut rows[i], &mut rows[i + 1])\n  print(row)\n}");
}

TEST(Ownership, WhatNothingReachesIsNotChecked) {
  expectAccepted("let v = vec![vec![1]]\nprint(v)\nreturn\nlet w = v[0]\nprint(keep(w))", kPair);
  expectAccepted("let v = vec![1]\nloop {\n  print(keep(v))\n  break\n  print(v)\n}", kPair);
}

TEST(Ownership, ReborrowsLastAsLongAsTheyAreUsed) {
  expectAccepted(
      "var v = vec![1]\nlet r = &mut v\ngrow(r, &vec![2])\ngrow(r, &vec![3])\nlet s = &r[0]\nprint(s)\nr.push(4)",
      kPair);
  expectAccepted(
      "let v = vec![1]\nlet w = vec![2, 3]\nlet best = longest(&v, &w)\nlet other = best\nprint(best, other, v)",
      kPair);
}

TEST(Ownership, NumbersTextsAndSmallStructsAreCopied) {
  expectAccepted("let p = Point { x: 1.0, y: 2.0 }\nlet q = p\nprint(p.x, q)\nlet s = \"a\"\nlet t = s\nprint(s, t)\n"
                 "let names = vec![\"a\", \"b\"]\nlet first = names[0]\nprint(first, names)\n"
                 "for name in names {\n  let mine = name\n  print(mine)\n}",
                 "struct Point { x: f32, y: f32 }\n");
}

TEST(Ownership, TransfersLendWithAReference) {
  expectAccepted("let v = vec![1.0, 2.0]\nlet t = Tensor.from_host(&v)\nlet u = Tensor.from_host(v[0..1])\n"
                 "print(v, t.to_host(), u.to_host(), t.to_host())");
  expectAccepted("let x: Tensor<f32, [4]> = zeros()\nlet y = k(&x)\nlet z = k(&y)\nprint(x.to_host(), k(z).to_host())",
                 "kernel k(x: Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x + 1.0 }\n");
}

TEST(Ownership, PatternsMoveOnlyWhatTheyBind) {
  expectAccepted("let p = make()\nlet Pair { first, second: _ } = p\nprint(first, p.second)", kPair);
  expectAccepted("let pair = (vec![1], 2)\nlet (_, n) = pair\nprint(pair.0, n)");
  expectAccepted("for (a, b) in vec![(1, 2)] {\n  print(a, b)\n}\nfor v in vec![vec![1]] {\n  print(keep(v))\n}",
                 kPair);
}

TEST(Ownership, AThousandLinesAreCheckedFast) {
  std::string text = kPair;
  for (int i = 0; i < 100; ++i)
    text += "fn f" + std::to_string(i) +
            "(n: i32) -> usize {\n  var v = vec![n]\n  var p = make()\n  for i in 0..n {\n    let r = &mut v\n"
            "    r.push(i)\n    if i > 3 { p.first = vec![i] }\n    grow(&mut p.first, &p.second)\n  }\n"
            "  let w = if n > 3 { v } else { p.second }\n  return keep(w) + p.first.len()\n}\n";
  const std::clock_t start = std::clock();  // processor time: other processes do not count
  Analyzed found(text);
  const std::clock_t elapsed = std::clock() - start;
  EXPECT_EQ(found.ids(), "") << found.messages();
  EXPECT_LT(elapsed, 2 * CLOCKS_PER_SEC);  // measured: 0.1 s
}

void expectKernel(const std::string& body, std::string_view ids = "") {
  Analyzed found("@launch(grid = [4], block = 64)\nkernel k(x: &mut Tensor<f32, [N]>, n: usize) {\n"
                 "  let t: Tensor<f32, [64]> @shared\n  let i = thread.local_id\n" +
                 body + "\n}\n");
  EXPECT_EQ(found.ids(), ids) << found.messages();
}

TEST(Initialisation, WritesOfSomeThreadsAndOfLoopsCount) {
  expectKernel("  if i < 32 { t[i] = 1.0 }\n  sync_block()\n  x[i] = t[i % 32]");
  expectKernel("  for s in 0..n { t[(i + s) % 64] = 1.0 }\n  sync_block()\n  x[i] = t[i]", "W0525");
  expectKernel("  for s in 0..n {\n    if s > 0 { x[i] = t[i] }\n    t[i] = x[i]\n    sync_block()\n  }");
  expectKernel("  if n > 3 { t[i] = 1.0 } else { t[i] = 2.0 }\n  x[i] = t[i]");
  expectKernel("  if n > 3 {\n    t[i] = 1.0\n    x[i] = t[i]\n  }");
  expectKernel("  if n > 3 { return }\n  t[i] = 1.0\n  x[i] = t[i]");
}

/// Those of `examples` and `tests/races` have tests of their own, which ask for more.
TEST(Ownership, NoProgramOfTheRepositoryIsRefused) {
  for (const char* folder : {"std", "tests/equivalence", "tests/language", "tests/nn"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".vx")
        continue;
      source::SourceManager sources;
      diag::DiagnosticSink sink;
      auto file = sources.addFile(entry.path().string());
      ASSERT_TRUE(file.ok()) << entry.path();
      AnalyzeOptions options;
      options.importPaths = {"std"};
      flow::analyze(file.value(), sources, sink, options, {.races = RacePolicy::Allow});
      for (const diag::Diagnostic& diagnostic : sink.all())
        EXPECT_FALSE(diagnostic.id.substr(1, 2) == "05") << diag::renderText(diagnostic, sources);
    }
}

}  // namespace
}  // namespace vortex::lang::flow::testing

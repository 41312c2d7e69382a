// What programs become: conversions, broadcasts, resolved calls.
#include <gtest/gtest.h>

#include <ctime>

#include "lang/sema/testing/analyzed.h"

namespace vortex::lang {
namespace {

using testing::Analyzed;

std::string kernel(const std::string& body,
                   const std::string& params = "x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>") {
  return "kernel k(" + params + ") {\n" + body + "\n}";
}

TEST(Check, ScalarMeetingATensorIsBroadcast) {
  Analyzed a("kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2 }");
  EXPECT_DUMP(a, "return (*x * broadcast(2.0: f32))");
}

TEST(Check, ScalarFloatTakesTheTensorsType) {
  Analyzed a("kernel k(x: &Tensor<f16, [N]>, s: f32) -> Tensor<f16, [N]> { return x * s }");
  EXPECT_DUMP(a, "broadcast(cast<f16>(s))");
}

TEST(Check, ShapesAlignAtTheLastExtent) {
  Analyzed a("kernel k(x: &Tensor<f32, [M, N]>, b: &Tensor<f32, [N]>) -> Tensor<f32, [M, N]> { return x + b }");
  EXPECT_DUMP(a, "(*x + broadcast<1>(*b))");
}

TEST(Check, ProductOfHalvesReturnedAsFloatAccumulatesInFloat) {
  Analyzed a("kernel k(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>) -> Tensor<f32, [M, N]> { return a @ b }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "return dot(*a, *b)");
}

TEST(Check, BatchedProductBroadcastsLeadingExtents) {
  Analyzed a(
      "kernel k(a: &Tensor<f32, [B, M, K]>, b: &Tensor<f32, [K, N]>) -> Tensor<f32, [B, M, N]> { return a @ b }");
  EXPECT_DUMP(a, "dot(*a, broadcast<1, 2>(*b))");
}

TEST(Check, IndicesBecomeUsize) {
  Analyzed a(kernel("let i = thread.global_id as i32\ny[i] = x[i + 1]"));
  EXPECT_DUMP(a, "*y[cast<usize>(i)] = *x[cast<usize>((i + 1: i32))]");
}

TEST(Check, UnsignedIntegersWiden) {
  Analyzed a("fn f(a: u8, b: usize) -> usize { return a + b }\nfn main() { print(f(1, 2)) }");
  EXPECT_DUMP(a, "return (cast<usize>(a) + b)");
}

TEST(Check, AVariableTakesTheTypeOfItsUses) {
  Analyzed a("fn main() {\nlet v = vec![1.0]\nvar i = 0\nvar total = 0\nwhile i < v.len() {\ni += 1\ntotal += "
             "2u8\n}\nprint(i, total)\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "let i: usize = 0: usize");
  EXPECT_DUMP(a, "let total: u8 = 0: u8");
}

TEST(Check, AnEmptyVecTakesTheTypeOfItsElements) {
  Analyzed a("fn main() {\nvar v = vec![]\nv.push(1.5f64)\nprint(v)\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "let v: Vec<f64> = vec![]");
}

TEST(Check, LoopCountersOfLiteralsAdapt) {
  Analyzed a(kernel("for i in 0..4 {\ny[N - i] = x[i * N]\n}"));
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "(cast<usize>(i) * N)");
}

TEST(Check, MatchBecomesIfs) {
  Analyzed a("enum C { Red, Green = 5, Blue }\nfn f(c: C) -> i32 {\nreturn match c {\nC.Red => 1,\n.Green | .Blue => "
             "2,\n}\n}\nfn main() { print(f(C.Blue)) }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "if (c == C#0)");
  EXPECT_DUMP(a, "f(C#6)");
}

TEST(Check, NamedArgumentsAreOrdered) {
  Analyzed a("fn f(a: i32, b: f32) -> f32 { return b }\nfn main() { print(f(b = 1.0, a = 2)) }");
  EXPECT_DUMP(a, "f(2: i32, 1.0: f32)");
}

TEST(Check, MethodsAreResolved) {
  Analyzed a("struct P { x: f32 }\nimpl P {\nfn new(x: f32) -> P { return P { x } }\nfn add(&mut self, d: f32) { "
             "self.x += d }\n}\n"
             "fn main() {\nvar p = P.new(1.0)\np.add(2.0)\nprint(p.x)\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "P.add(&mut p, 2.0: f32)");
  EXPECT_DUMP(a, "*self.x += d");
}

TEST(Check, TraitFunctionsAreResolvedPerType) {
  Analyzed a(
      "trait Area {\nfn area(&self) -> f32\nfn twice(&self) -> f32 { return self.area() * 2.0 }\n}\nstruct S { a: f32 "
      "}\n"
      "impl Area for S { fn area(&self) -> f32 { return self.a * self.a } }\n"
      "fn show<T: Area>(t: &T) -> f32 { return t.twice() }\nfn main() { let s = S { a: 3.0 }\nprint(show(&s)) }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "show<S>(&s)");
  EXPECT_DUMP(a, "S.twice(");
}

TEST(Check, GenericsAreInferredAndNamed) {
  Analyzed a(
      "fn pick<T: Numeric, const N: usize>(v: [T; N]) -> T { return v[N - 1] }\nfn main() { print(pick([1.5, 2.5])) }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "pick<f32, 2>");
}

TEST(Check, KernelsTakeExplicitGenerics) {
  Analyzed a("kernel k<T: Float, const B: usize>(x: &Tensor<T, [N]>) -> Tensor<T, [N]> { return x * B as T }\n"
             "fn main() { let x = Tensor.from_host([1.0, 2.0])\nlet y = k::<f32, 4>(&x) }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "launch k<f32, 4>(&x)");
}

TEST(Check, LaunchesCarryGridAndBlock) {
  Analyzed a("kernel k(x: &mut Tensor<f32, [N]>) { x[block.id.x * block.dim.x + thread.id.x] = 1.0 }\n"
             "fn main() { var x: Tensor<f32, [64]> = zeros()\nk.launch(grid = 2, block = [32])(&mut x) }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "launch k.grid[2: usize].block[32: usize](&mut x)");
}

TEST(Check, ExtentsOfOtherParametersAreCheckedAtTheLaunch) {
  Analyzed a("kernel k(x: &Tensor<f32, [N]>, y: &Tensor<f32, [2 * N, 8]>) -> Tensor<f32, [N]> where N: PowerOfTwo { "
             "return x + 1 }");
  EXPECT_DUMP(a, "where N = x#0, y#0 == 2*N, y#1 == 8, N is a power of two");
}

TEST(Check, DimensionsOfStructsComeIntoScope) {
  Analyzed a("struct Cache { pages: Tensor<f32, [P, S]> }\nkernel k(c: &Cache) -> Tensor<f32, [P]> { return "
             "sum(c.pages, dim = 1) * c.S as f32 }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "where P = c.0#0, S = c.0#1");
}

TEST(Check, SlicesOfEqualLengthAgree) {
  Analyzed a("kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [32]> {\nvar s: Tensor<f32, [32]> @local = zeros()\n"
             "for i in range(0, N, 32) { s += x[i..i + 32] * x[i..+32] }\nreturn s\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
}

TEST(Check, ResultStorageIsRecognised) {
  Analyzed a("kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {\nvar out: Tensor<f32, [N]>\nout[thread.global_id] = "
             "x[thread.global_id]\nreturn out\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "result out: Tensor<f32, [N]>");
}

TEST(Check, ConstantsAreEvaluated) {
  Analyzed a("const A: usize = 1 << 4\nconst B: usize = ceil_div(A * 3 + 1, 2)\nconst T = [1, 2, 4, ..., 16]\nfn "
             "main() { let v = [0.0; B]\nprint(v.len(), T[4]) }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "print(25: usize, 16: i32)");
}

TEST(Check, ProgressionsContinueByStepsOrFactors) {
  Analyzed a("fn main() {\nfor i in [0, 3, ..., 12] { print(i) }\nfor i in [256, 128, ..., 32] { print(i) "
             "}\nprint(vec![0.0, 0.5, ..., 2.0])\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "list[0, 3, 6, 9, 12]");
  EXPECT_DUMP(a, "list[256, 128, 64, 32]");
  EXPECT_DUMP(a, "1.5: f32, 2.0: f32]");
}

TEST(Check, LoopsGiveValues) {
  Analyzed a("fn main() {\nvar i = 0\nlet x = loop {\ni += 1\nif i > 3 { break i * 2 }\n}\nprint(x)\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "let x: i32 = loop");
}

TEST(Check, FixedDimensionsAreConstants) {
  AnalyzeOptions options;
  options.fixedDims = {{"D", 128}};
  Analyzed a("kernel k(x: &Tensor<f32, [N, D]>) -> Tensor<f32, [N]> { return sum(x, dim = -1) }", options);
  EXPECT_DUMP(a, "where N = x#0, x#1 == 128");
}

TEST(Check, BranchesOfOneRankMayHaveDifferentExtents) {
  Analyzed a("fn main() {\nlet n = args().len()\n"
             "let x = if n > 2 { random.normal([5]) } else { random.normal([n]) }\n"
             "let y: Tensor<f32, [N]> = match n {\n1 => random.normal([5])\n_ => random.normal([6])\n}\n"
             "print(x.shape[0], y.shape[0], N)\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_FALSE(a.has("let x: Tensor<f32, [5]>")) << a.text();
}

TEST(Check, ScalarParametersStandInResultShapes) {
  Analyzed a("fn f(v: Vec<u8>, h: usize, w: usize) -> Tensor<u8, [h, w]> { return Tensor.from_host(v, [h, w]) }\n"
             "kernel ones(h: usize) -> Tensor<f32, [h, 2 * h]> { return full(1.0, [h, 2 * h]) }\n"
             "fn main() { print(f(vec![1, 2], 1, 2).shape[0], ones(3).shape[1]) }");
  EXPECT_EQ(a.ids(), "") << a.messages();
}

TEST(Check, ArmsStartingWithADotEndTheFormerArm) {
  Analyzed a("enum C { Red, Green, Blue }\nfn f(c: C, a: i32, b: i32) -> i32 {\nreturn match c {\n.Green => a + b\n"
             ".Red | .Blue if a > 3 => b\n.Red\n| .Blue => a\n.max(3)\n}\n}\n"
             "fn main() { print(f(C.Red, 1, 2)) }");
  EXPECT_EQ(a.ids(), "") << a.messages();
  EXPECT_DUMP(a, "max(a, 3: i32)");
}

TEST(Check, ManyFunctionsAreCheckedFast) {
  std::string source;
  for (int i = 0; i < 200; ++i)
    source +=
        "fn f" + std::to_string(i) + "(x: i32) -> i32 {\nvar s = 0\nfor i in 0..x { s += i * x }\nreturn s + 1\n}\n";
  const std::clock_t start = std::clock();  // processor time: other processes do not count
  Analyzed a(source);
  EXPECT_EQ(a.ids(), "");
  EXPECT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC);  // a smoke bound; measured: 10 ms
}

}  // namespace
}  // namespace vortex::lang

// Programs that must be refused, and with one error only.
#include <gtest/gtest.h>

#include "lang/sema/testing/analyzed.h"

namespace vortex::lang {
namespace {

std::string mainOf(const std::string& body) { return "fn main() {\n" + body + "\n}"; }
std::string kernelOf(const std::string& body) {
  return "kernel k(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {\n" + body + "\n}";
}

TEST(CheckErrors, OneMistakeIsOneError) {
  EXPECT_IDS(mainOf("let a = missing(1)\nlet b = a + 1\nprint(b, a.len())"), "E0201");
  EXPECT_IDS(mainOf("let (a, b) = nothing\nprint(a + b)"), "E0201");
  EXPECT_IDS(mainOf("for x in nothing { print(x + 1) }"), "E0201");
  EXPECT_IDS(mainOf("let f = |x| y\nprint(f(1))"), "E0306 E0201");
  EXPECT_IDS("fn f(x: Missing) -> i32 { return x + 1 }\nfn main() { print(f(1) + 2) }", "E0210");
  EXPECT_IDS("const A: i32 = nothing\nfn main() { print(A + A) }", "E0201");
}

TEST(CheckErrors, SeveralMistakesAreAllReported) {
  EXPECT_IDS(mainOf("let a: i32 = true\nlet b: bool = 1\nprint(c)"), "E0301 E0301 E0201");
}

TEST(CheckErrors, NumbersAreNotConvertedSilently) {
  EXPECT_IDS(mainOf("let a: i64 = 1\nlet b: i32 = a"), "E0301");
  EXPECT_IDS(mainOf("let a = 1u32\nlet b = 1i32\nprint(a + b)"), "E0303");
  EXPECT_IDS(mainOf("let a = 1.0f32\nlet b = 1.0f64\nprint(a * b)"), "E0303");
  EXPECT_IDS(mainOf("let a: u8 = 256"), "E0302");
  EXPECT_IDS(mainOf("let a: u8 = -1"), "E0302");
  EXPECT_IDS(mainOf("let a: f16 = 70000.0"), "E0302");
  EXPECT_IDS(mainOf("let a = 3000000000"), "E0302");
  EXPECT_IDS(mainOf("let a = 99999999999999999999999999999999999999999999"), "E0302");
  EXPECT_IDS(mainOf("let a = 3usize\nprint(-a)"), "E0303");
}

TEST(CheckErrors, KernelsKeepTheirRules) {
  EXPECT_IDS(kernelOf("x[0] = 1.0"), "E0317");
  EXPECT_IDS(kernelOf("let v = vec![1]"), "E0407");
  EXPECT_IDS(kernelOf("let s = sum(x, dim = 1)"), "E0313");
  EXPECT_IDS(kernelOf("let t: Tensor<f32, [4]> @shared\nlet u = t + x"), "E0304");
  EXPECT_IDS(kernelOf("y[thread.global_id] = x"), "E0301");
  EXPECT_IDS(kernelOf("if x > 0.0 { y[0] = 1.0 }"), "E0319");
  EXPECT_IDS(kernelOf("let i = thread.global_id.w"), "E0321");
  EXPECT_IDS(kernelOf("y[-1] = 0.0"), "E0314");
  EXPECT_IDS(kernelOf("y[1.5] = 0.0"), "E0313");
  EXPECT_IDS(kernelOf("atomic_add(y[0], 1.0)"), "E0303");
  EXPECT_IDS("kernel k(x: Tensor<f32, [N]>) { x[thread.global_id] = 1.0 }", "E0315");
  EXPECT_IDS("kernel k(x: &mut Tensor<u8, [N]>) { atomic_add(&mut x[0], 1) }", "E0303");
  EXPECT_IDS("kernel k(x: &Tensor<f32, [N + 1]>) {}", "E0326");
  EXPECT_IDS("kernel k() -> f32 reduce(xor) { return 1.0 }", "E0402");
}

TEST(CheckErrors, HostCodeKeepsItsRules) {
  EXPECT_IDS(mainOf("let x: Tensor<f32, [4]> = zeros()\nlet y = exp(x)"), "E0405");
  EXPECT_IDS(mainOf("let x: Tensor<f32, [4]> = zeros()\nprint(softmax(x))"), "E0406");
  EXPECT_IDS(mainOf("let x = zeros()"), "E0327");
  EXPECT_IDS(mainOf("let x: Tensor<f32, [M, N]> = Tensor.from_host(vec![1.0])"), "E0327");
  EXPECT_IDS(mainOf("let v = vec![1, 2]\nv.push(3)"), "E0315");
  EXPECT_IDS(mainOf("let v: Vec<f32> = vec![1.0]\nlet x: Tensor<f32, [N]> = v"), "E0301");
  EXPECT_IDS(mainOf("let i = thread.id.x"), "E0406");
}

TEST(CheckErrors, CallsAreChecked) {
  const std::string add = "fn add(a: i32, b: i32) -> i32 { return a + b }\n";
  EXPECT_IDS(add + mainOf("print(add(1))"), "E0308");
  EXPECT_IDS(add + mainOf("print(add(1, a = 2))"), "E0309");
  EXPECT_IDS(add + mainOf("print(add(1, true))"), "E0301");
  EXPECT_IDS(add + mainOf("print(add::<i32>(1, 2))"), "E0329");
  EXPECT_IDS(add + mainOf("print(add.launch(grid = 1)(1, 2))"), "E0410");
  EXPECT_IDS(add + mainOf("let f = add"), "E0328");
  EXPECT_IDS(mainOf("print(1.foo())"), "E0321");
}

TEST(CheckErrors, MissingNamesSuggestCloseOnes) {
  testing::Analyzed a(mainOf("let counter = 1\nprint(conuter)"));
  EXPECT_NE(a.messages().find("did you mean `counter`?"), std::string::npos) << a.messages();
  testing::Analyzed b(
      "kernel k(a: &Tensor<f32, [M, K]>, b: &Tensor<f32, [N, K]>) -> Tensor<f32, [M, N]> { return a @ b }");
  EXPECT_NE(b.messages().find("`K` and `N`"), std::string::npos) << b.messages();
  EXPECT_NE(b.messages().find(".transpose()` would fit"), std::string::npos) << b.messages();
}

TEST(CheckErrors, GenericErrorsNameTheArguments) {
  EXPECT_IDS("fn f<T: Numeric>(x: T) -> T { return x && x }\nfn main() { print(f(1.5)) }", "E0303");
  testing::Analyzed a("fn f<T: Integer>(x: T) -> T { return x + 300 }\nfn main() { print(f(1u8)) }");
  EXPECT_EQ(a.ids(), "E0302");
  EXPECT_NE(a.messages().find("T = u8"), std::string::npos) << a.messages();
}

TEST(CheckErrors, UnusedGenericFunctionsAreCheckedToo) {
  EXPECT_IDS("fn f<T: Numeric>(x: T) -> T { return x + missing }\nfn main() {}", "E0201");
}

TEST(CheckErrors, EndlessDefinitionsAreFound) {
  EXPECT_IDS("struct A { b: B }\nstruct B { a: A }\nfn main() {}", "E0335 E0335");
  EXPECT_IDS("type A = (B, i32)\ntype B = (A, i32)\nfn main() {}", "E0335 E0335");
  EXPECT_IDS("const A: i32 = A\nfn main() { print(A) }", "E0335");
}

}  // namespace
}  // namespace vortex::lang

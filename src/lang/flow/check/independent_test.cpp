// Loops of whole-tensor kernels whose iterations may run at once.
#include "lang/flow/check/independent.h"

#include "lang/flow/testing/graph_of.h"

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;

size_t independentCount(const std::string& body) {
  GraphOf made("kernel k(x: &Tensor<f32, [N, M]>, v: &Tensor<u32, [N]>, n: usize, out: &mut Tensor<f32, [N, M]>, row: "
               "&mut Tensor<f32, [N]>) {\n" +
               body + "\n}\n");
  const Structure structure(made.graph);
  size_t count = 0;
  for (const LoopVerdict& verdict : loopVerdicts(made.graph, structure))
    count += verdict.kind == LoopVerdict::Kind::Independent;
  return count;
}

TEST(Independent, IterationsThatTouchElementsOfTheirOwnMayBeSpread) {
  for (const char* body :
       {"for i in 0..N { row[i] = x[i, 0] }", "for i in 0..N { out[i, 0] = x[i, 1] * 2.0 }",
        "for i in 0..N { row[i] += x[i, n] }", "for i in 1..N { row[i] = x[i - 1, 0] }",
        "for i in 0..M { out[n, i] = x[n, i] }", "for i in 0..N { let a = x[i, 0]\nrow[i] = a * a }",
        "for i in 0..N { row[i as u64 as usize] = 1.0 }", "for i in 0..N { if v[i] > 3 { row[i] = 1.0 } }",
        "for i in 0..N { row[(i + 1) - 1] = 1.0 }", "for i in range(0, N, 2) { row[i] = 1.0 }",
        "let t = row * 2.0\nfor i in 0..N { row[i] = t[0] }",
        "for i in 0..N { if v[i] > 3 { continue }\nrow[i] = 1.0 }"})
    EXPECT_EQ(independentCount(body), 1u) << body;
}

TEST(Independent, IterationsThatMayMeetStayInOrder) {
  for (const char* body :
       {"for i in 0..N { row[0] = x[i, 0] }", "for i in 0..N { row[i / 2] = x[i, 0] }",
        "for i in 0..N { row[i + 1] = row[i] }", "for i in 1..N { row[i] = row[i - 1] }",
        "for i in 0..N { row[v[i] as usize] = 1.0 }", "for i in 0..N { row[i as u8 as usize] = 1.0 }",
        "var s: f32 = 0.0\nfor i in 0..N { s += x[i, 0]\nrow[i] = s }",
        "for i in 0..N { if v[i] > 3 { break }\nrow[i] = 1.0 }", "for i in range(0, n, n) { row[i] = 1.0 }",
        "for i in 0..N { row[i] = row[n] }", "for i in 0..N { out[i, 0] = out[0, i] }",
        "for i in 0..N { row[i % 7] = 1.0 }", "for i in 0..N { out[i, 0] = 1.0\nout[0, i] = 2.0 }"})
    EXPECT_EQ(independentCount(body), 0u) << body;
}

}  // namespace
}  // namespace vortex::lang::flow

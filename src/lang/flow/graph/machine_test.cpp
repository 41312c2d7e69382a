// What graphs compute, against the same computed here: loops that do not run, jumps out of loops and calls, both operands of conditions.
#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/thread_machine.h"

#include <functional>

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;
using testing::Launch;
using testing::Outcome;
using testing::ThreadMachine;

struct Computed {
  const char* body;  ///< gives `r: i64` from `t: i64` and `n: i64`
  std::function<int64_t(int64_t t, int64_t n)> wanted;
};

constexpr const char* kCalled = "fn find(t: i64, n: i64) -> i64 { for i in 0i64..n { for j in 0i64..i { if i * j == "
                                "t { return i * 100 + j } } }\nreturn -1 }\n"
                                "fn twice(v: &mut i64) { *v *= 2\nif *v > 20 { return }\n*v += 1 }\n";

const Computed kComputed[] = {
    {"r = 7\nfor i in 0i64..n { r += i * t }", [](int64_t t, int64_t n) { return 7 + t * n * (n - 1) / 2; }},
    {"for i in range(n, 0i64, -1) { r = r * 3 + i }",
     [](int64_t, int64_t n) {
       int64_t r = 0;
       for (int64_t i = n; i > 0; --i)
         r = r * 3 + i;
       return r;
     }},
    {"for i in range(t, 20i64, 3) { r = r * 2 + i }",
     [](int64_t t, int64_t) {
       int64_t r = 0;
       for (int64_t i = t; i < 20; i += 3)
         r = r * 2 + i;
       return r;
     }},
    {"for i in range(20i64, t, -7) { r = r * 2 + i }",
     [](int64_t t, int64_t) {
       int64_t r = 0;
       for (int64_t i = 20; i > t; i -= 7)
         r = r * 2 + i;
       return r;
     }},
    {"for i in [3i64, 1, 8, 4] { r = r * 10 + i }", [](int64_t, int64_t) { return 3184; }},
    {"for i in [64i64, 32, ..., 1] { r = r * 2 + i }",
     [](int64_t, int64_t) {
       int64_t r = 0;
       for (int64_t i = 64; i > 0; i /= 2)
         r = r * 2 + i;
       return r;
     }},
    {"for i in [1i64, 2, 4, 8, 16] { r = r * 3 + i }",
     [](int64_t, int64_t) {
       int64_t r = 0;
       for (int64_t i = 1; i < 17; i *= 2)
         r = r * 3 + i;
       return r;
     }},
    {"for i in 0i64..9 { if i == t { break }\nif i % 2 == n % 2 { continue }\nr = r * 10 + i }",
     [](int64_t t, int64_t n) {
       int64_t r = 0;
       for (int64_t i = 0; i < 9; ++i) {
         if (i == t)
           break;
         if (i % 2 == n % 2)
           continue;
         r = r * 10 + i;
       }
       return r;
     }},
    {"var i = t\nwhile i < n { i += 3 }\nr = i",
     [](int64_t t, int64_t n) {
       while (t < n)
         t += 3;
       return t;
     }},
    {"r = loop { if t > 3 { break 5i64 }\nbreak n }", [](int64_t t, int64_t n) { return t > 3 ? 5 : n; }},
    {"r = find(t, n)",
     [](int64_t t, int64_t n) {
       for (int64_t i = 0; i < n; ++i)
         for (int64_t j = 0; j < i; ++j)
           if (i * j == t)
             return i * 100 + j;
       return int64_t(-1);
     }},
    {"r = t\nfor i in 0..3 { twice(&mut r) }",
     [](int64_t t, int64_t) {
       for (int i = 0; i < 3; ++i) {
         t *= 2;
         if (t <= 20)
           t += 1;
       }
       return t;
     }},
    {"if n > 2 && t / (n - 2) > 1 { r = 1 }\nif n < 2 || t % (n - 1) == 0 { r += 2 }",
     [](int64_t t, int64_t n) { return int64_t(n > 2 && t / (n - 2) > 1) + 2 * int64_t(n < 2 || t % (n - 1) == 0); }},
    {"r = match t { 0 => n, 1 => 10, 2 if n > 3 => 20, _ => 30 }",
     [](int64_t t, int64_t n) {
       return t == 0 ? n : t == 1 ? 10 : t == 2 && n > 3 ? 20 : 30;
     }},
    {"var a = 1i64\nvar b = 2i64\nfor i in 0i64..t { let c = a\na = b\nb = c + i }\nr = a * 100 + b",
     [](int64_t t, int64_t) {
       int64_t a = 1, b = 2;
       for (int64_t i = 0; i < t; ++i) {
         const int64_t c = a;
         a = b;
         b = c + i;
       }
       return a * 100 + b;
     }},
    {"for i in 0i64..n { var j = 0i64\nwhile j < i { if j == t { break }\nj += 1 }\nr = r * 2 + j }",
     [](int64_t t, int64_t n) {
       int64_t r = 0;
       for (int64_t i = 0; i < n; ++i) {
         int64_t j = 0;
         while (j < i) {
           if (j == t)
             break;
           ++j;
         }
         r = r * 2 + j;
       }
       return r;
     }},
    {"var few = [4i64, 5, 6]\nfew[(t % 3) as usize] += n\nfor v in few { r = r * 31 + v }\nfor (v, i) in "
     "few.enumerate() { r += i as i64 * v }",
     [](int64_t t, int64_t n) {
       int64_t few[] = {4, 5, 6}, r = 0;
       few[t % 3] += n;
       for (int64_t v : few)
         r = r * 31 + v;
       return r + few[1] + 2 * few[2];
     }},
    {"var p = (t, n)\nif t > 3 { p.0 = n }\np.1 += p.0\nr = p.0 * 50 + p.1",
     [](int64_t t, int64_t n) {
       const int64_t a = t > 3 ? n : t;
       return a * 50 + n + a;
     }},
    {"r = if t > n { if t > 5 { 1i64 } else { 2 } } else { t - n }",
     [](int64_t t, int64_t n) { return t > n ? (t > 5 ? 1 : 2) : t - n; }},
    {"var i = 0u8\nloop { i += 50\nr += 1\nif i < 50 { break } }\nr = r * 1000 + i as i64",
     [](int64_t, int64_t) { return 6044; }},
};

TEST(Machine, GraphsComputeWhatTheProgramSays) {
  for (const Computed& each : kComputed) {
    GraphOf made(std::string(kCalled) +
                 "@launch(grid = [1], block = 12)\nkernel k(x: &mut Tensor<i64, [12]>, n: i64) {\nlet t = "
                 "thread.local_id as i64\nvar r = 0i64\n" +
                 each.body + "\nx[thread.local_id] = r\n}");
    if (made.graph.blocks.empty())
      continue;
    for (int64_t n : {0, 1, 2, 5, 9}) {
      Launch launch;
      launch.block = {12, 1, 1};
      launch.scalars[made.graph[made.graph.params[1]].variable] = n;
      ThreadMachine machine(made.graph, launch);
      ASSERT_EQ(machine.run(), Outcome::Done) << each.body;
      for (int64_t t = 0; t < 12; ++t) {
        const auto found = machine.element(made.graph.params[0], {t});
        ASSERT_TRUE(found.has_value()) << each.body << made.dump();
        EXPECT_EQ(static_cast<int64_t>(*found), each.wanted(t, n)) << each.body << " for t = " << t << ", n = " << n;
      }
    }
  }
}

}  // namespace
}  // namespace vortex::lang::flow

// Programs of softmax between two products, from source to what runs on the machine of target/gpu/testing, against float64: orders and groups of
// dimensions, values per row beside the results, and masks that bound the loop.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "target/gpu/hopper/testing/forms.h"

namespace vortex::target::gpu::hopper {
namespace {

std::vector<Program> programs() {
  const Argument q{"q", "bhsd"}, k{"k", "bhtd"}, v{"v", "bhte"}, out{"out", "bhse"}, lse{"lse", "bhs", Kind::F32};
  const Argument keys{"k", "bgtd"}, values{"v", "bgte"};
  const std::string plain = "kernel attention(q: &Tensor<TYPE, [B, H, S, D]>, k: &Tensor<TYPE, [B, H, T, D]>, "
                            "v: &Tensor<TYPE, [B, H, T, E]>",
                    scores = ") -> Tensor<TYPE, [B, H, S, E]> {\n    let scores = (q @ k.transpose()) as f32 * 0.25\n",
                    result = "    return softmax(scores) as TYPE @ v\n}\n";
  const std::string grouped = "kernel attention(q: &Tensor<TYPE, [B, G * R, S, D]>, k: &Tensor<TYPE, [B, G, T, D]>, "
                              "v: &Tensor<TYPE, [B, G, T, E]>";
  const std::string groupedScores = "    let scores = (q.reshape([B, G, R, S, D]) @ k.reshape([B, G, 1, T, D])"
                                    ".transpose()) as f32 * 0.25\n";
  const std::string groupedResult = "    return (softmax(scores) as TYPE @ v.reshape([B, G, 1, T, E]))"
                                    ".reshape([B, G * R, S, E])\n}\n";
  const std::string sums = "    let m = max(scores, dim = -1)\n    let x = exp(scores - m.reshape([B, H, S, 1]))\n"
                           "    let l = sum(x, dim = -1)\n    let p = (x / l.reshape([B, H, S, 1])) as TYPE\n";
  return {
      {"grouped_by_reshape",
       grouped + ") -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores + groupedResult,
       {q, keys, values, out},
       nothing},
      {"grouped_with_slopes",
       grouped + ", slopes: &Tensor<f32, [G * R]>) -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores +
           "    scores = scores + slopes.reshape([G, R, 1, 1]) * (arange(T) as f32)\n" + groupedResult,
       {q, keys, values, {"slopes", "h", Kind::F32}, out},
       [](auto& of, const Sizes& at, const Sizes&, Format format) {
         return of.at("slopes").value(at, format) * double(at.at('t'));
       }},
      {"keys_repeated",
       grouped + ") -> Tensor<TYPE, [B, G * R, S, E]> {\n"
                 "    let keys = k.reshape([B, G, 1, T, D]).broadcast([B, G, R, T, D]).reshape([B, G * R, T, D])\n"
                 "    let values = v.reshape([B, G, 1, T, E]).broadcast([B, G, R, T, E]).reshape([B, G * R, T, E])\n"
                 "    return softmax((q @ keys.transpose()) as f32 * 0.25) as TYPE @ values\n}\n",
       {q, keys, values, out},
       nothing},
      {"grouped_result_of_five_dimensions",
       grouped + ") -> Tensor<TYPE, [B, G, R, S, E]> {\n" + groupedScores +
           "    return softmax(scores) as TYPE @ v.reshape([B, G, 1, T, E])\n}\n",
       {q, keys, values, {"out", "bgrse"}},
       nothing},
      {"result_split_into_groups",
       "kernel attention(q: &Tensor<TYPE, [B, G * R, S, D]>, k: &Tensor<TYPE, [B, G * R, T, D]>, "
       "v: &Tensor<TYPE, [B, G * R, T, E]>, like: &Tensor<f32, [G]>) -> Tensor<TYPE, [B, G, R, S, E]> {\n"
       "    return (softmax((q @ k.transpose()) as f32 * 0.25) as TYPE @ v).reshape([B, G, R, S, E])\n}\n",
       {q, k, v, {"like", "g", Kind::F32}, {"out", "bgrse"}},
       nothing},
      {"by_position",
       "kernel attention(q: &Tensor<TYPE, [B, S, H, D]>, k: &Tensor<TYPE, [B, T, H, D]>, v: &Tensor<TYPE, [B, T, H, "
       "E]>)"
       " -> Tensor<TYPE, [B, S, H, E]> {\n"
       "    let scores = (q.transpose([0, 2, 1, 3]) @ k.transpose([0, 2, 3, 1])) as f32 * 0.25\n"
       "    return (softmax(scores) as TYPE @ v.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3])\n}\n",
       {{"q", "bshd"}, {"k", "bthd"}, {"v", "bthe"}, {"out", "bshe"}},
       nothing},
      {"heads_joined",
       "kernel attention(q: &Tensor<TYPE, [B, H, S, D]>, k: &Tensor<TYPE, [B, H, T, D]>, v: &Tensor<TYPE, [B, H, T, "
       "E]>)"
       " -> Tensor<TYPE, [B, S, H * E]> {\n"
       "    let heads = softmax((q @ k.transpose()) as f32 * 0.25) as TYPE @ v\n"
       "    return heads.transpose([0, 2, 1, 3]).reshape([B, S, H * E])\n}\n",
       {q, k, v, {"out", "bshe", Kind::Narrow, true}},
       nothing},
      {"grouped_heads_joined_in_f32",
       grouped + ") -> Tensor<f32, [B, S, G * R * E]> {\n" + groupedScores +
           "    let heads = softmax(scores) as TYPE @ v.reshape([B, G, 1, T, E])\n"
           "    return (heads.transpose([0, 3, 1, 2, 4]).reshape([B, S, G * R * E])) as f32\n}\n",
       {q, keys, values, {"out", "bshe", Kind::F32, true}},
       nothing},
      {"grouped_by_position_with_residual",
       "kernel attention(q: &Tensor<TYPE, [B, S, G * R, D]>, k: &Tensor<TYPE, [B, T, G, D]>, "
       "v: &Tensor<TYPE, [B, T, G, E]>, zeros: &Tensor<TYPE, [B, S, G * R, E]>) -> Tensor<TYPE, [B, S, G * R, E]> {\n"
       "    let queries = q.transpose([0, 2, 1, 3]).reshape([B, G, R, S, D])\n"
       "    let keys = k.transpose([0, 2, 1, 3]).reshape([B, G, 1, T, D])\n"
       "    let values = v.transpose([0, 2, 1, 3]).reshape([B, G, 1, T, E])\n"
       "    let heads = softmax((queries @ keys.transpose()) as f32 * 0.25) as TYPE @ values\n"
       "    return heads.reshape([B, G * R, S, E]).transpose([0, 2, 1, 3]) + zeros\n}\n",
       {{"q", "bshd"}, {"k", "btgd"}, {"v", "btge"}, {"zeros", "bshe"}, {"out", "bshe"}},
       nothing},
      {"sums_beside",
       plain +
           ") -> (Tensor<TYPE, [B, H, S, E]>, Tensor<f32, [B, H, S]>) {\n"
           "    let scores = (q @ k.transpose()) as f32 * 0.25\n" +
           sums + "    return (p @ v, m + log(l))\n}\n",
       {q, k, v, out, lse},
       nothing},
      {"sums_before_by_position_causal",
       "kernel attention(q: &Tensor<TYPE, [B, S, H, D]>, k: &Tensor<TYPE, [B, T, H, D]>, v: &Tensor<TYPE, [B, T, H, "
       "E]>)"
       " -> (Tensor<f32, [B, S, H, 1]>, Tensor<TYPE, [B, S, H, E]>) {\n"
       "    let scores = (q.transpose([0, 2, 1, 3]) @ k.transpose([0, 2, 3, 1])) as f32 * 0.25\n"
       "    scores = scores.mask_upper_triangle(-inf)\n" +
           sums +
           "    return ((m + log(l)).transpose([0, 2, 1]).reshape([B, S, H, 1]), "
           "(p @ v.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3]))\n}\n",
       {{"q", "bshd"}, {"k", "bthd"}, {"v", "bthe"}, {"lse", "bsh", Kind::F32}, {"out", "bshe"}},
       [](auto&, const Sizes& at, const Sizes&, Format) { return keptIf(at.at('t') <= at.at('s')); }},
      {"grouped_sums_beside",
       grouped + ") -> (Tensor<TYPE, [B, G * R, S, E]>, Tensor<f32, [B, G * R, S]>) {\n" + groupedScores +
           "    let m = max(scores, dim = -1)\n    let x = exp(scores - m.reshape([B, G, R, S, 1]))\n"
           "    let l = sum(x, dim = -1)\n"
           "    let heads = (x / l.reshape([B, G, R, S, 1])) as TYPE @ v.reshape([B, G, 1, T, E])\n"
           "    return (heads.reshape([B, G * R, S, E]), (m + log(l)).reshape([B, G * R, S]))\n}\n",
       {q, keys, values, out, lse},
       nothing},
      {"causal_from_the_end",
       plain + scores + "    scores = scores.mask_upper_triangle(-inf, offset = T as i64 - S as i64)\n" + result,
       {q, k, v, out},
       [](auto&, const Sizes& at, const Sizes& all, Format) {
         return keptIf(at.at('t') <= at.at('s') + all.at('t') - all.at('s'));
       }},
      {"causal_by_a_flag",
       plain + ", causal: bool" + scores +
           "    if causal { scores = scores.mask_upper_triangle(-inf, offset = T as i64 - S as i64) }\n" + result,
       {q, k, v, {"", "", Kind::Scalar}, out},
       [](auto&, const Sizes& at, const Sizes& all, Format) {
         return keptIf(at.at('t') <= at.at('s') + all.at('t') - all.at('s'));
       },
       1},
      {"window",
       plain + scores +
           "    let row = arange(S).reshape([S, 1])\n"
           "    scores = select(arange(T) <= row && arange(T) + 70 > row, scores, -inf)\n" +
           result,
       {q, k, v, out},
       [](auto&, const Sizes& at, const Sizes&, Format) {
         return keptIf(at.at('t') <= at.at('s') && at.at('t') + 70 > at.at('s'));
       }},
      {"lengths",
       plain + ", count: &Tensor<i32, [B]>" + scores +
           "    scores = select(arange(T) < count.reshape([B, 1, 1, 1]), scores, -inf)\n" + result,
       {q, k, v, {"count", "b", Kind::Count}, out},
       [](auto& of, const Sizes& at, const Sizes&, Format) { return keptIf(at.at('t') < of.at("count").integer(at)); }},
      {"grouped_lengths_and_causal",
       grouped + ", count: &Tensor<i32, [B]>) -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores +
           "    scores = select(arange(T) < count.reshape([B, 1, 1, 1, 1]), scores.mask_upper_triangle(-inf), -inf)\n" +
           groupedResult,
       {q, keys, values, {"count", "b", Kind::Count}, out},
       [](auto& of, const Sizes& at, const Sizes&, Format) {
         return keptIf(at.at('t') < of.at("count").integer(at) && at.at('t') <= at.at('s'));
       }},
  };
}

class Forms : public ::testing::TestWithParam<Program> {};

TEST_P(Forms, AreOnePhaseWithTheResultsOfTheirDefinition) {
  Form form(GetParam(), base::freshSeed() % 2 == 0);
  ASSERT_EQ(form.error, "");
  // Several heads in groups; several blocks of rows and chunks of keys, both ragged.
  const std::pair<Sizes, Timing> launches[] = {{sizesOf(2, 2, 2, 30, 75, 16, 24), Timing::Random},
                                               {sizesOf(1, 1, 2, 131, 140, 40, 64), Timing::Late}};
  for (const auto& [sizes, timing] : llvm::ArrayRef(launches).drop_back(base::kIsSanitized ? 1 : 0)) {
    ASSERT_EQ(form.choose(sizes), "");
    const unsigned seed = base::freshSeed();
    EXPECT_EQ(form.run(form.code(), seed, timing), "") << "seed " << seed << ", queries " << sizes.at('s');
  }
}

INSTANTIATE_TEST_SUITE_P(Hopper, Forms, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return info.param.name; });

/// Chunks of 128 keys on both sides of those that are left: what they hold does not matter.
TEST(FormBounds, ChunksThatMasksLeaveNothingOfAreNotRead) {
  const Argument q{"q", "bhsd"}, k{"k", "bhtd"}, v{"v", "bhte"}, count{"count", "b", Kind::Count}, out{"out", "bhse"};
  const Program program{"between",
                        "kernel attention(q: &Tensor<TYPE, [B, H, S, D]>, k: &Tensor<TYPE, [B, H, T, D]>, v: "
                        "&Tensor<TYPE, [B, H, T, E]>, "
                        "count: &Tensor<i32, [B]>) -> Tensor<TYPE, [B, H, S, E]> {\n"
                        "    let first = count.reshape([B, 1, 1, 1])\n"
                        "    let kept = arange(T) >= first && arange(T) < first + 100\n"
                        "    return softmax(select(kept, (q @ k.transpose()) as f32 * 0.25, -inf)) as TYPE @ v\n}\n",
                        {q, k, v, count, out},
                        [](auto& of, const Sizes& at, const Sizes&, Format) {
                          const int64_t first = of.at("count").integer(at);
                          return keptIf(at.at('t') >= first && at.at('t') < first + 100);
                        }};
  Form form(program, false);
  ASSERT_EQ(form.error, "");
  form.workers = 1;
  ASSERT_EQ(form.choose(sizesOf(1, 1, 1, 70, 600, 16, 16)), "");
  form.count = 140;
  for (auto keys : {std::pair<int64_t, int64_t>{0, 128}, {256, 600}}) {
    form.poisoned = keys;
    EXPECT_EQ(form.run(form.code(), 1, Timing::Random), "") << "keys from " << keys.first;
  }
  // Masked in a chunk of which something is left: read, and 0 · NaN is NaN as written.
  form.poisoned = {128, 130};
  EXPECT_NE(form.run(form.code(), 1, Timing::Random), "");
}

/// With a value per row, groups and a mask; rings go round. Waits for staged results have nothing to wait for here but the last.
TEST(FormMutants, CodeWithoutOneWaitArrivalOrFenceFails) {
  std::vector<Program> all = programs();
  Form form(*llvm::find_if(all, [](const Program& each) { return each.name == std::string("grouped_sums_beside"); }),
            false);
  ASSERT_EQ(form.error, "");
  form.workers = 1;
  ASSERT_EQ(form.choose(sizesOf(1, 1, 1, 128, 128 * 5, 64, 64)), "");
  ASSERT_EQ(form.run(form.code(), 1, Timing::Late), "");
  const size_t count = countOrdering(form.code());
  EXPECT_GT(count, 30u);
  for (size_t number = 0; number < count; number += base::kIsSanitized ? count / 4 : 1) {
    std::string left;
    const std::string failure = runWithout(form, number, left);
    const bool isStaging = left.starts_with("vxnv.bulk_wait") && left.find("written") == std::string::npos;
    EXPECT_TRUE(isStaging || !failure.empty()) << "passes without number " << number << ": " << left;
  }
}

}  // namespace
}  // namespace vortex::target::gpu::hopper

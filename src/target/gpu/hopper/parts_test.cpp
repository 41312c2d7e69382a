// Launches of few queries and long keys: blocks have pieces of the keys, and a second phase combines them.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "target/gpu/hopper/testing/forms.h"

namespace vortex::target::gpu::hopper {
namespace {

struct PartsCase {
  Program program;
  Sizes sizes;
};

std::vector<PartsCase> partsCases() {
  const Argument q{"q", "bhsd"}, k{"k", "bhtd"}, v{"v", "bhte"}, out{"out", "bhse"}, lse{"lse", "bhs", Kind::F32};
  const Argument keys{"k", "bgtd"}, values{"v", "bgte"};
  const std::string plain = "kernel attention(q: &Tensor<TYPE, [B, H, S, D]>, k: &Tensor<TYPE, [B, H, T, D]>, "
                            "v: &Tensor<TYPE, [B, H, T, E]>",
                    scores = "    let scores = (q @ k.transpose()) as f32 * 0.25\n",
                    result = "    return softmax(scores) as TYPE @ v\n}\n";
  const std::string grouped = "kernel attention(q: &Tensor<TYPE, [B, G * R, S, D]>, k: &Tensor<TYPE, [B, G, T, D]>, "
                              "v: &Tensor<TYPE, [B, G, T, E]>",
                    groupedScores = "    let scores = (q.reshape([B, G, R, S, D]) @ k.reshape([B, G, 1, T, D])"
                                    ".transpose()) as f32 * 0.25\n",
                    groupedResult = "    return (softmax(scores) as TYPE @ v.reshape([B, G, 1, T, E]))"
                                    ".reshape([B, G * R, S, E])\n}\n";
  const std::string sums = "    let m = max(scores, dim = -1)\n    let x = exp(scores - m.reshape([B, G, R, S, 1]))\n"
                           "    let l = sum(x, dim = -1)\n"
                           "    let heads = (x / l.reshape([B, G, R, S, 1])) as TYPE @ v.reshape([B, G, 1, T, E])\n"
                           "    return (heads.reshape([B, G * R, S, E]), (m + log(l)).reshape([B, G * R, S]))\n}\n";
  const auto isBeforeEnd = [](auto&, const Sizes& at, const Sizes& all, Format) {
    return keptIf(at.at('t') <= at.at('s') + all.at('t') - all.at('s'));
  };
  return {
      {{"one_query", plain + ") -> Tensor<TYPE, [B, H, S, E]> {\n" + scores + result, {q, k, v, out}, nothing},
       sizesOf(2, 1, 2, 1, 600, 64, 64)},
      {{"one_head_without_batches",
        "kernel attention(q: &Tensor<TYPE, [S, D]>, k: &Tensor<TYPE, [T, D]>, v: &Tensor<TYPE, [T, E]>) -> "
        "Tensor<TYPE, [S, E]> {\n    return softmax((q @ k.transpose()) as f32 * 0.25) as TYPE @ v\n}\n",
        {{"q", "sd"}, {"k", "td"}, {"v", "te"}, {"out", "se"}},
        nothing},
       sizesOf(1, 1, 1, 70, 900, 40, 104)},
      {{"grouped_one_query",
        grouped + ") -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores + groupedResult,
        {q, keys, values, out},
        nothing},
       sizesOf(1, 2, 5, 1, 515, 128, 72)},
      {{"grouped_few_queries_causal",
        grouped + ") -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores +
            "    scores = scores.mask_upper_triangle(-inf, offset = T as i64 - S as i64)\n" + groupedResult,
        {q, keys, values, out},
        isBeforeEnd},
       sizesOf(1, 1, 66, 2, 520, 16, 16)},
      {{"grouped_wide",
        grouped + ") -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores + groupedResult,
        {q, keys, values, out},
        nothing},
       sizesOf(1, 1, 4, 1, 530, 200, 256)},
      {{"grouped_by_position",
        "kernel attention(q: &Tensor<TYPE, [B, S, G * R, D]>, k: &Tensor<TYPE, [B, T, G, D]>, "
        "v: &Tensor<TYPE, [B, T, G, E]>) -> Tensor<TYPE, [B, S, G * R, E]> {\n"
        "    let queries = q.transpose([0, 2, 1, 3]).reshape([B, G, R, S, D])\n"
        "    let keys = k.transpose([0, 2, 1, 3]).reshape([B, G, 1, T, D])\n"
        "    let values = v.transpose([0, 2, 1, 3]).reshape([B, G, 1, T, E])\n"
        "    let heads = softmax((queries @ keys.transpose()) as f32 * 0.25) as TYPE @ values\n"
        "    return heads.reshape([B, G * R, S, E]).transpose([0, 2, 1, 3])\n}\n",
        {{"q", "bshd"}, {"k", "btgd"}, {"v", "btge"}, {"out", "bshe"}},
        nothing},
       sizesOf(1, 2, 4, 2, 600, 64, 64)},
      {{"grouped_heads_joined",
        grouped + ") -> Tensor<TYPE, [B, S, G * R * E]> {\n" + groupedScores +
            "    let heads = softmax(scores) as TYPE @ v.reshape([B, G, 1, T, E])\n"
            "    return heads.transpose([0, 3, 1, 2, 4]).reshape([B, S, G * R * E])\n}\n",
        {q, keys, values, {"out", "bshe", Kind::Narrow, true}},
        nothing},
       sizesOf(2, 1, 4, 2, 520, 16, 24)},
      {{"grouped_sums_beside",
        grouped + ") -> (Tensor<TYPE, [B, G * R, S, E]>, Tensor<f32, [B, G * R, S]>) {\n" + groupedScores + sums,
        {q, keys, values, out, lse},
        nothing},
       sizesOf(1, 2, 8, 1, 700, 64, 64)},
      {{"grouped_lengths",
        grouped + ", count: &Tensor<i32, [B]>) -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores +
            "    scores = select(arange(T) < count.reshape([B, 1, 1, 1, 1]), scores, -inf)\n" + groupedResult,
        {q, keys, values, {"count", "b", Kind::Count}, out},
        [](auto& of, const Sizes& at, const Sizes&, Format) {
          return keptIf(at.at('t') < of.at("count").integer(at));
        }},
       sizesOf(4, 1, 3, 1, 800, 16, 24)},
      {{"slopes_per_head",
        grouped + ", slopes: &Tensor<f32, [G * R]>) -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores +
            "    scores = scores + slopes.reshape([G, R, 1, 1]) * (arange(T) as f32)\n" + groupedResult,
        {q, keys, values, {"slopes", "h", Kind::F32}, out},
        [](auto& of, const Sizes& at, const Sizes&, Format format) {
          return of.at("slopes").value(at, format) * double(at.at('t'));
        }},
       sizesOf(1, 2, 3, 1, 512, 16, 16)},
      {{"window_of_few_rows",
        plain + ") -> Tensor<TYPE, [B, H, S, E]> {\n" + scores +
            "    let row = arange(S).reshape([S, 1])\n"
            "    scores = select(arange(T) + 300 > row * 10 && arange(T) <= row * 10 + 200, scores, -inf)\n" +
            result,
        {q, k, v, out},
        [](auto&, const Sizes& at, const Sizes&, Format) {
          return keptIf(at.at('t') + 300 > at.at('s') * 10 && at.at('t') <= at.at('s') * 10 + 200);
        }},
       sizesOf(1, 1, 1, 60, 700, 64, 64)},
  };
}

class Parts : public ::testing::TestWithParam<PartsCase> {};

TEST_P(Parts, GiveTheResultsOfTheDefinitionAndTheSameBitsEveryTime) {
  Form form(GetParam().program, base::freshSeed() % 2 == 0);
  ASSERT_EQ(form.error, "");
  form.workers = 2;  // few pieces, so that there is less to run
  while (form.workers < 64 && !form.choose(GetParam().sizes, 2).empty())
    form.workers *= 2;
  ASSERT_EQ(form.choose(GetParam().sizes, 2), "");
  const unsigned seed = base::freshSeed();
  EXPECT_EQ(form.run(form.code(), seed, Timing::Random), "") << "seed " << seed;
  if (base::kIsSanitized)
    return;
  const std::string first = form.results();
  EXPECT_EQ(form.run(form.code(), seed, Timing::Late, seed + 1), "") << "seed " << seed;
  EXPECT_EQ(first, form.results()) << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Hopper, Parts, ::testing::ValuesIn(partsCases()),
                         [](const auto& info) { return info.param.program.name; });

/// Pieces without a maximum count for nothing; rows without one are NaN.
TEST(PartsMasks, PiecesOfWhichNothingIsLeftDoNotCount) {
  std::vector<PartsCase> all = partsCases();
  const PartsCase& lengths =
      *llvm::find_if(all, [](const PartsCase& each) { return each.program.name == std::string("grouped_lengths"); });
  Form form(lengths.program, false);
  ASSERT_EQ(form.error, "");
  form.workers = 2;
  ASSERT_EQ(form.choose(sizesOf(1, 1, 3, 1, 800, 16, 24), 2), "");
  for (int32_t count : {1, 300, -1}) {
    form.count = count;
    EXPECT_EQ(form.run(form.code(), 1, Timing::Random), "") << count << " keys are left";
  }
}

/// One consumer, in rings that go round.
TEST(PartsMutants, CodeWithoutOneWaitArrivalOrFenceFails) {
  std::vector<PartsCase> all = partsCases();
  Form form(
      llvm::find_if(all, [](const PartsCase& each) { return each.program.name == std::string("grouped_sums_beside"); })
          ->program,
      false);
  ASSERT_EQ(form.error, "");
  form.workers = 1;  // pieces of four chunks, and of one
  ASSERT_EQ(form.choose(sizesOf(1, 2, 2, 1, 128 * 5, 64, 64), 2), "");
  ASSERT_EQ(form.run(form.code(), 1, Timing::Late), "");
  const size_t count = countOrdering(form.code());
  EXPECT_GT(count, 20u);
  size_t joined = 0;  // stores that go to the group of the last ones: nothing waits for them in between
  for (size_t number = 0; number < count; number += base::kIsSanitized ? count / 4 : 1) {
    std::string left;
    const std::string failure = runWithout(form, number, left);
    const bool isStaging = left.starts_with("vxnv.bulk_wait") && left.find("written") == std::string::npos;
    joined += failure.empty() && left.starts_with("vxnv.bulk_commit");
    EXPECT_TRUE(isStaging || !failure.empty() || (joined == 1 && left.starts_with("vxnv.bulk_commit")))
        << "passes without number " << number << ": " << left;
  }
}

}  // namespace
}  // namespace vortex::target::gpu::hopper

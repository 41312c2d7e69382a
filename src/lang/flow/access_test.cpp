// Random index expressions against counting: every lane of every warp, every iteration and many values of an unknown argument.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <set>

#include "lang/flow/check/banks.h"
#include "lang/flow/check/sectors.h"
#include "lang/flow/graph/lower_function.h"
#include "lang/flow/testing/analyzed.h"
#include "layout/memory_access.h"
#include "layout/swizzle.h"

namespace vortex::lang::flow {
namespace {

struct Point {
  int64_t x, y, lane, warp, k, n;
};
struct RandomIndex {
  std::string text;
  std::function<uint64_t(const Point&)> value;
};

class Generator {
public:
  explicit Generator(unsigned seed, bool hasUnknowns, bool wraps = false)
      : random_(seed), hasUnknowns_(hasUnknowns), wraps_(wraps) {}

  RandomIndex index(int depth) {
    if (depth == 0 || random_() % 6 == 0)
      return leaf();
    RandomIndex a = index(depth - 1);
    const uint64_t power = uint64_t(1) << (1 + random_() % 5), any = 1 + random_() % 40;
    switch (random_() % (wraps_ ? 16 : 9)) {
    case 0: return number(a, " * ", any, [any](uint64_t v) { return v * any; });
    case 1: return number(a, " * ", power, [power](uint64_t v) { return v * power; });
    case 2: return number(a, " / ", power, [power](uint64_t v) { return v / power; });
    case 3: return number(a, " % ", power, [power](uint64_t v) { return v % power; });
    case 4: return number(a, " ^ ", any, [any](uint64_t v) { return v ^ any; });
    case 5: return number(a, " & ", any, [any](uint64_t v) { return v & any; });
    case 9: return number(a, " - ", any, [any](uint64_t v) { return v - any; });
    case 10: return number(a, " >> ", any, [any](uint64_t v) { return v >> any; });
    case 11: return number(a, " % ", any, [any](uint64_t v) { return v % any; });
    case 12: return number(a, " as u8 as usize + ", any, [any](uint64_t v) { return (v & 255) + any; });
    case 13: return number(a, " as u32 as usize + ", any, [any](uint64_t v) { return (v & UINT32_MAX) + any; });
    case 14:
    case 15: return chosen(a, index(depth - 1));
    default: {
      RandomIndex b = index(depth - 1);
      const bool isXor = random_() % 3 == 0;
      auto f = a.value, g = b.value;
      if (isXor)
        return {"((" + a.text + ") ^ (" + b.text + "))", [f, g](const Point& p) { return f(p) ^ g(p); }};
      return {"(" + a.text + " + " + b.text + ")", [f, g](const Point& p) { return f(p) + g(p); }};
    }
    }
  }

private:
  static RandomIndex number(const RandomIndex& a, const std::string& op, uint64_t constant,
                            const std::function<uint64_t(uint64_t)>& apply) {
    auto f = a.value;
    return {"((" + a.text + ")" + op + std::to_string(constant) + ")",
            [f, apply](const Point& p) { return apply(f(p)); }};
  }
  RandomIndex chosen(const RandomIndex& a, const RandomIndex& b) {
    auto f = a.value, g = b.value;
    switch (random_() % 4) {
    case 0: return {"min(" + a.text + ", " + b.text + ")", [f, g](const Point& p) { return std::min(f(p), g(p)); }};
    case 1: return {"max(" + a.text + ", " + b.text + ")", [f, g](const Point& p) { return std::max(f(p), g(p)); }};
    default: {
      const RandomIndex c = leaf();
      auto h = c.value;
      return {"(if " + a.text + " < " + b.text + " { " + c.text + " } else { " + b.text + " })",
              [f, g, h](const Point& p) { return f(p) < g(p) ? h(p) : g(p); }};
    }
    }
  }
  RandomIndex leaf() {
    switch (random_() % (hasUnknowns_ ? 7 : 5)) {
    case 0:
    case 1: return {"thread.id.x", [](const Point& p) -> uint64_t { return static_cast<uint64_t>(p.x); }};
    case 2: return {"thread.id.y", [](const Point& p) -> uint64_t { return static_cast<uint64_t>(p.y); }};
    case 3: return {"warp.lane_id", [](const Point& p) -> uint64_t { return static_cast<uint64_t>(p.lane); }};
    case 4:
      return {"thread.local_id",
              [](const Point& p) -> uint64_t { return static_cast<uint64_t>(p.warp * 32 + p.lane); }};
    case 5: return {"k", [](const Point& p) -> uint64_t { return static_cast<uint64_t>(p.k); }};
    default: return {"n", [](const Point& p) -> uint64_t { return static_cast<uint64_t>(p.n); }};
    }
  }

  std::mt19937 random_;
  bool hasUnknowns_, wraps_;
};

constexpr uint64_t kTileElements = 10000;

struct Case {
  int64_t blockX, blockY;
  std::string type;
  int64_t bytes;
};

std::string kernelText(const Case& each, const std::string& index, const std::string& tensor) {
  return "@launch(grid = [1], block = [" + std::to_string(each.blockX) + ", " + std::to_string(each.blockY) +
         "])\n@unchecked(coalescing)\nkernel f(x: &Tensor<" + each.type + ", [1000000]>, n: usize, y: &mut Tensor<" +
         each.type + ", [65536]>) {\n    let tile: Tensor<" + each.type +
         ", [10000]> @shared\n    tile[thread.local_id] = 0\n    sync_block()\n    for k in 0..6usize {\n        "
         "y[thread.local_id] = " +
         tensor + "[" + index + "]\n    }\n}\n";
}

/// A kernel's accesses, with what they are made of.
struct Mapped {
  explicit Mapped(const std::string& text)
      : analyzed(text), kernel(*analyzed.program->kernels[0]), shapes(launchShapes(kernel, *analyzed.program)),
        graph(lowerKernel(kernel)), structure(graph), uniformity(graph, structure, shapes.writtenBlocks()),
        map(graph, structure, uniformity, shapes, shapes.blocks[0]) {}

  /// The first or last one of the tensor.
  const ElementAccess* of(const std::string& name, bool isLast) const {
    const ElementAccess* found = nullptr;
    for (const ElementAccess& access : map.accesses)
      if (map.nameOf(access) == name && (isLast || !found))
        found = &access;
    return found;
  }

  testing::Analyzed analyzed;
  const Function& kernel;
  LaunchShapes shapes;
  Graph graph;
  Structure structure;
  Uniformity uniformity;
  AccessMap map;
};

Point pointOf(const Case& each, int64_t warp, int64_t lane, int64_t k, int64_t n) {
  const int64_t linear = warp * 32 + lane;
  return {linear % each.blockX, linear / each.blockX, lane, warp, k, n};
}

/// Words per bank, at worst.
unsigned countedDegree(const Case& each, const RandomIndex& index) {
  unsigned worst = 1;
  const int64_t warps = each.blockX * each.blockY / 32, phase = each.bytes == 8 ? 16 : 32;
  for (int64_t n = 0; n < 64; ++n)
    for (int64_t k = 0; k < 6; ++k)
      for (int64_t warp = 0; warp < warps; ++warp)
        for (int64_t first = 0; first < 32; first += phase) {
          std::set<int64_t> words[32];
          for (int64_t lane = first; lane < first + phase; ++lane) {
            const uint64_t element = index.value(pointOf(each, warp, lane, k, n));
            if (element >= kTileElements)
              continue;  // accesses nothing
            const auto at = static_cast<int64_t>(element) * each.bytes;
            for (int64_t byte = at; byte < at + each.bytes; ++byte)
              words[byte / 4 % 32].insert(byte / 4);
          }
          for (const auto& bank : words)
            worst = std::max(worst, static_cast<unsigned>(bank.size()));
        }
  return worst;
}

const Case kCases[] = {{256, 1, "f32", 4}, {32, 8, "f32", 4}, {16, 16, "f32", 4},
                       {64, 2, "f64", 8},  {8, 8, "f16", 2},  {32, 2, "u8", 1}};

/// Of random indices: their number, and how many are decided.
struct Decided {
  unsigned some = 0, all = 0;
};

/// `mayBeLess`: words that counting does not reach with its few values of an unknown.
void expectCountedDegree(unsigned seed, Generator generator, bool mayBeLess, Decided& decided) {
  const Case& each = kCases[seed % std::size(kCases)];
  const RandomIndex index = generator.index(3);
  Mapped mapped(kernelText(each, index.text, "tile"));
  ASSERT_EQ(mapped.analyzed.ids(), "") << mapped.analyzed.messages();
  const ElementAccess* access = mapped.of("tile", true);
  ASSERT_NE(access, nullptr);
  const BankAnswer answer = bankUse(mapped.map, *access);
  ++decided.all;
  if (answer.open)
    return;
  ++decided.some;
  const unsigned counted = countedDegree(each, index);
  EXPECT_GE(answer.worst.degree, counted) << "seed " << seed << ": " << each.type << " tile[" << index.text << "]";
  if (answer.worst.isExact && !mayBeLess)
    EXPECT_EQ(answer.worst.degree, counted) << "seed " << seed << ": " << each.type << " tile[" << index.text << "]";
}

TEST(Accesses, BankDegreesAreThoseThatCountingFinds) {
  Decided decided;
  for (unsigned seed = 0; seed < 120; ++seed)
    expectCountedDegree(seed, Generator(seed, seed % 2), false, decided);
  EXPECT_GT(decided.some * 10, decided.all * 8) << decided.some << " of " << decided.all;
}

TEST(Accesses, NoConflictOfNumbersThatWrapIsMissed) {
  Decided decided;
  for (unsigned seed = 2000; seed < 2300; ++seed)
    expectCountedDegree(seed, Generator(seed, seed % 3 == 0, true), seed % 3 == 0, decided);
  EXPECT_GT(decided.some * 10, decided.all * 7) << decided.some << " of " << decided.all;
}

struct Element {
  const char* type;
  unsigned bytes;
};
constexpr Element kElements[] = {{"u8", 1}, {"f16", 2}, {"f32", 4}, {"f64", 8}};

/// Of lanes at these elements.
unsigned degreeOf(unsigned bytes, const std::function<uint64_t(uint64_t)>& element) {
  std::vector<uint64_t> offsets;
  for (uint64_t lane = 0; lane < kLanes; ++lane)
    offsets.push_back(element(lane) * bytes);
  return layout::countBanks(offsets, bytes).degree;
}

std::string tileKernel(const std::string& tile, const std::string& body) {
  return "@launch(grid = [1], block = 64)\nkernel f(y: &mut Tensor<u32, [64]>) {\n    let t: Tensor<" + tile + "\n" +
         body + "}\n";
}

TEST(Accesses, EveryStrideHasTheDegreeThatCountingFinds) {
  for (const Element& each : kElements) {
    std::string body;
    for (int stride = 0; stride <= 64; ++stride)
      body += "    t[warp.lane_id * " + std::to_string(stride) + "] = 0\n";
    Mapped mapped(tileKernel(std::string(each.type) + ", [2048]> @shared", body));
    ASSERT_EQ(mapped.analyzed.ids(), "") << mapped.analyzed.messages();
    ASSERT_EQ(mapped.map.accesses.size(), 65u);
    for (uint64_t stride = 0; stride <= 64; ++stride) {
      const BankAnswer answer = bankUse(mapped.map, mapped.map.accesses[stride]);
      EXPECT_FALSE(answer.open.has_value());
      EXPECT_EQ(answer.worst.degree, degreeOf(each.bytes, [&](uint64_t lane) { return lane * stride; }))
          << each.type << " at stride " << stride;
    }
  }
}

TEST(Accesses, EveryTileHasTheDegreesThatCountingFinds) {
  for (const Element& each : kElements)
    for (const bool isSwizzled : {false, true})
      for (uint64_t rows : {8, 16, 32, 48, 64})
        for (uint64_t columns : {8, 24, 32, 33, 64}) {
          const std::string lane = "warp.lane_id % " + std::to_string(rows);
          const std::string text = tileKernel(
              std::string(each.type) + ", [" + std::to_string(rows) + ", " + std::to_string(columns) + "]> @shared" +
                  (isSwizzled ? "(layout = .bank_conflict_free)" : ""),
              "    for k in 0.." + std::to_string(columns) + "usize {\n        t[" + lane + ", k] = 0\n        t[" +
                  lane + ", (k ^ warp.lane_id) % " + std::to_string(columns) + "] = 0\n    }\n");
          Mapped mapped(text);
          if (!mapped.analyzed.ids().empty())
            continue;  // no such layout
          const int64_t shape[] = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
          const layout::XorSwizzle swizzle =
              isSwizzled ? layout::solveTileSwizzle(shape, each.bytes) : layout::XorSwizzle();
          unsigned byColumn = 1, byXor = 1;
          for (uint64_t k = 0; k < columns; ++k) {
            const auto place = [&](uint64_t lane, uint64_t column) {
              return swizzle.apply(lane % rows * columns + column);
            };
            byColumn = std::max(byColumn, degreeOf(each.bytes, [&](uint64_t lane) { return place(lane, k); }));
            byXor =
                std::max(byXor, degreeOf(each.bytes, [&](uint64_t lane) { return place(lane, (k ^ lane) % columns); }));
          }
          ASSERT_EQ(mapped.map.accesses.size(), 2u);
          const BankAnswer column = bankUse(mapped.map, mapped.map.accesses[0]),
                           exclusive = bankUse(mapped.map, mapped.map.accesses[1]);
          EXPECT_FALSE(column.open || exclusive.open) << text;
          EXPECT_EQ(column.worst.degree, byColumn) << text;
          EXPECT_EQ(exclusive.worst.degree, byXor) << text;
        }
}

/// Sectors of the warp and alignment that use most of what they move.
double countedShare(const Case& each, const RandomIndex& index) {
  double best = 0;
  for (int64_t warp = 0; warp < each.blockX * each.blockY / 32; ++warp)
    for (int64_t start = 0; start < 32; start += each.bytes) {
      std::set<int64_t> bytes, sectors;
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t byte = 0; byte < each.bytes; ++byte) {
          const auto at = static_cast<int64_t>(index.value(pointOf(each, warp, lane, 0, 0))) * each.bytes + byte;
          bytes.insert(at);
          sectors.insert((at + start) / 32);
        }
      best = std::max(best, static_cast<double>(bytes.size()) / (32.0 * static_cast<double>(sectors.size())));
    }
  return best;
}

TEST(Accesses, SectorsAreThoseThatCountingFinds) {
  unsigned decided = 0, total = 0;
  for (unsigned seed = 1000; seed < 1150; ++seed) {
    const Case& each = kCases[seed % std::size(kCases)];
    const RandomIndex index = Generator(seed, false).index(3);
    Mapped mapped(kernelText(each, index.text, "x"));
    ASSERT_EQ(mapped.analyzed.ids(), "") << mapped.analyzed.messages();
    const ElementAccess* access = mapped.of("x", true);
    if (!access)
      continue;
    ++total;
    auto use = sectorUse(mapped.map, {access});
    if (!use)
      continue;
    ++decided;
    EXPECT_NEAR(use->usedBytes / (32.0 * use->sectors), countedShare(each, index), 1e-9)
        << "seed " << seed << ": " << each.type << " x[" << index.text << "]";
  }
  EXPECT_GT(decided * 10, total * 9) << decided << " of " << total;
}

std::string idsOf(const std::string& body, const std::string& attributes = "") {
  testing::Analyzed analyzed(
      "struct Two { a: usize, b: usize }\nfn scaled(i: usize, by: usize) -> usize { return i * by }\n"
      "fn chosen(i: usize, isWide: bool) -> usize { if isWide { return i * 64 }\nreturn i * 32 }\n"
      "fn first(at: &f32) -> f32 { return *at }\n"
      "@launch(grid = [4], block = 256)\n" +
      attributes +
      "kernel f(x: &Tensor<f32, [N]>, m: &Tensor<f32, [R, C]>, i: &Tensor<u32, [N]>, s: usize, "
      "y: &mut Tensor<f32, [N]>) {\n" +
      body + "\n}\n");
  return analyzed.ids();
}

TEST(Accesses, WhatIsFineIsNotWarnedAbout) {
  for (const char* body :
       {"y[thread.global_id] = x[thread.global_id]",
        "y[thread.global_id] = x[thread.global_id + 1] + x[0] + x[block.id.x]",
        "y[thread.global_id] = x[N - 1 - thread.global_id]",
        "y[thread.global_id] = x[i[thread.global_id] as usize]",
        "y[thread.global_id] = x[thread.global_id * s]",
        "y[thread.global_id] = x[thread.global_id / 8]",
        "y[thread.global_id] = x[thread.global_id * 2]",
        "y[thread.global_id] = m[block.id.x, thread.local_id]",
        "if thread.local_id == 0 { y[block.id.x * 32] = x[0] }",
        "if thread.local_id < 4 { y[block.id.x * 32 + thread.local_id] = x[0] }",
        "let q = thread.global_id * 3\ny[thread.global_id] = x[q] + x[q + 1] + x[q + 2]",
        "var t: f32 = 0.0\nfor c in 0..4 { t += x[thread.global_id * 4 + c] }\ny[thread.global_id] = t",
        "var k = thread.global_id\nvar t: f32 = 0.0\nwhile k < N {\n t += x[k]\n k += 1024\n}\ny[thread.global_id] = t",
        "var t: f32 = 0.0\nfor k in range(thread.local_id, N, 256) { t += x[k] }\ny[thread.global_id] = t",
        "for stride in [128, 64, ..., 1] { if thread.local_id < stride { y[thread.local_id] += y[thread.local_id + "
        "stride] } }",
        "if thread.local_id == 0 || thread.local_id == 255 { y[thread.global_id] = x[thread.global_id * 64] }",
        "if thread.local_id > 3 { if thread.local_id < 250 { return } }\ny[thread.global_id] = 1.0",
        "if x[thread.global_id] > 0.0 || thread.local_id == 9 { y[thread.global_id * 32] = 1.0 }",
        "var k = 0\nloop {\n k += 1\n if x[thread.global_id] > k as f32 { continue }\n y[thread.global_id * 32] = 1.0\n"
        "if k > 3 { break }\n}",
        "let (i, j) = (thread.global_id, 3usize)\ny[i] = x[i + j]",
        "var i = thread.global_id\nif s > 3 { i += s }\ny[i] = 1.0",
        "var i = thread.local_id * 64\nif x[thread.local_id] > 0.0 { i = thread.local_id }\ny[i] = 1.0",
        "var i = thread.global_id\nfor k in 0..4 { i += 32 }\ny[i] = 1.0",
        "y[thread.global_id] = if x[thread.global_id] > 0.0 && thread.global_id == s { x[thread.global_id * 64] } else "
        "{ 0.0 }"})
    EXPECT_EQ(idsOf(body), "") << body;
}

/// Bounds that fit no 64 bits are unknown. Under UBSan what computes them anyway is a finding.
TEST(Accesses, ProductsOfLargeNumbersHaveNoBounds) {
  const std::string large = "let p = i[0] as u32 as usize\nlet q = i[1] as u32 as usize\n";
  for (const char* index :
       {"(p * q) % 7", "(p * q + p * p) % 32", "(p * q * p * q) / 64 % 5", "(p * q - q * q) % 9", "(p * p * 3) % 11"})
    EXPECT_EQ(idsOf(large + "y[thread.global_id] = x[" + index + "]\nlet t: Tensor<f32, [32]> @shared\n" +
                    "t[thread.local_id % 32] = 0.0\nsync_block()\ny[thread.global_id] += t[(" + index + ") % 32]"),
              "")
        << index;
}

TEST(Accesses, WhatWastesBandwidthIsWarnedAbout) {
  for (const char* body :
       {"y[thread.global_id] = x[thread.global_id * 32]", "y[thread.global_id] = x[thread.global_id * 5 + 3]",
        "y[thread.global_id] = m[thread.global_id, 0]", "y[thread.global_id] = x[(thread.global_id ^ 1) * 16]",
        "var t: f32 = 0.0\nfor k in 0..C { t += m[thread.global_id, k] }\ny[thread.global_id] = t",
        "y[thread.global_id] = x[thread.global_id] + x[thread.global_id * 32]",
        "let (i, j) = (thread.global_id * 32, 3usize)\ny[thread.global_id] = x[i + j]",
        "let two = Two { a: thread.global_id * 32, b: 3 }\ny[thread.global_id] = x[two.a + two.b]",
        "y[thread.global_id] = x[scaled(thread.global_id, 32)]",
        "y[thread.global_id] = x[chosen(thread.global_id, s > 3)]",
        "y[thread.global_id] = first(&x[thread.global_id * 32])",
        "var i = thread.global_id * 32\nif s > 3 { i += s }\ny[i] = 1.0",
        "var i = thread.global_id * 32\nfor k in 0..4 { i += 32 }\ny[i] = 1.0",
        "for k in thread.global_id * 64..thread.global_id * 64 + 64 { y[k] = 1.0 }",
        "let i = thread.local_id as u8\ny[thread.global_id] = x[(i * 16) as usize * 2]",
        "let base = thread.global_id * 8\nif thread.global_id < N / 8 { y[base] = 1.0 }",
        "var k = thread.global_id * 64\nwhile k < N {\n y[k] = 0.0\n k += 16384\n}"}) {
    EXPECT_EQ(idsOf(body), "W0623") << body;
    EXPECT_EQ(idsOf(body, "@unchecked(coalescing)\n"), "") << body;
    EXPECT_EQ(idsOf("@unchecked(coalescing)\n{\n" + std::string(body) + "\n}"), "") << body;
  }
}

TEST(Accesses, OneTensorWalkedInOneWayIsOneWarning) {
  std::string body;
  for (int k = 0; k < 1000; ++k)
    body +=
        "y[thread.global_id] = x[thread.global_id * " + std::to_string(8 + k % 16) + " + " + std::to_string(k) + "]\n";
  std::string ids = idsOf(body);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 'W'), 16) << ids;
  EXPECT_EQ(idsOf("y[thread.global_id] = x[thread.global_id * 8] + x[thread.global_id * 8 + 100]"), "W0623");
  ids = idsOf("y[thread.global_id * 8] = x[thread.global_id * 8]");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 'W'), 2) << ids;
}

/// Every way through would be too many.
TEST(Accesses, ManyBranchesBeforeAnAccessAreNotFollowedOneByOne) {
  std::string body = "let i = thread.global_id\nvar n = 0usize\nif s > 7 {\n";
  for (int k = 0; k < 40; ++k)
    body += "if i % " + std::to_string(k + 2) + " < 1 { n += i } else { n += 1 }\n";
  body += "if i > s { return }\n}\ny[i * 32] = 1.0";
  EXPECT_EQ(idsOf(body), "W0623");
  EXPECT_EQ(idsOf("let i = thread.global_id\nif s > 7 {\nif i > s { return }\n}\ny[i * 32] = 1.0"), "W0623");
}

TEST(Accesses, LanesThatABlockDoesNotHaveTakeNoPart) {
  const auto ids = [](const std::string& block) {
    testing::Analyzed analyzed("@launch(grid = [1], block = " + block +
                               ")\nkernel f(m: &Tensor<f32, [H, W]>, y: &mut Tensor<f32, [N]>) {\n"
                               "let t: Tensor<f32, [64, 32]> @shared\nt[0, 0] = 0.0\nsync_block()\n"
                               "@verify_no_bank_conflicts\nlet v = t[thread.id.x / 8 * 32 + thread.id.x, 0]\n"
                               "y[thread.local_id] = m[thread.id.y, thread.id.x] + v\n}\n");
    return analyzed.ids();
  };
  EXPECT_EQ(ids("[3, 3]"), "E0620");
  EXPECT_EQ(ids("[1, 2]"), "");
  EXPECT_EQ(ids("[1, 20]"), "W0623");
}

std::string verified(const std::string& tile, const std::string& index) {
  return "let t: Tensor<f32, " + tile + "\nt[0, 0] = 0.0\nsync_block()\n@verify_no_bank_conflicts\nlet v = t[" + index +
         "]\ny[thread.global_id] = v";
}

TEST(Accesses, VerifiedAccessesPassOnlyWithAProof) {
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared", "warp.id, warp.lane_id")), "");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared", "warp.lane_id, warp.id")), "E0620");
  EXPECT_EQ(idsOf(verified("[32, 33]> @shared", "warp.lane_id, warp.id")), "");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared(layout = .bank_conflict_free)", "warp.lane_id, warp.id")), "");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared(layout = .bank_conflict_free)", "warp.lane_id, s")), "");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared(layout = .bank_conflict_free)", "s, warp.lane_id")), "");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared(layout = .column_major)", "warp.lane_id, warp.id")), "");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared", "warp.id, warp.lane_id ^ 5")), "");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared", "warp.lane_id, warp.lane_id ^ s")), "");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared", "i[thread.local_id] as usize, 0")), "E0621");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared", "warp.lane_id * s, 0")), "E0621");
  EXPECT_EQ(idsOf(verified("[32, 32]> @shared", "s, 3")), "");
  EXPECT_EQ(idsOf("@verify_no_bank_conflicts\ny[thread.global_id] = 1.0"), "E0622");
  EXPECT_EQ(idsOf("y[thread.global_id] = 1.0", "@verify_no_bank_conflicts\n"), "E0622");
}

TEST(Accesses, ConditionsTakeLanesOut) {
  const std::string head =
      "let t: Tensor<f32, [32, 32]> @shared\nt[0, 0] = 0.0\nsync_block()\n@verify_no_bank_conflicts\n";
  EXPECT_EQ(idsOf(head + "if warp.lane_id == 3 { y[thread.global_id] = t[warp.lane_id, 0] }"), "");
  EXPECT_EQ(idsOf(head + "if warp.lane_id % 2 == 0 { y[thread.global_id] = t[0, warp.lane_id * 2 % 32] }"), "");
  EXPECT_EQ(idsOf(head + "if warp.lane_id < 2 { y[thread.global_id] = t[warp.lane_id, 0] }"), "E0620");
  EXPECT_EQ(idsOf(head + "if x[thread.global_id] > 0.0 { y[thread.global_id] = t[warp.lane_id, 0] }"), "E0621");
}

/// The layout of `.bank_conflict_free`, by the rule of the banks alone.
unsigned tileConflicts(int64_t rows, int64_t columns, int64_t bytes, const layout::XorSwizzle& swizzle, bool byColumn) {
  unsigned worst = 1;
  const int64_t phase = bytes == 8 ? 16 : 32;
  for (int64_t fixed = 0; fixed < (byColumn ? columns : rows); ++fixed)
    for (int64_t first = 0; first < (byColumn ? rows : columns); first += phase) {
      std::set<int64_t> words[32];
      for (int64_t i = first; i < std::min(first + phase, byColumn ? rows : columns); ++i) {
        const int64_t at = byColumn ? i * columns + fixed : fixed * columns + i;
        const auto place = static_cast<int64_t>(swizzle.apply(static_cast<uint64_t>(at))) * bytes;
        for (int64_t byte = place; byte < place + bytes; ++byte)
          words[byte / 4 % 32].insert(byte / 4);
      }
      for (const auto& bank : words)
        worst = std::max(worst, static_cast<unsigned>(bank.size()));
    }
  return worst;
}

TEST(Accesses, BankConflictFreeTilesAreFreeByRowAndByColumn) {
  for (int64_t bytes : {2, 4, 8})
    for (int64_t rows : {16, 32, 64, 128})
      for (int64_t columns : {32, 33, 48, 64, 96, 128}) {
        if (columns * bytes % 4 != 0 || (bytes == 2 && columns == 33))
          continue;
        const int64_t shape[] = {rows, columns};
        const layout::XorSwizzle swizzle = layout::solveTileSwizzle(shape, static_cast<unsigned>(bytes));
        EXPECT_EQ(tileConflicts(rows, columns, bytes, swizzle, false), 1u) << rows << "x" << columns << " of " << bytes;
        EXPECT_EQ(tileConflicts(rows, columns, bytes, swizzle, true), 1u) << rows << "x" << columns << " of " << bytes;
        std::set<uint64_t> places;
        const uint64_t group = uint64_t(1) << (swizzle.base + 5);
        const uint64_t end = (static_cast<uint64_t>(rows * columns) + group - 1) / group * group;
        for (uint64_t at = 0; at < static_cast<uint64_t>(rows * columns); ++at) {
          places.insert(swizzle.apply(at));
          EXPECT_LT(swizzle.apply(at), end);
        }
        EXPECT_EQ(places.size(), static_cast<size_t>(rows * columns));
      }
}

}  // namespace
}  // namespace vortex::lang::flow

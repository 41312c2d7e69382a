// Places of shared tensors, the barriers between those that share bytes, and what is said of too many, against an interpreter of random programs that
// knows all sets of tensors that threads may be at, and puts tensors wherever they fit first.
#include "lang/flow/check/shared_bytes.h"

#include <algorithm>
#include <random>
#include <set>

#include "base/fresh_seed.h"
#include "base/tensor_bytes.h"
#include "lang/flow/testing/graph_of.h"
#include "layout/swizzle.h"

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;

struct Statement {
  enum Kind : uint8_t { Declare, Use, Barrier, Scope, Loop, Branch, Break, Continue, Return } kind = Use;
  size_t tensor = 0;
  std::vector<Statement> first = {}, second = {};
};
using Statements = std::vector<Statement>;

/// How a tensor is declared, and the bytes and alignment of its pieces.
struct Tensor {
  std::string type;
  std::vector<std::pair<int64_t, int64_t>> pieces;
  bool isArray = false, hasFields = false;
};

Tensor tensorOf(uint32_t choice, int64_t extent) {
  const auto piece = [](int64_t bytes) { return std::pair(bytes, int64_t(bytes >= 128 ? 128 : 16)); };
  const std::string shape = ", [" + std::to_string(extent) + "]> @shared";
  switch (choice) {
  case 0: return {"Tensor<u8" + shape, {piece(extent)}};
  case 1: return {"Tensor<f64" + shape, {piece(8 * extent)}};
  case 2: return {"[Tensor<u32" + shape + "; 3]", {piece(12 * extent)}, true};
  case 3: return {"Tensor<Two" + shape, {piece(4 * extent), piece(extent)}, false, true};
  case 4: return {"Tensor<u32, [N, 2]> @shared", {piece(8)}};
  default: return {"Tensor<u32" + shape, {piece(4 * extent)}};
  }
}

class Programs {
public:
  explicit Programs(uint64_t seed) : random_(seed) {}

  Statements program;
  std::vector<Tensor> tensors;
  bool hasUnknownSize = false;

  std::string next() {
    program = statements(3 + pick(3), 3, false);
    std::string text = "struct Two { a: u32, b: u8 }\n@launch(grid = [1], block = 32)\nkernel k(x: &mut Tensor<u32, "
                       "[N]>, n: u32) {\nlet t = thread.local_id\n";
    print(program, text);
    return text + "}\n";
  }

private:
  size_t pick(size_t count) { return random_() % count; }

  Statements statements(size_t count, int depth, bool inLoop) {
    Statements out;
    const size_t visibleBefore = visible_.size();
    for (size_t i = 0; i < count; ++i)
      out.push_back(statement(depth, inLoop));
    visible_.resize(visibleBefore);
    return out;
  }

  Statement statement(int depth, bool inLoop) {
    const auto some = [&](bool in) { return statements(1 + pick(3), depth - 1, in); };
    if (tensors.size() < 7 && (visible_.empty() || pick(3) == 0)) {
      // Of unknown size in few programs.
      const bool mayBeUnknown = tensors.empty() && pick(8) == 0;
      static constexpr int64_t kExtents[] = {1, 3, 16, 20, 32, 33, 100};
      tensors.push_back(tensorOf(mayBeUnknown ? 4 : pick(2) ? 5 : static_cast<uint32_t>(pick(4)), kExtents[pick(7)]));
      hasUnknownSize |= mayBeUnknown;
      visible_.push_back(tensors.size() - 1);
      return {Statement::Declare, tensors.size() - 1};
    }
    switch (depth > 0 ? pick(12) : pick(5)) {
    case 4: return {Statement::Barrier};
    case 5:
    case 6: return {Statement::Scope, 0, some(inLoop)};
    case 7:
    case 8: return {Statement::Loop, 0, some(true)};
    case 9: return {Statement::Branch, 0, some(inLoop), pick(2) ? some(inLoop) : Statements()};
    case 10: return {inLoop ? pick(2) ? Statement::Break : Statement::Continue : Statement::Barrier};
    case 11: return {pick(4) ? Statement::Barrier : Statement::Return};
    default:
      return visible_.empty() ? Statement{Statement::Barrier}
                              : Statement{Statement::Use, visible_[pick(visible_.size())]};
    }
  }

  void print(const Statements& all, std::string& out) {
    for (const Statement& each : all) {
      const Tensor* tensor = each.tensor < tensors.size() ? &tensors[each.tensor] : nullptr;
      const std::string name = "s" + std::to_string(each.tensor);
      switch (each.kind) {
      case Statement::Declare: out += "let " + name + ": " + tensor->type + "\n"; break;
      case Statement::Use:
        out += name + (tensor->isArray ? "[1]" : "") +
               (tensor->type.find("[N") != std::string::npos ? "[0, t % 2]" : "[0]") + (tensor->hasFields ? ".a" : "") +
               " = 1\n";
        break;
      case Statement::Barrier: out += "sync_block()\n"; break;
      case Statement::Scope: nested("{\n", each.first, out); break;
      case Statement::Loop: nested("for k" + std::to_string(loops_++) + " in 0..n {\n", each.first, out); break;
      case Statement::Branch:
        nested("if n > 3 {\n", each.first, out);
        if (!each.second.empty())
          nested("else {\n", each.second, out);
        break;
      case Statement::Break: out += "if n == 4 { break }\n"; break;
      case Statement::Continue: out += "if n == 5 { continue }\n"; break;
      case Statement::Return: out += "if n == 6 { return }\n"; break;
      }
    }
  }

  void nested(const std::string& head, const Statements& all, std::string& out) {
    out += head;
    print(all, out);
    out += "}\n";
  }

  std::mt19937_64 random_;
  std::vector<size_t> visible_;
  int loops_ = 0;
};

/// What planShared should find.
class Oracle {
public:
  explicit Oracle(const Programs& made) : made_(made), lives_(made.tensors.size()) {
    number(made.program);
    place();
    while (addBarrier()) {
    }
  }

  int64_t bytes = 0;
  std::vector<std::string> largest;
  std::map<std::string, std::vector<std::string>> barriers;

private:
  struct Life {
    size_t begin = 0, last = 0, depth = 0;  ///< depth: of loops around the declaration
  };
  struct Taken {
    int64_t begin = 0, end = 0;
  };
  using Sets = std::set<std::set<size_t>>;  ///< of tensors that some thread may be at, on each way

  static std::string name(size_t tensor) { return "s" + std::to_string(tensor); }

  void number(const Statements& all) {
    for (const Statement& each : all) {
      const size_t here = next_++;
      if (each.kind == Statement::Declare)
        lives_[each.tensor] = {here, here, loops_.size()};
      if (each.kind == Statement::Use)
        used_.push_back({each.tensor, here, {loops_.begin(), loops_.end()}});
      if (each.kind == Statement::Loop)
        loops_.push_back(ends_.size()), ends_.push_back(0);
      number(each.first);
      number(each.second);
      if (each.kind == Statement::Loop)
        ends_[loops_.back()] = next_++, loops_.pop_back();
    }
    if (!loops_.empty() || &all != &made_.program)
      return;
    for (const auto& [tensor, at, loops] : used_) {
      Life& life = lives_[tensor];
      life.last = std::max(life.last, loops.size() > life.depth ? ends_[loops[life.depth]] : at);
    }
  }

  bool isAlive(size_t tensor, size_t at) const { return lives_[tensor].begin <= at && at <= lives_[tensor].last; }

  void place() {
    places_.resize(lives_.size());
    for (size_t i = 0; i < lives_.size(); ++i) {
      std::vector<Taken> taken;
      for (size_t j = 0; j < i; ++j)
        if (isAlive(j, lives_[i].begin))
          taken.insert(taken.end(), places_[j].begin(), places_[j].end());
      const int64_t before = bytes;
      for (const auto& [size, alignment] : made_.tensors[i].pieces) {
        int64_t at = 0;
        while (std::any_of(taken.begin(), taken.end(),
                           [&, size = size](const Taken& each) { return at < each.end && each.begin < at + size; }))
          at += alignment;
        places_[i].push_back({at, at + size});
        taken.push_back(places_[i].back());
        bytes = std::max(bytes, at + size);
      }
      if (bytes == before)
        continue;
      largest.clear();
      for (size_t j = 0; j <= i; ++j)
        if (isAlive(j, lives_[i].begin))
          largest.push_back(name(j));
    }
  }

  bool share(size_t a, size_t b) const {
    if (a != b && (isAlive(a, lives_[b].begin) || isAlive(b, lives_[a].begin)))
      return false;
    bool overlap = made_.hasUnknownSize;
    for (const Taken& x : places_[a])
      for (const Taken& y : places_[b])
        overlap |= x.begin < y.end && y.begin < x.end;
    return overlap;
  }

  struct Ways {
    Sets on, broken, continued;
  };
  static void add(Sets& into, const Sets& from) { into.insert(from.begin(), from.end()); }

  Ways follow(const Statements& all, Sets sets, std::map<size_t, std::set<size_t>>& before) {
    Ways out;
    for (const Statement& each : all) {
      const auto inside = [&](const Statements& part, const Sets& from) {
        Ways ways = follow(part, from, before);
        return ways;
      };
      switch (each.kind) {
      case Statement::Declare: {
        auto& known = before[each.tensor];
        for (const auto& set : sets)
          known.insert(set.begin(), set.end());
        if (barriers.contains(name(each.tensor)) && !sets.empty())
          sets = {{}};
        break;
      }
      case Statement::Use: {
        Sets next;
        for (std::set<size_t> set : sets) {
          set.insert(each.tensor);
          next.insert(std::move(set));
        }
        sets = std::move(next);
        break;
      }
      case Statement::Barrier:
        if (!sets.empty())
          sets = {{}};
        break;
      case Statement::Scope:
      case Statement::Branch: {
        const Ways one = inside(each.first, sets),
                   other = each.kind == Statement::Scope ? Ways() : inside(each.second, sets);
        sets = one.on;
        add(sets, other.on);
        for (const Ways* ways : {&one, &other}) {
          add(out.broken, ways->broken);
          add(out.continued, ways->continued);
        }
        break;
      }
      case Statement::Loop: {
        Sets heads = sets, left;
        for (size_t known = 0; known != heads.size();) {
          known = heads.size();
          const Ways ways = inside(each.first, heads);
          add(heads, ways.on);
          add(heads, ways.continued);
          add(left, ways.broken);
        }
        sets = heads;
        add(sets, left);
        break;
      }
      case Statement::Break: add(out.broken, sets); break;
      case Statement::Continue: add(out.continued, sets); break;
      case Statement::Return: break;
      }
    }
    out.on = std::move(sets);
    return out;
  }

  /// The first declaration that needs one.
  bool addBarrier() {
    std::map<size_t, std::set<size_t>> before;
    follow(made_.program, {{}}, before);
    for (size_t i = 0; i < lives_.size(); ++i) {
      std::vector<std::string> others;
      for (size_t j : before[i])
        if (share(i, j))
          others.push_back(name(j));
      if (!others.empty() && !barriers.contains(name(i))) {
        barriers[name(i)] = others;
        return true;
      }
    }
    return false;
  }

  struct Used {
    size_t tensor = 0, at = 0;
    std::vector<size_t> loops;  ///< outermost first
  };
  const Programs& made_;
  std::vector<Life> lives_;
  std::vector<std::vector<Taken>> places_;
  std::vector<Used> used_;
  std::vector<size_t> loops_, ends_;
  size_t next_ = 0;
};

std::vector<std::string> namesOf(const std::vector<const Variable*>& variables) {
  std::vector<std::string> out;
  for (const Variable* each : variables)
    out.push_back(std::string(each->name));
  return out;
}

TEST(SharedBytes, RandomProgramsTakeTheBytesAndBarriersThatTheirWaysAskFor) {
  const uint64_t first = base::freshSeed();
  size_t withBarriers = 0, withReuse = 0;
  for (uint64_t i = 0; i < 400 && !HasFailure(); ++i) {
    Programs programs(first + i);
    const std::string text = programs.next();
    SCOPED_TRACE("seed " + std::to_string(first + i) + "\n" + text);
    GraphOf made(text);
    ASSERT_FALSE(made.graph.blocks.empty());
    const Oracle oracle(programs);
    const SharedPlan plan = planShared(made.graph);
    EXPECT_EQ(plan.bytes, oracle.bytes);
    EXPECT_EQ(namesOf(plan.largest), oracle.largest);
    EXPECT_TRUE(plan.slots.empty());
    std::map<std::string, std::vector<std::string>> barriers;
    for (const auto& [let, tensors] : plan.barriers)
      barriers[std::string(let->variable->name)] = namesOf(tensors);
    EXPECT_EQ(barriers, oracle.barriers);
    for (uint32_t s = 0; s < made.graph.stepCount(); ++s)
      if (const Step& step = made.graph[StepId{s}]; step.kind == StepKind::Declare && step.index == kAfterBarrier)
        EXPECT_TRUE(plan.barriers.contains(step.origin));
    withBarriers += !barriers.empty();
    withReuse += oracle.largest.size() < programs.tensors.size();
  }
  EXPECT_GT(withBarriers, 100u);
  EXPECT_GT(withReuse, 100u);
}

TEST(SharedBytes, LoopsThatCopyAheadHaveSeveralSlotsOfWhatTheyFill) {
  GraphOf made("@launch(grid = [1], block = 32)\nkernel k(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [32]>) {\n"
               "let t = thread.local_id\nlet held: Tensor<f32, [32]> @shared = stage(x[0..+32])\nvar sum: f32 = 0.0\n"
               "@pipeline(stages = 3)\nfor k in 0..8usize {\n"
               "let a: Tensor<f32, [64]> @shared = stage(x[k * 64..+64])\nlet own: Tensor<f32, [32]> @shared\n"
               "sync_block()\nown[t] = a[t]\nsync_block()\nsum += own[31 - t] + held[t]\n}\ny[t] = sum\n}\n");
  ASSERT_FALSE(made.graph.blocks.empty());
  const SharedPlan plan = planShared(made.graph);
  EXPECT_EQ(plan.bytes, 128 + 3 * 256 + 128);
  ASSERT_EQ(plan.slots.size(), 1u);
  EXPECT_EQ(plan.slots.begin()->first->name, "a");
  EXPECT_EQ(plan.slots.begin()->second, 3u);
}

TEST(SharedBytes, SwizzledTilesTakeWholeGroupsWhereTheyFit) {
  for (const auto& [shape, rows, columns] :
       {std::tuple("[32, 32]", 32, 32), {"[20, 24]", 20, 24}, {"[7, 64]", 7, 64}}) {
    GraphOf made("@launch(grid = [1], block = 32)\nkernel k(x: &mut Tensor<f32, [32]>) {\nlet a: Tensor<f32, " +
                 std::string(shape) + "> @shared(layout = .bank_conflict_free)\na[0, 0] = 1.0\n}\n");
    ASSERT_FALSE(made.graph.blocks.empty());
    const SharedPlan plan = planShared(made.graph);
    // A swizzle moves elements within groups: none lies behind the bytes.
    const int64_t extents[] = {rows, columns};
    const layout::XorSwizzle swizzle = layout::solveTileSwizzle(extents, 4);
    int64_t end = 0;
    for (int64_t i = 0; i < rows * columns; ++i)
      end = std::max<int64_t>(end, (static_cast<int64_t>(swizzle.apply(static_cast<uint64_t>(i))) + 1) * 4);
    EXPECT_GE(plan.bytes, end) << shape;
    EXPECT_LT(plan.bytes, 2 * rows * columns * 4) << shape;
  }
}

struct Told {
  diag::DiagnosticSink sink;
  std::vector<std::string> labels;
  std::string ids;

  Told(GraphOf& made, const SharedPlan& plan, uint64_t limit, bool isAdvice) {
    checkSharedBytes(*made.graph.function, plan, limit, "chip", isAdvice, sink);
    for (const diag::Diagnostic& each : sink.all()) {
      ids += each.id;
      for (const diag::Label& label : each.labels)
        labels.push_back(label.message);
    }
  }
};

TEST(SharedBytes, TooManyBytesAreToldOfTheLargestFirst) {
  GraphOf made("@launch(grid = [1], block = 32)\nkernel k(x: &mut Tensor<f32, [32]>) {\n"
               "let small: Tensor<f32, [32]> @shared\nlet large: Tensor<f32, [64]> @shared\n"
               "let same: Tensor<f32, [64]> @shared\nsmall[0] = 1.0\nlarge[0] = 1.0\nsame[0] = 1.0\n}\n");
  ASSERT_FALSE(made.graph.blocks.empty());
  const SharedPlan plan = planShared(made.graph);
  ASSERT_EQ(plan.bytes, 640);
  EXPECT_EQ(Told(made, plan, 640, false).ids, "");
  EXPECT_EQ(Told(made, plan, 639, true).ids, "W0552");
  const Told told(made, plan, 639, false);
  EXPECT_EQ(told.ids, "E0552");
  EXPECT_EQ(told.labels,
            (std::vector<std::string>{"`large` takes 256 bytes", "`same` takes 256 bytes", "`small` takes 128 bytes"}));
}

TEST(SharedBytes, AdviceIsAnErrorWhereTheCpuHasTooFewToo) {
  GraphOf made("@launch(grid = [1], block = 32)\nkernel k(x: &mut Tensor<f32, [32]>) {\nlet a: Tensor<f32, [32]> "
               "@shared\na[0] = 1.0\n}\n");
  ASSERT_FALSE(made.graph.blocks.empty());
  SharedPlan plan = planShared(made.graph);
  for (const auto& [more, id] : {std::pair(0, "W0552"), {1, "E0552"}}) {
    plan.bytes = static_cast<int64_t>(base::kMostSharedBytes) + more;
    const Told told(made, plan, 1000, true);
    EXPECT_EQ(told.ids, id) << more;
    EXPECT_EQ(told.labels.size(), 2u) << "the tensor and the kernel";
  }
}

}  // namespace
}  // namespace vortex::lang::flow

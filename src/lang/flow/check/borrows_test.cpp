// Borrows and moves of random functions against all ways through them: a way is wrong if it uses what was moved, or a reference to what was written,
// lent mutably or moved since. The check must refuse a function exactly if it has such a way. VORTEX_BORROW_PROGRAMS lengthens the run.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "lang/flow/testing/analyzed.h"

namespace vortex::lang::flow {
namespace {

using testing::Analyzed;

/// v, w and the fields of p own memory; r and q are lists of references to v and w, m refers for as long as its block.
enum Owner : int { kV, kW, kFirst, kSecond, kOwners };
enum class Act { Read, Write, Move, Fill, Refer, Add, Use, Lend, UseLent, MoveWhole, FillWhole };
struct BorrowEvent {
  Act act = Act::Read;
  int owner = 0, holder = 0;
};

struct BorrowWay {
  std::vector<BorrowEvent> events;
  bool hasBroken = false, hasEnded = false;
};
struct BorrowCode {
  std::string text;
  std::vector<BorrowWay> ways;
};
constexpr size_t kMostWays = 400;

class BorrowPrograms {
public:
  explicit BorrowPrograms(uint64_t seed) : random_(seed) {}

  BorrowCode next() {
    BorrowCode code = statements(5, 2, false);
    code.text =
        "struct Pair { first: Vec<i32>, second: Vec<i32> }\nfn make() -> Pair { return Pair { first: vec![1], "
        "second: vec![2] } }\nfn keep(v: Vec<i32>) -> usize { return v.len() }\nfn both(p: Pair) -> usize { return "
        "p.first.len() + p.second.len() }\nfn main() {\nvar v = vec![1]\nvar w = vec![2]\nvar p = make()\nvar r: "
        "Vec<&Vec<i32>> = "
        "vec![]\nvar q: Vec<&Vec<i32>> = vec![]\n" +
        code.text + "}\n";
    return code;
  }

private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  std::string test() { return "args().len() > " + std::to_string(pick(9)); }

  static BorrowCode then(const BorrowCode& first, const BorrowCode& second) {
    BorrowCode out{first.text + second.text, {}};
    for (const BorrowWay& a : first.ways)
      if (a.hasBroken || a.hasEnded) {
        out.ways.push_back(a);
      } else {
        for (const BorrowWay& b : second.ways) {
          BorrowWay both = b;
          both.events.insert(both.events.begin(), a.events.begin(), a.events.end());
          out.ways.push_back(std::move(both));
        }
      }
    if (out.ways.size() > kMostWays)
      out.ways.resize(kMostWays + 1);
    return out;
  }

  BorrowCode statements(int count, int depth, bool isInLoop) {
    BorrowCode out{"", {BorrowWay()}};
    for (int i = 0; i < count; ++i)
      out = then(out, statement(depth, isInLoop));
    return out;
  }
  BorrowCode inner(int depth, bool isInLoop) { return statements(1 + pick(3), depth - 1, isInLoop); }

  BorrowCode statement(int depth, bool isInLoop) {
    switch (depth > 0 ? pick(11) : 6) {
    case 0: {
      const BorrowCode a = inner(depth, isInLoop), b = inner(depth, isInLoop);
      BorrowCode out{"if " + test() + " {\n" + a.text + "} else {\n" + b.text + "}\n", a.ways};
      out.ways.insert(out.ways.end(), b.ways.begin(), b.ways.end());
      return out;
    }
    case 1: return loop("while " + test() + " {\n", inner(depth, true), "}\n", 0);
    case 2: return loop("for i in 0..2 {\n", inner(depth, true), "}\n", 0);
    case 3: {
      BorrowCode leaves{"if " + test() + (isInLoop ? " { break }\n" : " { return }\n"), {BorrowWay(), BorrowWay()}};
      (isInLoop ? leaves.ways[1].hasBroken : leaves.ways[1].hasEnded) = true;
      return leaves;
    }
    case 4: {
      const int owner = pick(2);
      const std::string name = "m" + std::to_string(names_++);
      const int holder = 2 + names_;
      const BorrowCode begin = one("let " + name + " = &mut " + "vw"[owner] + "\n", {Act::Lend, owner, holder}),
                       end = one(name + ".push(1)\n", {Act::UseLent, owner, holder});
      BorrowCode out = then(then(begin, inner(depth, isInLoop)), end);
      out.text = "if " + test() + " {\n" + out.text + "}\n";
      out.ways.emplace_back();
      return out;
    }
    default: return simple();
    }
  }

  /// Up to three times.
  static BorrowCode loop(const std::string& head, const BorrowCode& body, const std::string& tail, int least) {
    BorrowCode rounds{"", {BorrowWay()}}, out{head + body.text + tail, {}};
    for (int i = 0; i <= 3; ++i) {
      if (i >= least)
        for (const BorrowWay& way : rounds.ways)
          out.ways.push_back(way);
      rounds = then(rounds, body);
      for (BorrowWay& way : rounds.ways)
        if (way.hasBroken)
          out.ways.push_back(way);
      std::erase_if(rounds.ways, [](const BorrowWay& way) { return way.hasBroken; });
    }
    for (BorrowWay& way : out.ways)
      way.hasBroken = false;
    return out;
  }

  static BorrowCode one(const std::string& text, const BorrowEvent& event) { return {text, {BorrowWay{{event}}}}; }

  BorrowCode simple() {
    static constexpr std::array<const char*, 4> kNames = {"v", "w", "p.first", "p.second"};
    const int owner = pick(kOwners), holder = pick(2), target = pick(2);
    const std::string name = kNames[static_cast<size_t>(owner)], reference(1, "rq"[holder]);
    switch (pick(12)) {
    case 0: return one("print(" + name + ".len())\n", {Act::Read, owner, 0});
    case 1:
    case 2: return one(name + ".push(1)\n", {Act::Write, owner, 0});
    case 3: return one(name + " = vec![3]\n", {Act::Fill, owner, 0});
    case 4: return one("print(keep(" + name + "))\n", {Act::Move, owner, 0});
    case 5:
    case 6: return one(reference + " = vec![&" + "vw"[target] + "]\n", {Act::Refer, target, holder});
    case 7: return one(reference + ".push(&" + "vw"[target] + ")\n", {Act::Add, target, holder});
    case 8:
      return {"print(both(p))\n",
              {BorrowWay{{{Act::Move, kFirst, 0}, {Act::Move, kSecond, 0}, {Act::MoveWhole, 0, 0}}}}};
    case 9:
      return {"p = make()\n", {BorrowWay{{{Act::FillWhole, 0, 0}, {Act::Fill, kFirst, 0}, {Act::Fill, kSecond, 0}}}}};
    default: return one("print(" + reference + ".len())\n", {Act::Use, 0, holder});
    }
  }

  std::mt19937_64 random_;
  int names_ = 0;
};

/// Goes the way and sees whether it uses what is no more.
bool isWrong(const BorrowWay& way) {
  struct Holder {
    std::set<int> owners;
    bool isValid = true, isMutable = false;
  };
  std::map<int, Holder> holders;
  std::array<bool, kOwners> isMoved{};
  bool isWholeMoved = false;  // its parts cannot be filled one by one
  const auto touch = [&](int owner, bool writes) {
    for (auto& [number, holder] : holders)
      if (holder.owners.contains(owner) && (writes || holder.isMutable))
        holder.isValid = false;
  };
  for (const auto& [act, owner, holder] : way.events) {
    if (act == Act::MoveWhole || act == Act::FillWhole) {
      isWholeMoved = act == Act::MoveWhole;
      continue;
    }
    if (act == Act::Fill && owner >= kFirst && isWholeMoved)
      return true;
    Holder& held = holders[holder];
    const auto at = static_cast<size_t>(owner);
    if ((act == Act::Add || act == Act::Use || act == Act::UseLent) && !held.isValid)
      return true;
    if (act != Act::Use && act != Act::UseLent && act != Act::Fill && isMoved[at])
      return true;
    switch (act) {
    case Act::Read: touch(owner, false); break;
    case Act::Write: touch(owner, true); break;
    case Act::Move:
    case Act::Fill:
      touch(owner, true);
      isMoved[at] = act == Act::Move;
      break;
    case Act::Refer:
      touch(owner, false);
      held = {{owner}};
      break;
    case Act::Add:
      touch(owner, false);
      held.owners.insert(owner);
      break;
    case Act::Lend:
      touch(owner, true);
      held = {{owner}, true, true};
      break;
    case Act::Use:
    case Act::UseLent:
    case Act::MoveWhole:
    case Act::FillWhole: break;
    }
  }
  return false;
}

TEST(Borrows, FunctionsAreRefusedExactlyWhereAWayUsesWhatIsNoMore) {
  const char* given = std::getenv("VORTEX_BORROW_PROGRAMS");
  const uint64_t count = given ? std::strtoull(given, nullptr, 10) : base::sampled(400), first = base::freshSeed();
  uint64_t accepted = 0, refused = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const BorrowCode code = BorrowPrograms(first + i).next();
    if (code.ways.size() > kMostWays)
      continue;
    const bool wanted = std::any_of(code.ways.begin(), code.ways.end(), isWrong);
    Analyzed analyzed(code.text);
    const bool found = analyzed.ids().find("E05") != std::string::npos;
    ASSERT_EQ(found, wanted) << "seed " << first + i << "\n" << code.text << analyzed.messages();
    (wanted ? refused : accepted) += 1;
  }
  EXPECT_GT(accepted * 20, count / 4);
  EXPECT_GT(refused * 5, count / 4);
}

}  // namespace
}  // namespace vortex::lang::flow

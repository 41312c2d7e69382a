#include "hvm/slices/tables.h"

#include "hvm/slices/words.h"
#include "hvm/syntax/program.h"

#include <algorithm>

namespace vortex::hvm::slices {
namespace {

constexpr uint32_t kRows[] = {
#include "hvm/slices/rows.inc"
};
static_assert(std::size(kRows) == kTags * kTags);

class Tabulation {
public:
  explicit Tabulation(const Code& code) : code_(code), chains_(code.ops.size()), works_(code.ops.size()) {}

  std::optional<Tables> run() {
    if (code_.hasUnscoped || code_.slotCount + 2 > kSlots)
      return std::nullopt;
    // More words than this cannot be pushed at once; a frame has those of an entry.
    constexpr uint32_t kMostPushed = kPushes - 8;
    for (const Entry& entry : code_.entries)
      if (entry.count > kMostPushed)
        return std::nullopt;
    for (const Op& op : code_.ops)
      if (op.applied + op.plain > kMostPushed)
        return std::nullopt;
    for (uint32_t op = 1; op < code_.ops.size(); ++op)
      addOp(op);
    for (const Entry& entry : code_.entries)
      out_.entries.insert(out_.entries.end(), {entry.op, entry.captures, entry.count});
    out_.slots = code_.slots, out_.roots = code_.roots, out_.items = code_.items;
    out_.rows.assign(std::begin(kRows), std::end(kRows));
    // Besides code a lane saves or spills its stack and takes steps, each of which may build a template or duplicate a node.
    out_.margin += 4 * (kStack + kPushes) + kSteps * (mostWords_ + kStepWords);
    out_.forks = !code_.dropsOperands;
    for (size_t i = 0; i < std::size(kNatives); ++i)
      if (kNatives[i].kind == NativeKind::Gnf)
        out_.native = static_cast<uint32_t>(i);
    // The kernels take no empty tensors.
    for (std::vector<uint32_t>* each : {&out_.entries, &out_.slots, &out_.roots})
      each->resize(std::max<size_t>(each->size(), 1));
    out_.items.resize(std::max<size_t>(out_.items.size(), 1));
    return std::move(out_);
  }

private:
  void addOp(uint32_t number) {
    const Op& op = code_.ops[number];
    out_.ops.resize(code_.ops.size() * kOpWords);
    out_.opWords.resize(code_.ops.size());
    uint32_t ext = op.ext;
    if (op.kind == OpKind::Push)
      ext = isWorthForking(op);
    const uint32_t words[kOpWords] = {static_cast<uint32_t>(op.kind),
                                      op.counted,
                                      op.kind == OpKind::Push ? leftSlot(op) : op.isSwitch,
                                      op.applied,
                                      op.plain,
                                      op.words,
                                      op.items,
                                      op.slot,
                                      op.a,
                                      op.b,
                                      ext,
                                      op.entry};
    std::copy(std::begin(words), std::end(words), out_.ops.begin() + number * kOpWords);
    out_.opWords[number] = op.word;
    mostWords_ = std::max<uint64_t>(mostWords_, op.words);
    out_.margin = std::max(out_.margin, chain(number));
    auto isEqual = [](Term word) { return tagOf(word) == OnEqlLeft || tagOf(word) == Eql || tagOf(word) == Use; };
    const auto first = code_.items.begin() + op.items;
    out_.discards |= op.kind == OpKind::Use || isEqual(op.word) || std::any_of(first, first + op.words, isEqual);
  }

  /// Of an operator between a slot and an atom: 1 and the slot; otherwise 0.
  uint32_t leftSlot(const Op& op) const {
    const Op& left = code_.ops[op.a];
    const bool isPlain = tagOf(op.word) == OnOp2 && op.plain == 1 && op.applied == 0 && op.words == 0;
    return isPlain && left.kind == OpKind::Slot ? left.slot + 1 : 0;
  }

  /// Words that are taken from here on before the next term or value.
  uint64_t chain(uint32_t number) {
    uint64_t& words = chains_[number];
    if (number == 0 || words)
      return words;
    const Op& op = code_.ops[number];
    uint64_t rest = 0;
    if (op.kind != OpKind::Slot && op.kind != OpKind::Word && op.kind != OpKind::Make && op.kind != OpKind::Call &&
        op.kind != OpKind::Endless && op.kind != OpKind::Offload)
      rest = std::max(chain(op.a), op.kind == OpKind::Match ? chain(op.b) : 0);
    return chains_[number] = op.words + kPushes + 2 + rest;
  }

  bool isWorthForking(const Op& op) {
    uint32_t right = 0;
    if (tagOf(op.word) == OnOp2Code) {
      right = code_.entries[extOf(op.word)].op;
    } else if (tagOf(op.word) == OnEqlLeft && op.plain == 1) {
      const Term root = code_.items[op.items + op.words];
      if (tagOf(root) == Thk)
        right = code_.entries[extOf(root)].op;
    }
    return right && works(op.a) && works(right);
  }

  /// Code that calls something takes long enough for a task.
  bool works(uint32_t number) {
    uint8_t& state = works_[number];
    if (number == 0 || state)
      return state == 2;
    const Op& op = code_.ops[number];
    // A call whose argument is needed at once pushes the match of the callee.
    const bool matches = tagOf(op.word) == OnMatCode || tagOf(op.word) == OnUseCode;
    bool does = op.kind == OpKind::Call || (op.kind == OpKind::Push && (op.applied > 0 || matches));
    state = 1;
    if (!does && op.kind != OpKind::Slot && op.kind != OpKind::Word && op.kind != OpKind::Make)
      does = works(op.a) || (op.kind == OpKind::Match && works(op.b));
    works_[number] = does ? 2 : 1;
    return does;
  }

  const Code& code_;
  std::vector<uint64_t> chains_;
  uint64_t mostWords_ = 0;
  std::vector<uint8_t> works_;  // 1: no, 2: yes
  Tables out_;
};

}  // namespace

std::optional<Tables> tabulate(const Code& code) { return Tabulation(code).run(); }

}  // namespace vortex::hvm::slices

#include "hvm/eval/code.h"

#include "base/text.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace vortex::hvm {
namespace {

/// A variable, or one side of a duplication.
using Key = uint32_t;
Key keyOf(const Node& node) { return node.binder * 2 + (node.side == Side::One); }

class Compiler {
public:
  explicit Compiler(const Program& program) : program_(program) {}
  Result<Code> run();

private:
  struct Pending {
    NodeId node;
    uint32_t depth;
  };
  /// A template under construction.
  struct Template {
    uint32_t depth;
    std::vector<Term> words = {};
    std::vector<Term> roots = {};
    std::deque<std::pair<size_t, NodeId>> open = {};  // words that still have to be filled
  };
  // Larger constructor trees are built on demand from there on, unless that takes more variables along.
  static constexpr size_t kEagerWords = 64;

  const Node& node(NodeId id) const { return program_.nodes[id]; }
  void findFree();
  static void unite(std::vector<Key>& keys, std::vector<Key> more);
  const std::vector<Key>& freeOf(NodeId id);
  void findEndless();
  void lower(NodeId id, uint32_t depth);
  void lowerLambda(Op& op, const Node& node, uint32_t depth);
  void lowerApply(Op& op, NodeId id, uint32_t depth);
  void lowerDirect(Op& op, const Node& apply, uint32_t depth);
  bool lowerStrictCall(Op& op, NodeId head, const std::vector<NodeId>& arguments, uint32_t depth);
  void lowerOperator(Op& op, const Node& node, uint32_t depth);
  void lowerPush(Op& op, uint32_t header, const std::vector<NodeId>& plain, NodeId next, uint32_t depth);
  void pushCaptures(Op& op, Tag frame, uint64_t value, NodeId closure, NodeId next, uint32_t depth);
  uint32_t opOf(NodeId id, uint32_t depth);
  uint32_t entryOf(NodeId id, uint32_t depth);
  bool isAtom(NodeId id) const;
  Term atom(NodeId id) const;
  Term item(Template& target, NodeId id);
  void fill(Template& target);
  void store(Op& op, Template& target);

  const Program& program_;
  Code code_;
  std::vector<std::vector<Key>> free_;  // by node, sorted; through freeOf
  std::vector<uint32_t> freeCount_;     // by node
  std::vector<bool> isGone_;            // by node: the set has to be found again
  std::vector<uint32_t> slotOf_;        // by key
  std::vector<uint32_t> opOf_;          // by node
  std::vector<uint32_t> entryOf_;       // by node, plus 1
  std::vector<bool> isEndless_;         // by definition
  std::vector<Pending> pending_;
};

// Children come before their parents, so one pass suffices. A list of n variables has n nodes with up to n variables each, of which few are asked
// for: a parent takes over its children's sets, and what is asked for later is found again. A set stays where it is once it would take more nodes to
// find it than it has variables.
void Compiler::findFree() {
  free_.resize(program_.nodes.size());
  isGone_.resize(program_.nodes.size());
  freeCount_.resize(program_.nodes.size());
  std::vector<size_t> lost(
      program_.nodes.size());  // nodes below, the node included, whose set would have to be found again
  for (NodeId id = 1; id < program_.nodes.size(); ++id) {
    const Node& one = node(id);
    std::vector<Key> keys;
    if (one.kind == NodeKind::Variable)
      keys.push_back(keyOf(one));
    for (NodeId child : one.children) {
      const bool isTaken = lost[child] < freeOf(child).size();
      std::vector<Key> more = isTaken ? std::exchange(free_[child], {}) : free_[child];
      isGone_[child] = isTaken;
      lost[id] += isTaken ? lost[child] + 1 : 0;
      unite(keys, std::move(more));
    }
    if (one.kind == NodeKind::Lambda || one.kind == NodeKind::Dup)
      keys.erase(std::lower_bound(keys.begin(), keys.end(), one.binder * 2),
                 std::upper_bound(keys.begin(), keys.end(), one.binder * 2 + 1));
    freeCount_[id] = static_cast<uint32_t>(keys.size());
    free_[id] = std::move(keys);
  }
}

void Compiler::unite(std::vector<Key>& keys, std::vector<Key> more) {
  static constexpr size_t kFew = 16;
  if (keys.size() < more.size())
    keys.swap(more);
  if (more.size() <= kFew) {
    for (Key key : more)
      if (auto place = std::lower_bound(keys.begin(), keys.end(), key); place == keys.end() || *place != key)
        keys.insert(place, key);
    return;
  }
  std::vector<Key> united;
  std::set_union(keys.begin(), keys.end(), more.begin(), more.end(), std::back_inserter(united));
  keys = std::move(united);
}

const std::vector<Key>& Compiler::freeOf(NodeId id) {
  if (!isGone_[id])
    return free_[id];
  std::vector<Key> keys, variables;
  std::vector<BinderId> bound;
  std::vector<NodeId> pending{id};
  while (!pending.empty()) {
    const NodeId at = pending.back();
    const Node& one = node(at);
    pending.pop_back();
    if (!isGone_[at]) {
      unite(keys, free_[at]);
      continue;
    }
    if (one.kind == NodeKind::Variable)
      variables.push_back(keyOf(one));
    if (one.kind == NodeKind::Lambda || one.kind == NodeKind::Dup)
      bound.push_back(one.binder);
    pending.insert(pending.end(), one.children.begin(), one.children.end());
  }
  std::sort(variables.begin(), variables.end());
  unite(keys, std::move(variables));
  std::sort(bound.begin(), bound.end());
  std::erase_if(keys, [&](Key key) { return std::binary_search(bound.begin(), bound.end(), key / 2); });
  free_[id] = std::move(keys);
  isGone_[id] = false;
  return free_[id];
}

uint32_t Compiler::opOf(NodeId id, uint32_t depth) {
  if (opOf_[id] == 0) {
    opOf_[id] = static_cast<uint32_t>(code_.ops.size());
    code_.ops.emplace_back();
    pending_.push_back({id, depth});
  }
  return opOf_[id];
}

uint32_t Compiler::entryOf(NodeId id, uint32_t depth) {
  if (entryOf_[id] == 0) {
    code_.entries.push_back(
        {opOf(id, depth), static_cast<uint32_t>(code_.slots.size()), static_cast<uint32_t>(freeOf(id).size()), id});
    for (Key key : freeOf(id))
      code_.slots.push_back(slotOf_[key]), code_.keys.push_back(key);
    entryOf_[id] = static_cast<uint32_t>(code_.entries.size());
  }
  return entryOf_[id] - 1;
}

bool Compiler::isAtom(NodeId id) const {
  switch (node(id).kind) {
  case NodeKind::Variable:
  case NodeKind::Number:
  case NodeKind::Reference:
  case NodeKind::Erasure:
  case NodeKind::Wildcard:
  case NodeKind::Name: return true;
  case NodeKind::Constructor: return node(id).children.empty();
  default: return false;
  }
}

Term Compiler::atom(NodeId id) const {
  const Node& one = node(id);
  switch (one.kind) {
  case NodeKind::Variable: return makeTerm(Slot, 0, slotOf_[keyOf(one)]);
  case NodeKind::Number: return number(one.value);
  case NodeKind::Reference: return makeTerm(Ref, one.value);
  case NodeKind::Erasure: return makeTerm(Era);
  case NodeKind::Wildcard: return makeTerm(Any);
  case NodeKind::Name: return makeTerm(Nam, one.value);
  case NodeKind::Constructor: return makeTerm(C00, one.value);
  default: VORTEX_UNREACHABLE();
  }
}

bool isValueCode(NodeKind kind) {
  return kind == NodeKind::Lambda || kind == NodeKind::Match || kind == NodeKind::Switch || kind == NodeKind::Use;
}

/// The word that refers to `id`; what it points at is added to the template.
Term Compiler::item(Template& target, NodeId id) {
  if (isAtom(id))
    return atom(id);
  const Node& one = node(id);
  size_t at = target.words.size();
  auto relative = [&](uint32_t tag, uint32_t ext) { return makeTerm(tag, ext, at) | kSub; };
  bool isData = one.kind == NodeKind::Constructor || one.kind == NodeKind::Sup || one.kind == NodeKind::Priority ||
                one.kind == NodeKind::Dry;
  if (isData && (at < kEagerWords || freeCount_[id] > kEagerWords)) {
    for (size_t i = 0; i < one.children.size(); ++i)
      target.open.emplace_back(at + i, one.children[i]);
    target.words.resize(at + one.children.size());
    switch (one.kind) {
    case NodeKind::Constructor: return relative(C00 + static_cast<uint32_t>(one.children.size()), one.value);
    case NodeKind::Sup: return relative(Sup, one.value);
    case NodeKind::Dry: return relative(Dry, 0);
    default: return relative(Inc, 0);
    }
  }
  uint32_t entry = entryOf(id, target.depth);
  uint32_t tag = isValueCode(one.kind) ? Fun : Thk;
  if (freeOf(id).empty())
    return makeTerm(tag, entry);
  for (Key key : freeOf(id))
    target.words.push_back(makeTerm(Slot, 0, slotOf_[key]));
  return relative(tag, entry);
}

void Compiler::fill(Template& target) {
  while (!target.open.empty()) {
    auto [place, id] = target.open.front();
    target.open.pop_front();
    Term word = item(target, id);
    target.words[place] = word;
  }
}

void Compiler::store(Op& op, Template& target) {
  fill(target);
  op.words = static_cast<uint32_t>(target.words.size());
  op.items = static_cast<uint32_t>(code_.items.size());
  code_.items.insert(code_.items.end(), target.words.begin(), target.words.end());
  code_.items.insert(code_.items.end(), target.roots.begin(), target.roots.end());
}

/// Pushes `plain`, then the header, and goes on with `next`.
void Compiler::lowerPush(Op& op, uint32_t header, const std::vector<NodeId>& plain, NodeId next, uint32_t depth) {
  op.kind = OpKind::Push;
  op.plain = static_cast<uint32_t>(plain.size());
  op.word = makeTerm(header);
  Template target{.depth = depth};
  for (NodeId one : plain)
    target.roots.push_back(item(target, one));
  store(op, target);
  op.a = opOf(next, depth);
}

/// Pushes what `closure` captures and a frame that enters it with the value of `next`.
void Compiler::pushCaptures(Op& op, Tag frame, uint64_t value, NodeId closure, NodeId next, uint32_t depth) {
  op.kind = OpKind::Push;
  op.plain = static_cast<uint32_t>(freeOf(closure).size());
  op.word = makeTerm(frame, entryOf(closure, depth), value);
  Template target{.depth = depth};
  for (Key key : freeOf(closure))
    target.roots.push_back(makeTerm(Slot, 0, slotOf_[key]));
  store(op, target);
  op.a = opOf(next, depth);
}

void Compiler::lowerLambda(Op& op, const Node& one, uint32_t depth) {
  const Binder& binder = program_.binders[one.binder];
  bool isUsed = binder.uses[0] > 0;
  slotOf_[one.binder * 2] = depth;
  op.kind = OpKind::Lam;
  op.slot = isUsed ? depth : kNoSlot;
  Template target{.depth = depth + isUsed, .words = {0}};
  target.open.emplace_back(0, one.children[0]);
  store(op, target);
  op.a = opOf(one.children[0], depth + isUsed);
}

static bool isDirect(const Program& program, const Node& apply) {
  return isValueCode(program.nodes[apply.children[0]].kind);
}

void Compiler::lowerApply(Op& op, NodeId id, uint32_t depth) {
  std::vector<NodeId> arguments;
  while (node(id).kind == NodeKind::Apply && !isDirect(program_, node(id))) {
    arguments.push_back(node(id).children[1]);
    id = node(id).children[0];
  }
  if (arguments.empty())
    return lowerDirect(op, node(id), depth);
  op.kind = OpKind::Push;
  if (node(id).kind == NodeKind::Reference && lowerStrictCall(op, id, arguments, depth))
    return;
  op.applied = static_cast<uint32_t>(arguments.size());
  Template target{.depth = depth};
  for (NodeId argument : arguments)
    target.roots.push_back(item(target, argument));
  store(op, target);
  op.a = opOf(id, depth);
}

/// The function of the call is written in place: a let, or a match on the argument.
void Compiler::lowerDirect(Op& op, const Node& apply, uint32_t depth) {
  NodeId function = apply.children[0], argument = apply.children[1];
  if (node(function).kind != NodeKind::Lambda)
    return pushCaptures(op, node(function).kind == NodeKind::Use ? OnUseCode : OnMatCode, 0, function, argument, depth);
  const Node& lambda = node(function);
  bool isUsed = program_.binders[lambda.binder].uses[0] > 0;
  slotOf_[lambda.binder * 2] = depth;
  op.kind = OpKind::Let;
  op.slot = isUsed ? depth : kNoSlot;
  Template target{.depth = depth};
  if (isUsed)
    target.roots.push_back(item(target, argument));
  store(op, target);
  op.a = opOf(lambda.children[0], depth + isUsed);
}

/// A call of a definition λa.λb.λ{…} with enough arguments: the third is needed at once, so it is run in place, over a frame of the match
/// that holds the arguments which its branches use. `arguments` has the last one first.
bool Compiler::lowerStrictCall(Op& op, NodeId head, const std::vector<NodeId>& arguments, uint32_t depth) {
  NodeId callee = program_.definitions[node(head).value].root;
  std::vector<Key> parameters;
  for (; node(callee).kind == NodeKind::Lambda; callee = node(callee).children[0])
    parameters.push_back(node(callee).binder * 2);
  size_t position = parameters.size();
  if (callee == 0 || !isValueCode(node(callee).kind) || arguments.size() <= position || position > 200)
    return false;
  auto argument = [&](size_t i) { return arguments[arguments.size() - 1 - i]; };
  Template target{.depth = depth};
  for (size_t i = arguments.size() - 1; i > position; --i)
    target.roots.push_back(item(target, argument(i)));
  op.applied = static_cast<uint32_t>(target.roots.size());
  // The callee's slots are numbered as lowerLambda will do it.
  uint32_t slot = 0;
  for (Key key : parameters) {
    slotOf_[key] = slot;
    slot += program_.binders[key / 2].uses[0] > 0;
  }
  for (Key key : freeOf(callee))
    target.roots.push_back(
        item(target,
             argument(static_cast<size_t>(std::find(parameters.begin(), parameters.end(), key) - parameters.begin()))));
  op.plain = static_cast<uint32_t>(freeOf(callee).size());
  op.counted = static_cast<uint8_t>(position);
  op.word = makeTerm(node(callee).kind == NodeKind::Use ? OnUseCode : OnMatCode, entryOf(callee, slot));
  store(op, target);
  op.a = opOf(argument(position), depth);
  return true;
}

void Compiler::lowerOperator(Op& op, const Node& one, uint32_t depth) {
  NodeId left = one.children[0], right = one.children[1];
  if (!isAtom(right))
    return pushCaptures(op, OnOp2Code, one.value, right, left, depth);
  lowerPush(op, OnOp2, {right}, left, depth);
  op.word = makeTerm(OnOp2, 0, one.value);
}

void Compiler::lower(NodeId id, uint32_t depth) {
  const Node& one = node(id);
  code_.slotCount = std::max(code_.slotCount, depth + 2);
  Op op;
  const std::vector<NodeId>& children = one.children;
  switch (one.kind) {
  case NodeKind::Variable: op.kind = OpKind::Slot, op.slot = slotOf_[keyOf(one)]; break;
  case NodeKind::Number:
  case NodeKind::Erasure:
  case NodeKind::Wildcard:
  case NodeKind::Name: op.word = atom(id); break;
  case NodeKind::Reference:
    op.kind = isEndless_[one.value] ? OpKind::Endless : OpKind::Call, op.ext = one.value, op.word = atom(id);
    break;
  case NodeKind::Constructor:
  case NodeKind::Sup:
  case NodeKind::Priority:
  case NodeKind::Dry: {
    op.kind = OpKind::Make;
    Template target{.depth = depth};
    target.roots.push_back(item(target, id));
    store(op, target);
    break;
  }
  case NodeKind::Lambda: lowerLambda(op, one, depth); break;
  case NodeKind::Match:
  case NodeKind::Switch: {
    op.kind = OpKind::Match, op.isSwitch = one.kind == NodeKind::Switch, op.ext = one.value;
    Template target{.depth = depth, .words = {0, 0}};
    if (op.isSwitch)
      target.words.push_back(number(one.value));
    target.open = {{0, children[0]}, {1, children[1]}};
    store(op, target);
    op.a = opOf(children[0], depth), op.b = opOf(children[1], depth);
    break;
  }
  case NodeKind::Use: {
    op.kind = OpKind::Use;
    Template target{.depth = depth, .words = {0}};
    target.open = {{0, children[0]}};
    store(op, target);
    op.a = opOf(children[0], depth);
    break;
  }
  case NodeKind::Dup: {
    op.kind = OpKind::Dup, op.ext = one.value, op.slot = depth;
    Template target{.depth = depth, .words = {0}};
    target.open = {{0, children[0]}};
    store(op, target);
    slotOf_[one.binder * 2] = depth, slotOf_[one.binder * 2 + 1] = depth + 1;
    op.a = opOf(children[1], depth + 2);
    break;
  }
  case NodeKind::Apply: lowerApply(op, id, depth); break;
  case NodeKind::Operator: lowerOperator(op, one, depth); break;
  case NodeKind::Equal: lowerPush(op, OnEqlLeft, {children[1]}, children[0], depth); break;
  case NodeKind::And: lowerPush(op, OnAnd, {children[1]}, children[0], depth); break;
  case NodeKind::Or: lowerPush(op, OnOr, {children[1]}, children[0], depth); break;
  case NodeKind::DynamicSup: lowerPush(op, OnDsu, {children[1], children[2]}, children[0], depth); break;
  case NodeKind::DynamicDup: lowerPush(op, OnDdu, {children[1], children[2]}, children[0], depth); break;
  case NodeKind::Unscoped: code_.hasUnscoped = true, op.kind = OpKind::Unscoped, op.a = opOf(children[0], depth); break;
  case NodeKind::Native:
    if (kNatives[one.value].kind == NativeKind::Gnf) {
      op.kind = OpKind::Offload;
      Template target{.depth = depth};
      target.roots.push_back(item(target, children[0]));
      store(op, target);
      code_.usesDevice = true;
      break;
    }
    lowerPush(op, kNatives[one.value].kind == NativeKind::Log ? OnLog : OnNf, {}, children[0], depth);
    op.word = makeTerm(tagOf(op.word), one.value);
    code_.hasEffects |= kNatives[one.value].kind == NativeKind::Log;
    break;
  }
  if (isValueCode(one.kind))
    op.entry = entryOf(id, depth);
  code_.ops[opOf_[id]] = op;
}

/// Names that lead from one to the next and back take no interactions, so nothing would end them.
void Compiler::findEndless() {
  const std::vector<Definition>& definitions = program_.definitions;
  isEndless_.resize(definitions.size());
  std::vector<uint32_t> walkOf(definitions.size());  // the last walk that came by
  for (uint32_t walk = 1; walk <= definitions.size(); ++walk) {
    uint32_t at = walk - 1;
    const auto next = [&] { return static_cast<uint32_t>(node(definitions[at].root).value); };
    while (walkOf[at] == 0 && definitions[at].root && node(definitions[at].root).kind == NodeKind::Reference)
      walkOf[at] = walk, at = next();
    for (; walkOf[at] == walk && !isEndless_[at]; at = next())
      isEndless_[at] = true;
  }
}

Result<Code> Compiler::run() {
  findFree();
  findEndless();
  slotOf_.resize(program_.binders.size() * 2);
  opOf_.resize(program_.nodes.size());
  entryOf_.resize(program_.nodes.size());
  for (const Definition& one : program_.definitions) {
    code_.roots.push_back(one.root ? opOf(one.root, 0) : 0);
    code_.definitions.push_back(one.name);
  }
  code_.constructors = program_.constructors;
  code_.dropsOperands = std::any_of(program_.nodes.begin() + 1, program_.nodes.end(), [](const Node& one) {
    return one.kind == NodeKind::Erasure || one.kind == NodeKind::Wildcard;
  });
  while (!pending_.empty()) {
    Pending next = pending_.back();
    pending_.pop_back();
    lower(next.node, next.depth);
    if (code_.entries.size() > kExtMask)
      return Error{base::concat("Error: the program has more than ", kExtMask, " closures")};
  }
  return std::move(code_);
}

}  // namespace

Result<Code> compile(const Program& program) { return Compiler(program).run(); }

}  // namespace vortex::hvm

#include "hvm/syntax/scope.h"

namespace vortex::hvm {

BinderId Scope::newBinder(bool isDup, bool isCloned) {
  program_.binders.push_back({isDup});
  isCloned_.resize(program_.binders.size(), false);
  isCloned_.back() = isCloned;
  return static_cast<BinderId>(program_.binders.size() - 1);
}

BinderId Scope::enterLambda(const std::string& name, bool isCloned) {
  names_.push_back({name, newBinder(false, isCloned), 0, false, false, isCloned});
  return names_.back().binder;
}

BinderId Scope::enterDup(const std::string& name, bool isCloned, bool isFork) {
  names_.push_back({name, newBinder(true, isCloned), 0, true, isFork, isCloned});
  return names_.back().binder;
}

Scope::Pair Scope::enterDynamicDup(const std::string& name, bool isCloned, bool isFork) {
  Pair pair{newBinder(false, isCloned), newBinder(false, isCloned)};
  names_.push_back({name, pair.zero, pair.one, true, isFork, isCloned});
  return pair;
}

Scope::Found Scope::countUse(BinderId binder, Side side) {
  uint32_t& uses = program_.binders[binder].uses[static_cast<size_t>(side)];
  ++uses;
  return uses > 1 && !isCloned_[binder] ? Found::UsedTwice : Found::Yes;
}

Scope::Found Scope::use(const std::string& text, Side side, NodeId& node) {
  Found why = Found::Undefined;
  for (size_t i = names_.size(); i-- > 0;) {
    const Name& name = names_[i];
    if (name.text != text)
      continue;
    if (side == Side::None ? name.isDup && !name.isFork : !name.isDup) {
      why = name.isDup ? Found::NeedsSubscript : Found::HasNoSides;
      continue;
    }
    Side meant = name.isFork && side == Side::None ? forkSide_ : side;
    BinderId binder = name.other && meant == Side::One ? name.other : name.binder;
    Side kept = program_.binders[binder].isDup ? meant : Side::None;
    node = program_.add({.kind = NodeKind::Variable, .side = kept, .binder = binder});
    return countUse(binder, kept);
  }
  return why;
}

NodeId Scope::copy(NodeId root) {
  std::unordered_map<BinderId, BinderId> renamed;
  return copyNode(root, renamed);
}

NodeId Scope::copyNode(NodeId root, std::unordered_map<BinderId, BinderId>& renamed) {
  Node node = program_.nodes[root];
  if (node.kind == NodeKind::Lambda || node.kind == NodeKind::Dup)
    renamed[node.binder] = newBinder(program_.binders[node.binder].isDup, isCloned_[node.binder]);
  if (auto place = renamed.find(node.binder); place != renamed.end())
    node.binder = place->second;
  if (node.kind == NodeKind::Variable && countUse(node.binder, node.side) == Found::UsedTwice)
    return 0;
  for (NodeId& child : node.children)
    if ((child = copyNode(child, renamed)) == 0)
      return 0;
  return program_.add(std::move(node));
}

bool Scope::closeCloned(BinderId binder, Side side, NodeId& body) {
  uint32_t uses = program_.binders[binder].uses[static_cast<size_t>(side)];
  if (uses < 2)
    return true;
  uint32_t label = program_.nextLabel;
  if (label + uses - 1 > kReservedLabel)
    return false;
  program_.nextLabel += uses - 1;
  std::vector<BinderId> dups;
  for (uint32_t i = 0; i + 1 < uses; ++i)
    dups.push_back(newBinder(true, false));
  uint32_t seen = 0;
  std::vector<NodeId> pending{body};
  while (!pending.empty()) {
    Node& node = program_.nodes[pending.back()];
    pending.pop_back();
    if (node.kind == NodeKind::Variable && node.binder == binder && node.side == side) {
      bool isLast = seen + 1 == uses;
      node.binder = dups[isLast ? seen - 1 : seen];
      node.side = isLast ? Side::One : Side::Zero;
      program_.binders[node.binder].uses[static_cast<size_t>(node.side)] = 1;
      ++seen;
    }
    pending.insert(pending.end(), node.children.rbegin(), node.children.rend());
  }
  program_.binders[binder].uses[static_cast<size_t>(side)] = 1;
  for (size_t i = dups.size(); i-- > 0;) {
    NodeId value =
        program_.add({.kind = NodeKind::Variable, .side = i ? Side::One : side, .binder = i ? dups[i - 1] : binder});
    if (i)
      program_.binders[dups[i - 1]].uses[static_cast<size_t>(Side::One)] = 1;
    body = program_.add({.kind = NodeKind::Dup,
                         .binder = dups[i],
                         .value = label + static_cast<uint32_t>(i),
                         .children = {value, body}});
  }
  return true;
}

}  // namespace vortex::hvm

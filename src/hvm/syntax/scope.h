// Names in scope while a definition is parsed, the affinity check, and automatic duplication of cloned binders.
#pragma once

#include "hvm/syntax/program.h"

namespace vortex::hvm {

class Scope {
public:
  explicit Scope(Program& program) : program_(program) {}

  /// Enters names; each is left by leave(), last first.
  BinderId enterLambda(const std::string& name, bool isCloned);
  BinderId enterDup(const std::string& name, bool isCloned, bool isFork = false);
  /// The two lambdas that a dynamic duplication binds.
  struct Pair {
    BinderId zero, one;
  };
  Pair enterDynamicDup(const std::string& name, bool isCloned, bool isFork = false);
  void leave() { names_.pop_back(); }

  /// Which side the plain names of fork parameters mean.
  void setForkSide(Side side) { forkSide_ = side; }
  bool isInFork() const { return forkSide_ != Side::None; }

  enum class Found { Yes, Undefined, NeedsSubscript, HasNoSides, UsedTwice };
  /// Makes a Variable node for a use, or says why not.
  Found use(const std::string& name, Side side, NodeId& node);

  /// A copy with binders of its own whose variables count as further uses; 0 if that breaks affinity.
  NodeId copy(NodeId root);

  /// Called when a cloned binder's body is complete: wraps it in duplications that give every use its own copy. False: out of labels.
  bool closeCloned(BinderId binder, Side side, NodeId& body);

private:
  struct Name {
    std::string text;
    BinderId binder, other;  // other: side one of a dynamic duplication
    bool isDup, isFork, isCloned;
  };
  BinderId newBinder(bool isDup, bool isCloned);
  Found countUse(BinderId binder, Side side);
  NodeId copyNode(NodeId root, std::unordered_map<BinderId, BinderId>& renamed);

  Program& program_;
  std::vector<Name> names_;
  std::vector<bool> isCloned_{false};  // by binder
  Side forkSide_ = Side::None;
};

}  // namespace vortex::hvm

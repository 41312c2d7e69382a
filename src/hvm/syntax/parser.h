#pragma once

#include "hvm/syntax/cursor.h"
#include "hvm/syntax/scope.h"

#include <set>

namespace vortex::hvm {

/// Recursive descent over one file; desugars while it reads. Every function returns node 0 after an error, which the cursor keeps.
class Parser {
public:
  Parser(Program& program, std::set<std::string>& filesRead)
      : program_(program), filesRead_(filesRead), scope_(program) {}
  /// Empty, or the error's text.
  std::string parseFile(const std::string& path);
  std::string parseText(std::string_view text, const std::string& path);

private:
  static constexpr int kMaxDepth = 4000;  // of nested terms: each takes some stack

  void include(const std::string& path);
  void definition();

  NodeId term(int level = 0);
  NodeId suffixes(NodeId left, int level);
  NodeId suffixAfter(NodeId left, int level);
  NodeId atom();
  NodeId atomOfPunctuation();
  std::vector<NodeId> arguments(std::string_view close);
  NodeId variable();
  bool isWord(uint64_t number, size_t position);
  NodeId numeral();
  NodeId constructor();
  uint32_t constructorId(const std::string& name, size_t position);
  NodeId native();
  NodeId stuck();
  NodeId character();
  uint32_t characterCode();
  NodeId text(char quote);

  // Forms that start with λ, ! and &.
  NodeId lambda();
  NodeId lambdaBody();
  NodeId unscopedLambda();
  NodeId namedLambda();
  NodeId braces();
  struct Case {
    NodeKind kind;
    uint32_t value;
    NodeId hit;
  };
  bool pattern(Case& found);
  NodeId binding();
  NodeId let(const std::string& name, bool isCloned, bool isStrict);
  NodeId dup(const std::string& name, bool isCloned);
  NodeId sup();
  NodeId fork(uint32_t label, NodeId dynamicLabel);
  struct Parameter {
    BinderId lambda, dup;
    Scope::Pair sides;
  };
  NodeId wrapParameter(const Parameter& parameter, uint32_t label, NodeId dynamicLabel, NodeId body);
  uint32_t label();
  uint32_t automaticLabel();
  void closeCloned(BinderId binder, Side side, NodeId& body);
  NodeId dynamicDup(NodeId label, NodeId value, Scope::Pair sides, NodeId body);
  std::string binderName() { return cursor_->name("a name"); }

  NodeId add(NodeKind kind, std::vector<NodeId> children = {}, uint32_t value = 0) {
    return program_.add({.kind = kind, .value = value, .children = std::move(children)});
  }
  NodeId addLambda(BinderId binder, NodeId body) {
    return program_.add({.kind = NodeKind::Lambda, .binder = binder, .children = {body}});
  }
  NodeId addDup(BinderId binder, uint32_t label, NodeId value, NodeId body) {
    return program_.add({.kind = NodeKind::Dup, .binder = binder, .value = label, .children = {value, body}});
  }
  NodeId addVariable(BinderId binder);
  NodeId cons(NodeId head, NodeId tail) { return add(NodeKind::Constructor, {head, tail}, kCon); }

  Program& program_;
  std::set<std::string>& filesRead_;
  std::set<std::string> defined_;  ///< by this file: what it includes may be replaced
  Scope scope_;
  Cursor* cursor_ = nullptr;
  int depth_ = 0;
};

}  // namespace vortex::hvm

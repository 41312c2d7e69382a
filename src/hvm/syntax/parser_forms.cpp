// Forms that start with λ, ! and &.
#include "base/text.h"
#include "hvm/syntax/parser.h"

namespace vortex::hvm {

NodeId Parser::addVariable(BinderId binder) {
  program_.binders[binder].uses[0] = 1;
  return program_.add({.kind = NodeKind::Variable, .binder = binder});
}

uint32_t Parser::label() {
  cursor_->skipSpace();
  size_t position = cursor_->position();
  std::string name = cursor_->name("a label");
  int32_t code = encodeName(name);
  if (code < 0)
    cursor_->failWith(position, "a name of at most 16 bits (1 or 2 characters, or 3 that start with a to o)",
                      base::concat("`", name, "`"));
  return cursor_->failed() ? 0 : static_cast<uint32_t>(code);
}

uint32_t Parser::automaticLabel() {
  if (program_.nextLabel >= kReservedLabel)
    cursor_->fail(base::concat("at most ", kReservedLabel - kFirstAutomaticLabel, " automatic labels"));
  return program_.nextLabel++;
}

void Parser::closeCloned(BinderId binder, Side side, NodeId& body) {
  if (!cursor_->failed() && !scope_.closeCloned(binder, side, body))
    cursor_->fail(base::concat("at most ", kReservedLabel - kFirstAutomaticLabel, " automatic labels"));
}

NodeId Parser::lambda() {
  NodeId result = cursor_->take("{") ? braces() : cursor_->take("$") ? unscopedLambda() : namedLambda();
  return cursor_->failed() ? 0 : result;
}

/// What follows a lambda's name: `.` and the body, or `,` and a further head.
NodeId Parser::lambdaBody() {
  if (cursor_->take(",")) {
    ++depth_;
    NodeId body = depth_ > kMaxDepth ? term() : lambda();  // term() reports the depth
    --depth_;
    return body;
  }
  if (!cursor_->take("."))
    cursor_->fail("`.` or `,`");
  return term();
}

/// λ$x. b is ! f = λ x; f(b).
NodeId Parser::unscopedLambda() {
  std::string name = binderName();
  BinderId function = scope_.enterLambda("", false);
  BinderId value = scope_.enterLambda(name, false);
  NodeId body = lambdaBody();
  scope_.leave();
  scope_.leave();
  NodeId call = add(NodeKind::Apply, {addVariable(function), body});
  return add(NodeKind::Unscoped, {addLambda(function, addLambda(value, call))});
}

NodeId Parser::namedLambda() {
  bool isCloned = cursor_->take("&");
  std::string name = binderName();
  if (!cursor_->take("&")) {
    BinderId binder = scope_.enterLambda(name, isCloned);
    NodeId body = lambdaBody();
    scope_.leave();
    closeCloned(binder, Side::None, body);
    return addLambda(binder, body);
  }
  BinderId hidden = 0;
  NodeId body = 0;
  if (cursor_->take("(")) {
    NodeId label = term();
    cursor_->expect(")");
    hidden = scope_.enterLambda("", false);
    Scope::Pair sides = scope_.enterDynamicDup(name, isCloned);
    body = lambdaBody();
    scope_.leave();
    body = dynamicDup(label, addVariable(hidden), sides, body);
  } else {
    uint32_t which = cursor_->seesName() ? label() : automaticLabel();
    hidden = scope_.enterLambda("", false);
    BinderId binder = scope_.enterDup(name, isCloned);
    body = lambdaBody();
    scope_.leave();
    closeCloned(binder, Side::One, body);
    closeCloned(binder, Side::Zero, body);
    body = addDup(binder, which, addVariable(hidden), body);
  }
  scope_.leave();
  return addLambda(hidden, body);
}

NodeId Parser::dynamicDup(NodeId label, NodeId value, Scope::Pair sides, NodeId body) {
  closeCloned(sides.zero, Side::None, body);
  closeCloned(sides.one, Side::None, body);
  return add(NodeKind::DynamicDup, {label, value, addLambda(sides.zero, addLambda(sides.one, body))});
}

/// After `λ{`: erasure, use, or a match.
NodeId Parser::braces() {
  if (cursor_->take("}"))
    return add(NodeKind::Erasure);
  std::vector<Case> cases;
  std::set<std::pair<NodeKind, uint32_t>> seen;
  cursor_->skipSpace();
  size_t begin = cursor_->position();
  for (Case found; pattern(found);) {
    if (!seen.emplace(found.kind, found.value).second)
      cursor_->failWith(begin, "a pattern that no case before has",
                        base::concat("a second case of ", cursor_->since(begin).substr(0, 40)));
    found.hit = term();
    if (cursor_->sees(","))
      cursor_->fail("`;`, a pattern, the default or `}`");
    cursor_->take(";");
    cases.push_back(found);
    cursor_->skipSpace();
    begin = cursor_->position();
  }
  if (cases.empty()) {
    NodeId function = term();
    cursor_->expect("}");
    return add(NodeKind::Use, {function});
  }
  NodeId rest = 0;
  if (cursor_->take("}")) {
    rest = add(NodeKind::Number);
  } else {
    if (cursor_->take("_"))
      cursor_->expect(":");
    rest = term();
    cursor_->take(";");
    cursor_->expect("}");
  }
  for (size_t i = cases.size(); i-- > 0;)
    rest = add(cases[i].kind, {cases[i].hit, rest}, cases[i].value);
  return rest;
}

/// Takes `pattern :`; false, and nothing taken, if there is none.
bool Parser::pattern(Case& found) {
  Cursor& cursor = *cursor_;
  cursor.skipSpace();
  size_t begin = cursor.position();
  found.kind = NodeKind::Match;
  std::string name;
  uint64_t number = 0;
  if (cursor.takeHere("[]")) {
    found.value = kNil;
  } else if (cursor.takeHere("<>")) {
    found.value = kCon;
  } else if (cursor.takeHere("0n")) {
    found.value = kZer;
  } else if (cursor.takeHere("1n+")) {
    found.value = kSuc;
  } else if (cursor.seesDigit()) {
    found.kind = NodeKind::Switch;
    found.value = 0;
    number = cursor.number();
  } else if (cursor.takeHere("'")) {
    found.kind = NodeKind::Switch;
    found.value = characterCode();
  } else if (cursor.takeHere("#")) {
    name = cursor.name("the name of a constructor");
  } else {
    return false;
  }
  if (cursor.failed())
    return false;
  if (!cursor.take(":")) {
    cursor.rewind(begin);
    return false;
  }
  if (!name.empty())
    found.value = constructorId(name, begin);
  else if (number != 0 && isWord(number, begin))
    found.value = static_cast<uint32_t>(number);
  return !cursor.failed();
}

NodeId Parser::binding() {
  bool isStrict = cursor_->take("!");
  bool isCloned = cursor_->take("&");
  std::string name = binderName();
  NodeId result = 0;
  if (!isStrict && cursor_->take("&"))
    result = dup(name, isCloned);
  else
    result = let(name, isCloned, isStrict);
  return cursor_->failed() ? 0 : result;
}

NodeId Parser::let(const std::string& name, bool isCloned, bool isStrict) {
  cursor_->expect("=");
  size_t begin = cursor_->position();
  if (!isStrict && !isCloned && cursor_->take("λ") && cursor_->seesName()) {
    std::string value = binderName();
    if (cursor_->take(";")) {
      BinderId function = scope_.enterLambda(name, false);
      BinderId variable = scope_.enterLambda(value, false);
      NodeId body = term();
      scope_.leave();
      scope_.leave();
      return add(NodeKind::Unscoped, {addLambda(function, addLambda(variable, body))});
    }
  }
  cursor_->rewind(begin);
  NodeId value = term();
  cursor_->take(";");
  BinderId binder = scope_.enterLambda(name, isCloned);
  NodeId body = term();
  scope_.leave();
  closeCloned(binder, Side::None, body);
  NodeId function = addLambda(binder, body);
  if (isStrict)
    function = add(NodeKind::Use, {function});
  return add(NodeKind::Apply, {function, value});
}

NodeId Parser::dup(const std::string& name, bool isCloned) {
  NodeId dynamicLabel = 0;
  uint32_t which = 0;
  if (cursor_->take("(")) {
    dynamicLabel = term();
    cursor_->expect(")");
  } else {
    which = cursor_->seesName() ? label() : automaticLabel();
  }
  cursor_->expect("=");
  NodeId value = term();
  cursor_->take(";");
  if (dynamicLabel) {
    Scope::Pair sides = scope_.enterDynamicDup(name, isCloned);
    NodeId body = term();
    scope_.leave();
    return dynamicDup(dynamicLabel, value, sides, body);
  }
  BinderId binder = scope_.enterDup(name, isCloned);
  NodeId body = term();
  scope_.leave();
  closeCloned(binder, Side::One, body);
  closeCloned(binder, Side::Zero, body);
  return addDup(binder, which, value, body);
}

NodeId Parser::sup() {
  if (cursor_->take("{")) {
    cursor_->expect("}");
    return add(NodeKind::Erasure);
  }
  NodeId dynamicLabel = 0;
  uint32_t which = 0;
  if (cursor_->take("(")) {
    dynamicLabel = term();
    cursor_->expect(")");
  } else {
    which = label();
  }
  if (cursor_->take("λ"))
    return fork(which, dynamicLabel);
  cursor_->expect("{");
  NodeId left = term();
  cursor_->take(",");
  NodeId right = term();
  cursor_->take(",");
  cursor_->expect("}");
  if (dynamicLabel)
    return add(NodeKind::DynamicSup, {dynamicLabel, left, right});
  return add(NodeKind::Sup, {left, right}, which);
}

NodeId Parser::fork(uint32_t which, NodeId dynamicLabel) {
  if (scope_.isInFork())
    cursor_->fail("no fork inside a fork");
  std::vector<Parameter> parameters;
  do {
    std::string name = binderName();
    Parameter parameter{scope_.enterLambda("", false), 0, {}};
    if (dynamicLabel)
      parameter.sides = scope_.enterDynamicDup(name, false, true);
    else
      parameter.dup = scope_.enterDup(name, false, true);
    parameters.push_back(parameter);
    cursor_->take(",");
  } while (cursor_->seesName());
  cursor_->expect("{");
  NodeId sides[2];
  for (int i = 0; i < 2; ++i) {
    scope_.setForkSide(i ? Side::One : Side::Zero);
    if (cursor_->take(i ? "&₁" : "&₀"))
      cursor_->expect(":");
    sides[i] = term();
    cursor_->take(";");
  }
  scope_.setForkSide(Side::None);
  cursor_->expect("}");
  for (size_t i = 0; i < 2 * parameters.size(); ++i)
    scope_.leave();
  if (cursor_->failed())
    return 0;
  NodeId body = dynamicLabel ? add(NodeKind::DynamicSup, {dynamicLabel, sides[0], sides[1]})
                             : add(NodeKind::Sup, {sides[0], sides[1]}, which);
  for (size_t i = parameters.size(); i-- > 0;)
    body = wrapParameter(parameters[i], which, dynamicLabel, body);
  return body;
}

/// λx&L. body, or λx&(l). body with a further copy of l.
NodeId Parser::wrapParameter(const Parameter& parameter, uint32_t which, NodeId dynamicLabel, NodeId body) {
  if (!dynamicLabel)
    return addLambda(parameter.lambda, addDup(parameter.dup, which, addVariable(parameter.lambda), body));
  NodeId again = scope_.copy(dynamicLabel);
  if (again == 0) {
    cursor_->fail("a label whose variables may be used more than once (`&x` at the binder): a fork repeats it");
    return 0;
  }
  return addLambda(parameter.lambda, dynamicDup(again, addVariable(parameter.lambda), parameter.sides, body));
}

}  // namespace vortex::hvm

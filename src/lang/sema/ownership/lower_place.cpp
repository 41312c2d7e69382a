// Places: what reading, keeping and lending them does.
#include "base/text.h"
#include "lang/sema/ownership/lower.h"

namespace vortex::lang::ownership {

Place Lowering::placeOfBase(Expr& expr) {
  if (isPlace(expr))
    return place(expr);
  if (expr.kind == ExprKind::Ref)  // `(&x).f`
    return placeOfBase(*expr.args[0]);
  LocalId held = value(expr, own(MoveReason::Binding));
  if (held == kNoLocal)
    held = temporary(expr);
  return Place{held, {}};
}

Place Lowering::place(Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Var: {
    if (auto alias = aliases_.find(expr.variable); alias != aliases_.end())
      return alias->second;
    Place out{localOf(expr.variable), {}};
    if (graph_.locals[out.root].isView)
      out.path.push_back({Projection::Kind::Deref, 0, nullptr});
    return out;
  }
  case ExprKind::Field: {
    Place out = placeOfBase(*expr.args[0]);
    out.path.push_back({Projection::Kind::Field, static_cast<uint32_t>(expr.ints[0]), nullptr});
    return out;
  }
  case ExprKind::Element:
  case ExprKind::Slice: {
    Place out = placeOfBase(*expr.args[0]);
    for (size_t i = 1; i < expr.args.size(); ++i)
      value(*expr.args[i], look());
    for (SliceDim& slice : expr.slices) {
      if (slice.begin)
        value(*slice.begin, look());
      if (slice.end)
        value(*slice.end, look());
    }
    out.path.push_back({Projection::Kind::Index, 0, &expr});
    for (int64_t field : expr.ints)
      out.path.push_back({Projection::Kind::Field, static_cast<uint32_t>(field), nullptr});
    return out;
  }
  case ExprKind::Deref: {
    if (expr.args[0]->kind == ExprKind::Ref)
      return placeOfBase(*expr.args[0]->args[0]);
    Place out = placeOfBase(*expr.args[0]);
    out.path.push_back({Projection::Kind::Deref, 0, nullptr});
    return out;
  }
  default: return placeOfBase(expr);
  }
}

LocalId Lowering::lend(Expr& expr, Place from, LoanKind kind, const Purpose& purpose, bool isView) {
  const LocalId out = temporary(expr);
  Loan loan;
  loan.place = std::move(from);
  loan.range = expr.range;
  loan.kind = kind;
  loan.lent = stripRef(expr.type);
  loan.isView = isView;
  loan.writer = purpose.writer;
  loan.call = purpose.call;
  loan.launch = purpose.call && purpose.call->kind == ExprKind::Launch ? purpose.call : nullptr;
  borrow(out, std::move(loan));
  return out;
}

LocalId Lowering::usePlace(Expr& expr, const Purpose& purpose) {
  const Type type = expr.type;
  Place from = place(expr);
  const LocalId root = from.root;
  const auto holding = [&](LocalId source) {
    if (!mayHoldBorrows(type))
      return kNoLocal;
    const LocalId out = temporary(expr);
    flow(out, {source}, false, expr.range);
    return out;
  };
  if (purpose.want == Want::Look) {
    read(std::move(from), expr.range);
    return holding(root);
  }
  const bool isStorage = (type->isTensor() && !type->isValue) || type->kind == TypeKind::Vec;
  const bool isLaunch = purpose.call && purpose.call->kind == ExprKind::Launch;
  if (isStorage && !isCopy(type)) {
    const bool isViewed = isStorageSlice(expr) || graph_.locals[root].isView ||
                          (function_.inKernel && type->isTensor() && from.hasDeref());
    const bool isLent = expr.kind == ExprKind::Deref || isViewed || (type->isTensor() && type->space != Space::Global);
    if (purpose.want == Want::View && isViewed && !graph_.locals[root].isElement)
      return lend(expr, std::move(from), purpose.writer ? LoanKind::Mutable : LoanKind::Shared, purpose, true);
    if (purpose.want == Want::Lend && isLent && (isLaunch || function_.inKernel))
      return lend(expr, std::move(from), LoanKind::Shared, purpose, false);
    if (function_.inKernel && purpose.want == Want::Return) {  // its elements are stored in the result
      read(std::move(from), expr.range);
      return kNoLocal;
    }
  }
  if (isCopy(type)) {
    expr.transfer = Transfer::Copy;
    read(std::move(from), expr.range);
    return holding(root);
  }
  const bool isMutableRef = type->kind == TypeKind::Ref && type->isMutable;
  if (isMutableRef && (purpose.want == Want::Lend || purpose.want == Want::Return)) {
    from.path.push_back({Projection::Kind::Deref, 0, nullptr});
    return lend(expr, std::move(from), LoanKind::Mutable, purpose, false);
  }
  return moveOut(expr, std::move(from), purpose);
}

LocalId Lowering::moveOut(Expr& expr, Place from, const Purpose& purpose) {
  const Local& root = graph_.locals[from.root];
  const bool isCaptured = root.variable && root.closure < closures_.size();
  if (!from.isMovePath() || isCaptured) {
    reportMoveOutOfBorrow(expr, from, purpose);
    read(std::move(from), expr.range);
    return kNoLocal;
  }
  expr.transfer = Transfer::Move;
  const LocalId source = from.root;
  Statement& made = emit(Op::Move, expr.range);
  made.place = from;
  made.index = static_cast<uint32_t>(graph_.moves.size());
  made.launch = purpose.call && purpose.call->kind == ExprKind::Launch ? purpose.call : nullptr;
  graph_.moves.push_back({std::move(from), expr.range, purpose.reason, purpose.callee});
  if (!mayHoldBorrows(expr.type))
    return kNoLocal;
  const LocalId out = temporary(expr);
  flow(out, {source}, false, expr.range);
  return out;
}

void Lowering::reportMoveOutOfBorrow(const Expr& expr, const Place& from, const Purpose&) {
  const Local& root = graph_.locals[from.root];
  const bool isCaptured = root.variable && root.closure < closures_.size() && from.isMovePath();
  const std::string what = graph_.describe(from);
  std::string message, label;
  if (isCaptured) {
    message = base::concat(what, " cannot be moved out of a closure: closures capture by reference");
    label = "declared outside the closure";
  } else if (isStorageSlice(expr)) {
    message = "a slice is a borrowed view and cannot be moved";
    label = "the owner";
  } else if (root.isElement) {
    message = base::concat(what, " cannot be moved: it is an element of the list that the loop walks over");
    label = "borrowed from the list here";
  } else if (root.isView) {
    message = base::concat(what, " cannot be moved: it is a view of another tensor or list");
    label = "the view is made here";
  } else if (from.hasDeref()) {
    message = base::concat(what, " cannot be moved: it is borrowed");
    label = "the reference";
  } else {
    message = base::concat(what, " cannot be moved out of a list");
    label = "the list owns its elements";
  }
  auto builder = sink_.error("E0514", expr.range, std::move(message));
  builder.primary("moved here");
  if (root.variable)
    builder.label(root.range, std::move(label));
  const bool copies = expr.type->kind == TypeKind::Vec || expr.type->isTensor();
  if (copies && !function_.inKernel) {
    builder.fix(SourceRange{expr.range.file, expr.range.end, expr.range.end}, ".copy()", "move a copy");
  } else if (const std::string bound = copyBound(expr.type); !bound.empty()) {
    builder.help(base::concat("borrow it with `&`, or let values of this type be copied: `", bound, "`"));
  } else if (isCaptured) {
    builder.help("pass it to the closure as an argument");
  } else {
    builder.help("borrow it with `&`, or take what it belongs to by value");
  }
}

}  // namespace vortex::lang::ownership

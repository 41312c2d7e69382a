#include "lang/sema/byte_sizes.h"

#include "base/text.h"
#include "lang/sema/children.h"

#include <algorithm>
#include <set>

namespace vortex::lang {

using base::WideBytes;

static WideBytes timesCount(WideBytes bytes, uint64_t count) {
  WideBytes product = 0;
  return __builtin_mul_overflow(bytes, static_cast<WideBytes>(count), &product) || product > WideBytes{1} << 127
             ? WideBytes{1} << 127
             : product;
}

WideBytes bytesOf(Type type) {
  switch (type->kind) {
  case TypeKind::Array: return timesCount(bytesOf(type->elem), type->count);
  case TypeKind::Struct:
  case TypeKind::Tuple: {
    WideBytes sum = 0;
    for (Type elem : type->elems)
      sum = base::addBytes(sum, bytesOf(elem));
    return sum;
  }
  case TypeKind::Scalar: return (bitWidth(type->scalar) + 7) / 8;
  case TypeKind::Tensor: {
    WideBytes bytes = bytesOf(type->elem);
    for (const DimExpr& extent : type->shape)
      if (auto constant = extent.asConstant(); constant && *constant > 0)
        bytes = timesCount(bytes, static_cast<uint64_t>(*constant));
    return bytes;
  }
  default: return 0;
  }
}

namespace {

constexpr const char* kNoMemory = "no memory holds it: a running program would end here with E0703";

struct Excess {
  Type type = nullptr;
  WideBytes bytes = 0;
  uint64_t most = 0;
  const char* what = "";
};

class SizeCheck {
public:
  SizeCheck(const Function& function, diag::DiagnosticSink& sink) : function_(function), sink_(sink) {}

  void run() {
    for (const Variable* param : function_.params)
      check(param->type, param->range);
    if (function_.resultType)
      check(function_.resultType, function_.resultRange);
    visit(*function_.body);
  }

private:
  void visit(const Expr& expr) {
    if (expr.kind == ExprKind::Let && expr.variable && !check(expr.variable->type, expr.variable->range))
      return;  // its value has parts of the same kind
    const bool isRepeated =
        expr.kind == ExprKind::RepeatVec || (expr.kind == ExprKind::RepeatArray && !function_.inKernel);
    if (isRepeated && expr.args[1]->kind == ExprKind::Int && !checkRepeated(expr))
      return;
    forEachChild(expr, [&](const Expr& child) { visit(child); });
    if (expr.type)
      check(expr.type, expr.range);
  }

  /// False where the list is too large.
  bool checkRepeated(const Expr& expr) {
    const WideBytes bytes = timesCount(bytesOf(expr.type->elem), static_cast<uint64_t>(expr.args[1]->intValue));
    if (bytes <= base::kMostTensorBytes)
      return true;
    if (reported_.count(expr.type))
      return false;
    sink_
        .error("E0553", expr.range,
               base::concat("this list takes ", base::showBytes(bytes), " bytes, a list has at most ",
                            base::kMostTensorBytes))
        .primary("this has too many elements")
        .help(kNoMemory);
    return false;
  }

  /// Tensors inside of other types by themselves; arrays, structs and tuples of a kernel's own tensors and of numbers as a whole.
  Excess find(Type type) const {
    if (type->kind == TypeKind::Tensor) {
      const bool isLocal = !type->isValue && type->space == Space::Local,
                 isShared = !type->isValue && type->space == Space::Shared;
      return limited(type,
                     isLocal    ? base::kMostLocalBytes
                     : isShared ? base::kMostSharedBytes
                                : base::kMostTensorBytes,
                     isLocal    ? "the arrays of a thread have"
                     : isShared ? "the shared memory of a block has"
                                : "a tensor has");
    }
    if (type->kind == TypeKind::Array && function_.inKernel) {
      Type elem = type->elem;
      while (elem->kind == TypeKind::Array)
        elem = elem->elem;
      const bool isShared = elem->isTensor() && !elem->isValue && elem->space == Space::Shared;
      if (isShared)
        return limited(type, base::kMostSharedBytes, "the shared memory of a block has");
      if (!elem->isTensor() || (!elem->isValue && elem->space == Space::Local))
        return limited(type, base::kMostLocalBytes, "the arrays of a thread have");
    }
    if (type->kind == TypeKind::Array && !hasTensor(type))
      return limited(type, base::kMostTensorBytes, "an array has");
    if (type->kind == TypeKind::Array || type->kind == TypeKind::Vec || type->kind == TypeKind::Ref)
      return find(type->elem);
    if (type->kind != TypeKind::Struct && type->kind != TypeKind::Tuple)
      return {};
    for (Type elem : type->elems)
      if (Excess found = find(elem); found.type)
        return found;
    if (hasTensor(type))
      return {};
    return function_.inKernel ? limited(type, base::kMostLocalBytes, "the variables of a thread have")
                              : limited(type, base::kMostTensorBytes, "a value has");
  }

  static bool hasTensor(Type type) {
    return type->isTensor() || (type->kind == TypeKind::Array && hasTensor(type->elem)) ||
           std::any_of(type->elems.begin(), type->elems.end(), hasTensor);
  }

  static Excess limited(Type type, uint64_t most, const char* what) {
    const WideBytes bytes = bytesOf(type);
    return bytes > most ? Excess{type, bytes, most, what} : Excess{};
  }

  /// False where the type is too large.
  bool check(Type type, source::SourceRange range) {
    if (!seen_.insert(type).second)
      return true;
    const Excess excess = find(type);
    if (!excess.type)
      return true;
    if (!reported_.insert(excess.type).second)
      return false;
    for (Type part = excess.type->elem; part; part = part->elem)
      reported_.insert(part);
    auto builder =
        sink_.error("E0553", range,
                    base::concat("`", text(excess.type, function_.dimNames()), "` takes ",
                                 base::showBytes(excess.bytes), " bytes, ", excess.what, " at most ", excess.most));
    builder.primary("this has too many elements");
    if (!excess.type->isTensor() && !function_.inKernel)
      builder.help(kNoMemory);
    return false;
  }

  const Function& function_;
  diag::DiagnosticSink& sink_;
  std::set<Type> seen_, reported_;
};

}  // namespace

void checkByteSizes(const Program& program, diag::DiagnosticSink& sink) {
  for (const auto& function : program.functions)
    if (function->body && (function->isKernel || !function->inKernel))  // bodies of other device functions are inlined
      SizeCheck(*function, sink).run();
}

}  // namespace vortex::lang

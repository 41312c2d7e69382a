// What `@name(…)` before items and statements means.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

enum Target : uint8_t { kKernel = 1, kFunction = 2, kStruct = 4, kStatement = 8 };
struct AttributeRow {
  std::string_view name;
  uint8_t targets;
  bool isSupported;
};
constexpr AttributeRow kAttributes[] = {
    {"launch", kKernel, true},
    {"tile", kKernel, true},
    {"test", kFunction, true},
    {"bench", kKernel | kFunction, true},
    {"strict", kKernel | kFunction, true},
    {"fastmath", kKernel | kFunction, true},
    {"unchecked", kKernel | kStatement, true},
    {"reduce", kKernel, true},
    {"precision", kKernel, true},  // permits, never requires
    {"unroll", kStatement, true},
    {"sequential", kStatement, true},
    {"parallel", kStatement, true},
    {"layout", kStruct, true},
    {"fused", kKernel, false},
    {"schedule", kKernel, false},
    {"pipeline", kKernel | kStatement, false},
    {"verify_no_bank_conflicts", kStatement | kKernel, true},
};

const AttributeRow* findRow(std::string_view name) {
  for (const AttributeRow& row : kAttributes)
    if (row.name == name)
      return &row;
  return nullptr;
}

std::string_view targetText(uint8_t target) {
  return target == kKernel     ? "a kernel"
         : target == kFunction ? "a function"
         : target == kStruct   ? "a struct"
                               : "a statement";
}

}  // namespace

const void* Checker::attributeRow(const syn::Attribute& attribute, uint8_t target) {
  const AttributeRow* row = findRow(attribute.name.text);
  if (!row) {
    std::vector<std::string> names;
    for (const AttributeRow& known : kAttributes)
      names.emplace_back(known.name);
    auto builder = error("E0207", attribute.range, base::concat("there is no attribute `@", attribute.name.text, "`"));
    if (std::string close = nearest(attribute.name.text, names); !close.empty())
      builder.help("did you mean `@" + close + "`?");
    return nullptr;
  }
  if ((row->targets & target) == 0) {
    error("E0209", attribute.range, base::concat("`@", row->name, "` does not apply to ", targetText(target)));
    return nullptr;
  }
  if (!row->isSupported) {
    notYet(attribute.range, base::concat("`@", row->name, "`"));
    return nullptr;
  }
  return row;
}

std::vector<Expr*> Checker::extents(const syn::Expr* expr, bool allowScalar, std::string_view what) {
  std::vector<Expr*> out;
  std::vector<const syn::Expr*> elems{expr};
  if (auto* list = expr->tryAs<syn::ArrayExpr>(); list && list->form == syn::ArrayForm::List && !list->isVec)
    elems.assign(list->elems.begin(), list->elems.end());
  else if (auto* tuple = expr->tryAs<syn::TupleExpr>(); tuple && !tuple->elems.empty())
    elems.assign(tuple->elems.begin(), tuple->elems.end());
  else if (!allowScalar) {
    error("E0332", expr->range, base::concat(what, " is a list such as `[M, N]`"));
    return out;
  }
  for (const syn::Expr* elem : elems) {
    Expr* extent = index(elem, nullptr);
    if (isError(extent))
      return {};
    out.push_back(extent);
  }
  return out;
}

/// A grid of no blocks does nothing; a block without threads is a mistake.
void Checker::checkBlockSizes(const std::vector<Expr*>& sizes) {
  for (const Expr* size : sizes) {
    while (size->kind == ExprKind::Cast)
      size = size->args[0];
    if (size->kind == ExprKind::Int && size->intValue <= 0)
      error("E0712", size->range, "a block has at least one thread along each axis")
          .primary(base::concat(static_cast<long long>(size->intValue), " threads"));
  }
}

void Checker::launchAttribute(const syn::Attribute& attribute) {
  KernelSpec& spec = *function->kernel;
  for (const syn::Arg& arg : attribute.args) {
    const bool isGrid = arg.name.text == "grid", isBlock = arg.name.text == "block";
    if (arg.name.text == "cooperative" || (!arg.name.isPresent() && session.sources.text(arg.range) == "cooperative")) {
      notYet(arg.range, "a cooperative launch");
      continue;
    }
    if (!isGrid && !isBlock) {
      error("E0208", arg.range, "`@launch` takes `grid = …` and `block = …`");
      continue;
    }
    std::vector<Expr*>& target = isGrid ? spec.grid : spec.block;
    target = extents(arg.value, true, isGrid ? "a grid" : "a block");
    if (target.size() > 3) {
      error("E0410", arg.value->range,
            base::concat("a ", isGrid ? "grid" : "block", " has at most 3 axes, this has ", target.size()));
      target.resize(3);
    }
    if (isGrid && !target.empty())
      spec.gridKind = GridKind::Explicit;
    if (isBlock)
      checkBlockSizes(target);
  }
}

void Checker::uncheckedAttribute(const syn::Attribute& attribute, bool isStatement) {
  bool bounds = attribute.args.empty(), races = bounds, init = bounds, overflow = bounds, coalescing = bounds;
  for (const syn::Arg& arg : attribute.args) {
    const std::string_view name = session.sources.text(arg.range);
    if (name == "bounds")
      bounds = true;
    else if (name == "races")
      races = true;
    else if (name == "init")
      init = true;
    else if (name == "overflow")
      overflow = true;
    else if (name == "coalescing")
      coalescing = true;
    else
      error("E0208", arg.range,
            base::concat("`@unchecked` lifts bounds, races, init, overflow or coalescing, not `", name, "`"));
  }
  uncheckedOverflow = uncheckedOverflow || overflow;
  if (isStatement) {
    uncheckedBounds = uncheckedBounds || bounds;
    uncheckedCoalescing = uncheckedCoalescing || coalescing;
    uncheckedRaces = uncheckedRaces || races;
  }
  if (!function->kernel)
    return;
  if (!isStatement) {
    function->kernel->uncheckedBounds |= bounds;
    function->kernel->uncheckedCoalescing |= coalescing;
    function->kernel->uncheckedRaces |= races;
  }
  function->kernel->uncheckedInit |= init;
}

void Checker::functionAttributes(const syn::FunctionItem* item) {
  const syn::Attribute* tile = nullptr;
  for (const syn::Attribute& attribute : item->attributes) {
    if (!attributeRow(attribute, item->isKernel ? kKernel : kFunction))
      continue;
    const std::string_view name = attribute.name.text;
    if (name == "launch")
      launchAttribute(attribute);
    else if (name == "tile")
      tile = &attribute;
    else if (name == "test")
      function->isTest = true;
    else if (name == "bench")
      function->isBench = true;
    else if (name == "unchecked")
      uncheckedAttribute(attribute, false);
    else if (name == "verify_no_bank_conflicts" && function->kernel)
      function->kernel->verifyBanks = attribute.range;
    else if (name == "strict" && function->kernel)
      function->kernel->strict = true;
    else if (name == "fastmath" && function->kernel)
      function->kernel->fastMath = true;
    else if (name == "precision") {
      if (attribute.args.size() != 1 || session.sources.text(attribute.args[0].range) != "tf32")
        error("E0208", attribute.range, "`@precision` takes `tf32`");
      else if (function->kernel)
        function->kernel->allowsTf32 = true;
    } else if (name == "reduce") {
      if (attribute.args.size() == 1 && attribute.args[0].value)
        declareReduce(attribute.args[0].value);
      else
        error("E0208", attribute.range, "`@reduce` takes one operation: `@reduce(add)`");
    }
  }
  if (tile)
    tileAttribute(*tile);
  if (function->kernel && function->kernel->uncheckedBounds)
    uncheckedBounds = true;
  if (function->isTest && !item->params.empty())
    error("E0211", item->name.range, base::concat("the test `", item->name.text, "` must not take parameters"));
}

void Checker::statementAttributes(const syn::Stmt* stmt) {
  for (const syn::Attribute& attribute : stmt->attributes) {
    if (!attributeRow(attribute, kStatement))
      continue;
    if (attribute.name.text == "unchecked")
      uncheckedAttribute(attribute, true);
    if (attribute.name.text == "verify_no_bank_conflicts") {
      if (inKernel())
        verifyBanks = attribute.range;
      else
        error("E0209", attribute.range, "`@verify_no_bank_conflicts` is for code of kernels");
    }
  }
}

void Checker::structAttributes(const syn::Item* item) {
  for (const syn::Attribute& attribute : item->attributes)
    if (attributeRow(attribute, kStruct))
      if (attribute.args.size() != 1 || (session.sources.text(attribute.args[0].range) != "aos" &&
                                         session.sources.text(attribute.args[0].range) != "soa"))
        error("E0208", attribute.range, "`@layout` takes `aos` or `soa`");
}

}  // namespace vortex::lang

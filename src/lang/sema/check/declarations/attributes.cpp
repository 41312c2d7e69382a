// What `@name(…)` before items and statements means.
#include "lang/sema/check/declarations/attributes.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/declarations/signature.h"
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/tiles/tiles.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

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
    {"noinline", kFunction, true},
    {"unchecked", kKernel | kFunction | kStatement, true},
    {"reduce", kKernel, true},
    {"precision", kKernel, true},  // permits, never requires
    {"unroll", kStatement, true},
    {"sequential", kStatement, true},
    {"parallel", kStatement, true},
    {"layout", kStruct, true},
    {"fused", kKernel, true},
    {"schedule", kKernel, false},
    {"pipeline", kKernel | kStatement, true},  // of a kernel: its loops have their own buffers
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

/// null after an error
static const void* attributeRow(BodyState& body, const syn::Attribute& attribute, uint8_t target) {
  const AttributeRow* row = findRow(attribute.name.text);
  if (!row) {
    std::vector<std::string> names;
    for (const AttributeRow& known : kAttributes)
      names.emplace_back(known.name);
    auto builder =
        error(body, "E0207", attribute.range, base::concat("there is no attribute `@", attribute.name.text, "`"));
    diag::suggest(builder, diag::attributeElsewhere(attribute.name.text), attribute.name.text, names, "@");
    return nullptr;
  }
  if ((row->targets & target) == 0) {
    std::vector<std::string> targets;
    for (const uint8_t possible : {kKernel, kFunction, kStruct, kStatement})
      if ((row->targets & possible) != 0)
        targets.emplace_back(targetText(possible));
    error(body, "E0209", attribute.range, base::concat("`@", row->name, "` does not apply to ", targetText(target)))
        .help(base::concat("it stands on ", base::join(targets, " or ")));
    return nullptr;
  }
  if (!row->isSupported) {
    notYet(body, attribute.range, base::concat("`@", row->name, "`"));
    return nullptr;
  }
  return row;
}

/// A grid of no blocks does nothing; a block without threads is a mistake.
static void checkBlockSizes(BodyState& body, const std::vector<Expr*>& sizes) {
  for (const Expr* size : sizes) {
    while (size->kind == ExprKind::Cast)
      size = size->args[0];
    if (size->kind == ExprKind::Int && size->intValue <= 0)
      error(body, "E0712", size->range, "a block has at least one thread along each axis")
          .primary(base::concat(static_cast<long long>(size->intValue), " threads"));
  }
}

static void launchAttribute(BodyState& body, const syn::Attribute& attribute) {
  KernelSpec& spec = *body.function->kernel;
  for (const syn::Arg& arg : attribute.args) {
    const bool isGrid = arg.name.text == "grid", isBlock = arg.name.text == "block";
    if (!arg.name.isPresent() && body.session.sources.text(arg.range) == "cooperative") {
      spec.cooperative = true;
      continue;
    }
    if (!isGrid && !isBlock) {
      error(body, "E0208", arg.range, "`@launch` takes `grid = …`, `block = …` and `cooperative`");
      continue;
    }
    std::vector<Expr*>& target = isGrid ? spec.grid : spec.block;
    target = extents(body, arg.value, true, isGrid ? "a grid" : "a block");
    if (target.size() > 3) {
      error(body, "E0410", arg.value->range,
            base::concat("a ", isGrid ? "grid" : "block", " has at most 3 axes, this has ", target.size()));
      target.resize(3);
    }
    if (isGrid && !target.empty())
      spec.gridKind = GridKind::Explicit;
    if (isBlock)
      checkBlockSizes(body, target);
  }
}

static void uncheckedAttribute(BodyState& body, const syn::Attribute& attribute, bool isStatement) {
  bool bounds = attribute.args.empty(), races = bounds, init = bounds, overflow = bounds, coalescing = bounds;
  for (const syn::Arg& arg : attribute.args) {
    const std::string_view name = body.session.sources.text(arg.range);
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
      error(body, "E0208", arg.range,
            base::concat("`@unchecked` lifts bounds, races, init, overflow or coalescing, not `", name, "`"));
  }
  body.uncheckedOverflow = body.uncheckedOverflow || overflow;
  if (isStatement) {
    body.uncheckedBounds = body.uncheckedBounds || bounds;
    body.uncheckedCoalescing = body.uncheckedCoalescing || coalescing;
    body.uncheckedRaces = body.uncheckedRaces || races;
  }
  if (!body.function->kernel)
    return;
  if (!isStatement) {
    body.function->kernel->uncheckedBounds |= bounds;
    body.function->kernel->uncheckedCoalescing |= coalescing;
    body.function->kernel->uncheckedRaces |= races;
  }
  body.function->kernel->uncheckedInit |= init;
}

static void fusedAttribute(BodyState& body, const syn::Attribute& attribute) {
  for (const syn::Arg& arg : attribute.args) {
    const std::string_view strategy = arg.value ? body.session.sources.text(arg.value->range) : "";
    if (arg.name.text != "strategy" || (strategy != ".auto" && strategy != ".flash_attention"))
      error(body, "E0208", arg.range, "`@fused` takes `strategy = .auto` or `strategy = .flash_attention`");
  }
  if (body.function->kernel)
    body.function->kernel->fused = true;
}

uint8_t pipelineStages(BodyState& body, const syn::Attribute& attribute) {
  constexpr int64_t kMostStages = 16;
  if (attribute.args.size() != 1 || attribute.args[0].name.text != "stages" || !attribute.args[0].value) {
    error(body, "E0208", attribute.range, "`@pipeline` takes `stages = n`");
    return 0;
  }
  const auto stages = constantInt(body, attribute.args[0].value, usize(body), "the number of stages");
  if (stages && *stages >= 1 && *stages <= kMostStages)
    return static_cast<uint8_t>(*stages);
  if (stages)
    error(body, "E0208", attribute.args[0].value->range, base::concat("a pipeline has 1 to ", kMostStages, " stages"));
  return 0;
}

void functionAttributes(BodyState& body, const syn::FunctionItem* item) {
  const syn::Attribute* tile = nullptr;
  for (const syn::Attribute& attribute : item->attributes) {
    if (!attributeRow(body, attribute, item->isKernel ? kKernel : kFunction))
      continue;
    const std::string_view name = attribute.name.text;
    if (name == "launch")
      launchAttribute(body, attribute);
    else if (name == "tile")
      tile = &attribute;
    else if (name == "test")
      body.function->isTest = true;
    else if (name == "bench")
      body.function->isBench = true;
    else if (name == "noinline")
      body.function->staysFunction = true;
    else if (name == "unchecked")
      uncheckedAttribute(body, attribute, !item->isKernel);
    else if (name == "verify_no_bank_conflicts" && body.function->kernel)
      body.function->kernel->verifyBanks = attribute.range;
    else if (name == "strict" && body.function->kernel)
      body.function->kernel->strict = true;
    else if (name == "fused")
      fusedAttribute(body, attribute);
    else if (name == "pipeline")
      pipelineStages(body, attribute);
    else if (name == "fastmath" && body.function->kernel)
      body.function->kernel->fastMath = true;
    else if (name == "precision") {
      if (attribute.args.size() != 1 || body.session.sources.text(attribute.args[0].range) != "tf32")
        error(body, "E0208", attribute.range, "`@precision` takes `tf32`");
      else if (body.function->kernel)
        body.function->kernel->allowsTf32 = true;
    } else if (name == "reduce") {
      if (attribute.args.size() == 1 && attribute.args[0].value)
        declareReduce(body, attribute.args[0].value);
      else
        error(body, "E0208", attribute.range, "`@reduce` takes one operation: `@reduce(add)`");
    }
  }
  if (tile)
    tileAttribute(body, *tile);
  if (body.function->kernel && body.function->kernel->uncheckedBounds)
    body.uncheckedBounds = true;
  if (body.function->isTest && !item->params.empty())
    error(body, "E0211", item->name.range, base::concat("the test `", item->name.text, "` must not take parameters"));
}

void statementAttributes(BodyState& body, const syn::Stmt* stmt) {
  for (const syn::Attribute& attribute : stmt->attributes) {
    if (!attributeRow(body, attribute, kStatement))
      continue;
    if (attribute.name.text == "unchecked")
      uncheckedAttribute(body, attribute, true);
    if (attribute.name.text == "pipeline") {
      const auto* code = stmt->tryAs<syn::ExprStmt>();
      if (!code || !code->expr || !code->expr->is<syn::ForExpr>() || !inKernel(body))
        error(body, "E0209", attribute.range, "`@pipeline` is for the `for` loops of kernels");
    }
    if (attribute.name.text == "verify_no_bank_conflicts") {
      if (inKernel(body))
        body.verifyBanks = attribute.range;
      else
        error(body, "E0209", attribute.range, "`@verify_no_bank_conflicts` is for code of kernels");
    }
  }
}

void structAttributes(BodyState& body, const syn::Item* item) {
  for (const syn::Attribute& attribute : item->attributes)
    if (attributeRow(body, attribute, kStruct))
      if (attribute.args.size() != 1 || (body.session.sources.text(attribute.args[0].range) != "aos" &&
                                         body.session.sources.text(attribute.args[0].range) != "soa"))
        error(body, "E0208", attribute.range, "`@layout` takes `aos` or `soa`");
}

}  // namespace vortex::lang

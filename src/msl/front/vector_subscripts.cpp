#include "msl/front/vector_subscripts.h"

#include "base/text.h"

#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Analysis/CFG.h>
#include <memory>
#include <optional>

namespace vortex::msl::front {

/// How many elements `type` has, a vector or a packed vector of the shim.
static std::optional<int64_t> elementsOf(clang::QualType type) {
  auto* made = llvm::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(type->getAsCXXRecordDecl());
  if (!made || !made->getIdentifier() || (made->getName() != "vec" && made->getName() != "packed_vec") ||
      made->getTemplateArgs().size() != 2 || made->getTemplateArgs()[1].getKind() != clang::TemplateArgument::Integral)
    return std::nullopt;
  return made->getTemplateArgs()[1].getAsIntegral().getExtValue();
}

std::vector<std::pair<clang::SourceLocation, std::string>> wrongSubscripts(clang::FunctionDecl& function) {
  std::vector<std::pair<clang::SourceLocation, std::string>> wrong;
  clang::ASTContext& context = function.getASTContext();
  clang::CFG::BuildOptions options;
  options.PruneTriviallyFalseEdges = true;
  options.setAllAlwaysAdd();
  std::unique_ptr<clang::CFG> graph = clang::CFG::buildCFG(&function, function.getBody(), &context, options);
  if (!graph)
    return wrong;
  std::vector<const clang::CFGBlock*> blocks = {&graph->getEntry()};
  std::vector<bool> isSeen(graph->getNumBlockIDs());
  isSeen[graph->getEntry().getBlockID()] = true;
  while (!blocks.empty()) {
    const clang::CFGBlock* block = blocks.back();
    blocks.pop_back();
    for (const clang::CFGBlock::AdjacentBlock& next : block->succs())
      if (const clang::CFGBlock* to = next.getReachableBlock(); to && !isSeen[to->getBlockID()]) {
        isSeen[to->getBlockID()] = true;
        blocks.push_back(to);
      }
    for (const clang::CFGElement& element : *block) {
      auto statement = element.getAs<clang::CFGStmt>();
      auto* call = statement ? llvm::dyn_cast<clang::CXXOperatorCallExpr>(statement->getStmt()) : nullptr;
      if (!call || call->getOperator() != clang::OO_Subscript)
        continue;
      const std::optional<int64_t> count = elementsOf(call->getArg(0)->getType());
      clang::Expr::EvalResult index;
      if (!count || call->getArg(1)->isValueDependent() || !call->getArg(1)->EvaluateAsInt(index, context))
        continue;
      if (const int64_t at = index.Val.getInt().getExtValue(); at < 0 || at >= *count)
        wrong.emplace_back(call->getArg(1)->getBeginLoc(),
                           base::concat("subscript ", at, " is outside this vector of ", *count, " elements"));
    }
  }
  return wrong;
}

}  // namespace vortex::msl::front

#pragma once

#include "lang/syntax/ast_expr.h"
#include "lang/syntax/ast_item.h"
#include "lang/syntax/ast_node.h"
#include "lang/syntax/ast_type.h"

namespace vortex::lang::syntax {

/// The tree of one file; owns every node. Names point into the SourceManager's text, so it must outlive the Module.
/// The parser refuses source that nests brackets, blocks or types deeper than kMaxNesting or whose trees are higher than kMaxHeight
/// (long operator and method chains), so recursion over the tree is safe with an ordinary stack.
struct Module {
  static constexpr uint32_t kMaxNesting = 256;
  static constexpr uint32_t kMaxHeight = 500;

  FileId file;
  List<Item*> items;
  /// `///` lines at the top of the file that are followed by a blank line.
  List<std::string_view> docLines;
  /// Expr::id of every expression is below this.
  uint32_t exprCount = 0;
  Arena arena;
};

}  // namespace vortex::lang::syntax

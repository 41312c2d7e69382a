#pragma once

#include "lang/syntax/ast.h"
#include "lang/syntax/lexer.h"

#include <string>

namespace vortex::lang::syntax {

/// A statement's tree as one line of prefix notation, for tests and debugging: `a + b * c` is "(+ a (* b c))".
std::string printTree(const Stmt* stmt);
std::string printTree(const Expr* expr);
std::string printTree(const Type* type);
std::string printTree(const Pattern* pattern);

}  // namespace vortex::lang::syntax

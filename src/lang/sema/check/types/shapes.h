// Extents of expressions and types: equality, broadcasting, and what a call or `let` learns of dimension variables.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

DimEqual dimEqual(const BodyState& body, const DimExpr& a, const DimExpr& b);
/// They are equal, or in a kernel equal in every launch in which quotients in them are exact: other launches are refused then.
bool agree(BodyState& body, const DimExpr& a, const DimExpr& b, SourceRange range);
/// Of a tensor whose extents are multiplied: several may be differences less than 0, which count as 0 each, while their product does not.
void requireSigns(BodyState& body, Type tensor, SourceRange range);
/// They agree; in host code they are not known to differ.
bool mayAgree(BodyState& body, const DimExpr& a, const DimExpr& b, SourceRange range);
bool shapesAgree(BodyState& body, Type a, Type b, SourceRange range);  ///< equal rank, and all extents may agree
/// The value of an integer expression as an extent; opaque terms where it is not known.
DimExpr dimOf(BodyState& body, const Expr* expr);
/// The running host program can compute the extent from its variables.
bool isCounted(const BodyState& body, const DimExpr& extent);
DimExpr ownExtent(BodyState& body, const Variable* variable);  ///< a term of its own for the value of a host variable
/// The type of a value that leaves a scope: dimension variables declared since get extents of their own. Host code only.
Type leaveScope(BodyState& body, Type type, size_t firstLocal);
/// Broadcasts the operands to one shape (NumPy rules); false after an error.
bool broadcast(BodyState& body, std::vector<Expr*>& operands, std::string_view what, SourceRange range);
Expr* broadcastTo(BodyState& body, Expr* expr, const std::vector<DimExpr>& shape);
bool broadcastShapes(BodyState& body, const std::vector<std::vector<DimExpr>>& shapes, std::vector<DimExpr>& out,
                     SourceRange range);
bool sameShape(const BodyState& body, Type a, Type b);  ///< ranks equal and no extent known to differ
bool isConstantShape(Type type);
std::string shapeText(const BodyState& body, Type type);
Type withElem(BodyState& body, Type type, Type elem);  ///< scalar or tensor value with another element type
Type valueOf(BodyState& body, Type type);              ///< tensors become tensor values
void learnDims(Type param, Type arg, std::vector<std::optional<DimExpr>>& values);
bool checkDims(BodyState& body, Type param, Type arg, const std::vector<std::optional<DimExpr>>& values,
               const Function& callee, SourceRange argRange, std::string_view paramName);

}  // namespace vortex::lang

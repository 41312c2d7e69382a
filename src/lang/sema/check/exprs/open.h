// Numbers whose type is open: literals, and variables, lists, tuples and ranges that start as some. A literal in hand takes another type at
// once (`adapt`), an integer whose values are known is cast, and a variable notes what a use asks for, so that the body is checked again
// (`learnType`). Tuples and lists do so part by part. What nothing asks for stays i32 or f32.
#pragma once

#include <span>

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

bool isInt(Type type);
bool isFlt(Type type);
/// What an integer made of literals lies between.
std::optional<Interval> literalInterval(BodyState& body, const Expr* expr, uint32_t depth = 0);
bool holds(Type type, const Interval& interval);

/// Opens the plain numbers of a value that is written there, for the variables that `root` (the position of a pattern) declares.
void openNumbers(BodyState& body, SourceRange root, const syn::Expr* written, Type type);
void openPart(BodyState& body, SourceRange root, Type type, Type parts);  ///< `parts`: see BodyState::Open
/// Which numbers a value of such a variable is made of.
std::optional<BodyState::Slot> slotOf(const BodyState& body, const Expr* expr);
void aliasSlot(BodyState& body, const Variable* variable, const Expr* value);  ///< it holds a copy of the value
std::optional<BodyState::Slot> openElements(BodyState& body, const syn::Pattern* pattern, const Expr* over,
                                            const syn::Expr* written);  ///< of what a `for` walks over

/// True: noted, the body will be checked again.
bool learnType(BodyState& body, const Expr* expr, Type to, uint32_t depth = 0);
/// `var best = 0` … `best = k`: the variable gets the type of k.
bool learnFromStore(BodyState& body, const Expr* target, Expr* value);

/// The expression that a block's value is.
Expr* tailOf(Expr* expr);
/// It, or a part of it, may take another type.
bool isOpen(BodyState& body, Expr* expr);
bool canTake(BodyState& body, Expr* expr, Type type);
void adapt(BodyState& body, Expr*& expr, Type type);  ///< gives it a type that it can take
/// The parts of a tuple or array, as expressions.
std::vector<Expr*> partsOf(BodyState& body, Expr* expr);

}  // namespace vortex::lang

// The analyses of a function as written: which variables have a value, what has been moved, what is borrowed.
#pragma once

#include "diag/diagnostic.h"
#include "lang/flow/graph/lower_function.h"

namespace vortex::lang::flow {

/// E0526: uses of variables that were declared without a value where they may have none; E0315: a second value for one of `let`.
void checkAssigned(const Graph& graph, diag::DiagnosticSink& sink);

/// E0512: uses of what may have been moved; E0514: moves of what is borrowed, in a list or outside the closure.
void checkMoves(const Graph& graph, diag::DiagnosticSink& sink);

/// E0521: a view that is written must be of something that may be.
void checkViews(const Graph& graph, diag::DiagnosticSink& sink);

/// E0515…E0520, E0522: accesses that conflict with a borrow that is used later; borrows that outlive what they refer to. Returns
/// which parameters' borrows the result may hold. A borrow lives as long as a variable or temporary that may hold it is used again
/// (as in Rust's NLL; the sets of borrows that values hold are followed along the flow, so a borrow returned on one path only does
/// not last on the others). Adds values to the graph where indices are compared.
Summary checkBorrows(Graph& graph, diag::DiagnosticSink& sink);

/// Does the step do something to its place? A parameter's own loan does not.
bool touchesPlace(const Graph& graph, const Step& step);
/// Does it give the whole place a value?
inline bool fillsPlace(const Graph& graph, const Step& step) {
  return step.kind == StepKind::Store && graph[step.place].isMovePath();
}
/// What a message about the step points at; of the end of a block its brace.
source::SourceRange rangeOf(const Step& step);

}  // namespace vortex::lang::flow

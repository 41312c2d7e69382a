// The analyses of a graph: values (what may have none yet), moves (what may have left its place) and borrows (what must not be
// touched).
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/ownership/flow.h"
#include "lang/sema/ownership/lower.h"

namespace vortex::lang::ownership {

/// E0526: uses of variables that were declared without a value where they may have none; E0315: a second value for one of `let`.
void checkValues(const Graph& graph, diag::DiagnosticSink& sink);

/// E0512: uses of what may have been moved.
void checkMoves(const Graph& graph, diag::DiagnosticSink& sink);

/// E0515…E0520, E0522: accesses that conflict with a borrow that is used later; borrows that outlive what they refer to. Returns
/// which parameters' borrows the result may hold. A borrow lives as long as a variable or temporary that may hold it is used again
/// (as in Rust's NLL; the sets of borrows that values hold are followed along the flow, so a borrow returned on one path only does
/// not last on the others).
Summary checkBorrows(const Graph& graph, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::ownership

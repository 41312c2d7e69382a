// What is known while one function body is typed. One per function instance; the functions of this folder take it by reference.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "lang/sema/check/traits/traits.h"
#include "lang/sema/program.h"

namespace vortex::lang {

class Session;
struct Instance;

struct Interval {
  __int128 low = 0, high = 0;
};

struct BodyState {
  BodyState(Session& session, Instance* instance, Function* function, ItemScope* scope);

  Session& session;
  TypeContext& types;
  Instance* instance;  ///< null for constant expressions
  Function* function;
  ItemScope* items;
  GenericEnv generics;
  Type selfType = nullptr;
  std::vector<const syn::Generics*> boundLists;    ///< where the parameters in `generics` are declared
  std::vector<std::pair<Type, TraitRef>> assumed;  ///< what the `where` clauses of a generic definition say of types

  struct Local {
    std::string_view name;
    Variable* variable = nullptr;
    std::optional<DimExpr> dim;
    SourceRange range;
  };
  std::vector<Local> locals;

  struct Loop {
    bool hasValue = false;  ///< `loop`: break may carry one
    Type result = nullptr;
    Type expected = nullptr;
    bool broken = false;
    std::vector<Expr*> breaks;
    size_t firstLocal = 0;  ///< what is declared inside
  };
  std::vector<Loop> loops;

  struct ReturnTarget {
    Type result = nullptr;  ///< null: a closure whose result is not known yet
    SourceRange declared;
    bool isClosure = false;
    size_t loopDepth = 0;
    size_t firstLocal = 0;  ///< what is declared inside
  };
  std::vector<ReturnTarget> returns;

  std::map<const Variable*, DimExpr> variableDims;  ///< symbolic values of integer variables
  std::set<uint32_t> mutableOpaques;                ///< stand for a `var` at one moment
  std::map<const Variable*, Interval> flexible;     ///< integers that came from literals: adapt while they fit
  std::map<const Variable*, const Expr*> madeOf;    ///< those that are computed from others: these learn, too
  /// The numbers of a declaration whose type is not written: the position of its pattern, and which of their parts.
  struct Slot {
    uint32_t root = 0;
    std::vector<uint32_t> path;
    auto operator<=>(const Slot&) const = default;
  };
  struct Open {
    Type type = nullptr;
    Type parts = nullptr;  ///< like `type`: i32 or f32 where a number is plain, unit where it is not
    SourceRange range;
  };
  std::map<uint32_t, Open> open;          ///< by the position of the pattern
  std::map<const Variable*, Slot> slots;  ///< what variables without a written type hold
  /// What uses ask for. It is noted, and the body is checked again.
  std::map<uint32_t, Type> inferred;
  std::set<Slot> learned;
  bool restart = false;
  /// Accumulators declared as fragments, by the position of the variable's name; found by a product, then checked again.
  struct Fragment {
    std::vector<DimExpr> part, whole;
  };
  std::map<uint32_t, Fragment> fragments;
  std::set<DimVarId> pendingDims;             ///< new in the `let` type whose value is being checked
  std::vector<Expr*>* beforeLet = nullptr;    ///< statements that its written extents need first
  std::set<std::string_view> returnedNames;   ///< names in `return x`: candidates for result storage
  std::set<std::string_view> storedNames;     ///< names that are written by element or lent by `&mut`
  std::set<uint32_t> notReturned, notStored;  ///< where others of these names stand
  bool uncheckedBounds = false, uncheckedOverflow = false;
  /// What the attributes of the statement being checked say; its expressions are marked when they are done.
  bool uncheckedCoalescing = false, uncheckedRaces = false;
  SourceRange verifyBanks;

  Type boundedType = nullptr;                        ///< what the bound being looked at is on
  DimVarId firstTypeExtent = 0, endTypeExtents = 0;  ///< dimensions that types bound to parameters brought
  std::optional<TraitRef> ownTrait;
  bool knowsOwnTrait = false;
  std::vector<const void*> resolving;  ///< struct and alias definitions being resolved
  uint32_t aliasDepth = 0;
  size_t signatureLocals = 0, signatureDims = 0, signatureVariables = 0, signatureChecks = 0;
  bool isStoreTarget = false;            ///< the element being checked is written, not read
  const Variable* assignedTo = nullptr;  ///< that the value being converted is assigned to (a part of)
  bool storesToTensor = false;           ///< the assignment being checked writes a tensor element
};

}  // namespace vortex::lang

// Types one function body: names, types, conversions, shapes. One Checker per function instance; the methods are spread over the
// files of this folder by subject.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "lang/sema/check/session.h"
#include "lang/sema/check/traits.h"

namespace vortex::lang {

struct BuiltinRow;

/// What an upper-case name that is not in scope means in a shape.
enum class DimPolicy : uint8_t {
  Parameter,  ///< a new dimension variable of the function
  Let,        ///< a new dimension variable bound by this `let`
  Result,     ///< an error; scalar parameters may be named
  Known,      ///< an error
  Fresh,      ///< an extent of its own (fields of a struct value)
};

/// Why a value is converted: decides which implicit conversions exist and what the error says.
enum class Site : uint8_t { Let, Assign, Return, Argument, Element, Operand };

struct Interval {
  __int128 low = 0, high = 0;
};

class Checker {
public:
  Checker(Session& session, Instance* instance, Function* function, ItemScope* scope);

  // signature.cpp
  bool declareSignature();
  void checkBody();
  bool tryBody();
  void resetBody();
  bool declareParams(std::vector<SourceRange>& ranges);
  void declareWhere();
  void declareShapeGenerics();
  void declareTypeExtents();
  void declareReduce(const syn::Expr* op);

  // ---- names: names.cpp
  Expr* checkName(const syn::NameExpr* expr, Type expected);
  Expr* checkMember(const syn::MemberExpr* expr, Type expected);
  Expr* checkMemberOfValue(Expr* base, const syn::Name& name, SourceRange range);
  Expr* adaptLiteral(Expr* literal, Type expected);  ///< an untyped constant in its context
  Expr* constUse(const Symbol& symbol, SourceRange range, Type expected);
  Expr* genericConst(const GenericValue& value, SourceRange range);
  Expr* enumVariant(Type type, const syn::Name& name, SourceRange range);
  bool checkPublic(const Symbol& symbol, const syn::Name& name);
  void unknownInModule(const Symbol& module, const syn::Name& name);
  Expr* associatedConst(Type type, const syn::Name& name, SourceRange range);
  Expr* fieldOfElements(Expr* tensor, size_t field, SourceRange range);
  Expr* structDim(Expr* base, const syn::Name& name, SourceRange range);
  Expr* extentOf(Expr* tensor, size_t dim, SourceRange range);
  Expr* checkDotName(const syn::DotNameExpr* expr, Type expected);
  /// The module, type or item a path of names leads to; null if the first name is a value or unknown (nothing reported).
  const Symbol* findSymbol(const syn::Expr* expr);
  Type
  typeNamed(const syn::Expr* expr);  ///< the type an expression such as `Color`, `T`, `mod.S::<f32>` names, or null
  Type aliasType(const syn::TypeAliasItem* item, ItemScope* scope, syn::List<syn::GenericArg> args, SourceRange range,
                 DimPolicy policy);
  void unknownName(const syn::Name& name);
  std::vector<std::string> visibleNames() const;
  Expr* position(const syn::MemberExpr* expr);  ///< thread.*, block.*, grid.*, warp.*; null if it is none of these

  // ---- types: resolve_type.cpp, resolve_dim.cpp, structs.cpp
  Type resolveType(const syn::Type* type, DimPolicy policy);
  std::vector<DimExpr> resolveShape(const syn::GenericArg& arg, DimPolicy policy, bool& ok);
  std::optional<DimExpr> resolveDim(const syn::Expr* expr, DimPolicy policy);
  std::optional<DimExpr> dimNamed(const syn::Name& name, DimPolicy policy);
  Type resolveNamed(const syn::NamedType* type, DimPolicy policy);
  bool checkElement(Type elem, SourceRange range);
  Type resolveTensor(const syn::NamedType* type, DimPolicy policy);
  bool checkSize(Type type, SourceRange range);
  bool enterDefinition(const void* definition, const syn::Name& name, SourceRange range);
  Type resolveSpaced(const syn::SpacedType* type, DimPolicy policy);
  std::optional<Space> spaceNamed(const syn::Name& name);
  /// Fields of the instance typed in this function's dimension variables.
  Type structType(const StructInstance* instance, DimPolicy policy);
  bool bindExplicitGenerics(GenericEnv& env, size_t first, syn::List<syn::GenericArg> args, SourceRange range,
                            DimPolicy policy = DimPolicy::Known);
  GenericEnv genericEnv(const syn::Generics& params, GenericEnv outer = {});
  std::optional<GenericValue> genericArg(const syn::GenericArg& arg, const syn::GenericParam& param,
                                         DimPolicy policy = DimPolicy::Known);
  Expr* checkStruct(const syn::StructExpr* expr, Type expected);
  bool checkFieldDims(const syn::StructItem& item, const std::vector<Type>& declared, const std::vector<Expr*>& values);
  bool shareExtents(Expr* assign);
  bool placeFields(const syn::StructExpr* expr, const syn::StructItem* item, std::vector<Expr*>& values,
                   GenericEnv& env, ItemScope* scope);

  // ---- generics: generics.cpp
  /// Learns generic values from an argument's type.
  void infer(const syn::Type* pattern, Type type, GenericEnv& env, ItemScope* scope);
  /// E0307 at `use` for each bound that the arguments do not satisfy; `self` is what `Self` means there.
  bool checkBounds(const syn::Generics& generics, const GenericEnv& env, SourceRange use, ItemScope* scope = nullptr,
                   Type self = nullptr);
  std::optional<GenericValue> conditionSubject(const syn::Type* subject, const syn::Generics& params,
                                               const GenericEnv& env, ItemScope* scope, Type self);
  void assume(const syn::Generics& generics);
  bool assumes(Type type, const TraitRef& trait);
  bool checkBoundsQuietly(const syn::Generics& generics, const GenericEnv& env, ItemScope* scope);
  bool inferThroughAlias(const syn::NamedType* named, Type type, GenericEnv& env, ItemScope* scope);
  GenericEnv representative(const syn::Generics& generics, GenericEnv outer, ItemScope* scope);

  // ---- traits: traits.cpp
  std::optional<TraitRef> traitNamed(const syn::Type* bound, ItemScope* scope, bool report);
  std::optional<TraitRef> findTrait(const syn::Type* bound, ItemScope* scope, bool report);
  bool resolveTraitArgs(TraitRef& trait, const syn::NamedType* named);
  void withSupertraits(const TraitRef& trait, TraitSet& builtins, std::vector<TraitRef>& traits, Type self);
  void addBuiltins(const TraitRef& trait, TraitSet& builtins, std::vector<const syn::TraitItem*>& seen);
  bool isMarkerOf(const TraitRef& trait, const GenericValue& space);
  bool hasTrait(const GenericValue& value, const TraitRef& trait);
  bool implements(Type type, const TraitRef& trait);
  std::vector<TraitRef> listedTraits(Type type, const syn::TraitItem* trait);
  bool isCopy(Type type) const;

  // ---- which impl: impl_match.cpp
  struct FoundImpl {
    const ImplBlock* impl = nullptr;
    GenericEnv env;
    TraitRef trait;
  };
  std::optional<FoundImpl> findImpl(Type type, const TraitRef& trait);
  std::vector<FoundImpl> findImpls(Type type, const TraitRef& trait);
  void inferTraitArgs(const ImplBlock& impl, const TraitRef& trait, GenericEnv& env);
  bool matchesImpl(const ImplBlock& impl, Type type, const TraitRef* wanted, GenericEnv& env, bool mayBeOpen = false);
  bool mentionsUnbound(const syn::Type* type, const GenericEnv& env) const;
  bool mayMatch(const ImplBlock& impl, Type type) const;

  // ---- associated types: associated.cpp
  bool declaresType(const TraitRef& trait, std::string_view name);
  /// `T.Item`; an error type after an error (reported).
  const TraitRef* ownTrait();
  Type associatedType(Type self, const syn::Name& name, SourceRange use);
  struct AssociatedCandidate {
    TraitRef trait;  ///< no item: an impl of the type's own
    const syn::TypeAliasItem* declared = nullptr;
    Type type = nullptr;
  };
  std::vector<AssociatedCandidate> associatedCandidates(Type self, std::string_view name);
  void addAssociatedOfImpls(Type self, std::string_view name, std::vector<AssociatedCandidate>& out);
  Type associatedIn(const TraitRef& trait, Type self, std::string_view name);
  Type associatedByBounds(std::string_view param, Type self, std::string_view name);
  Type associatedStandIn(const TraitRef& trait, Type self, const syn::TypeAliasItem* declared);
  Type aliasedType(const syn::TypeAliasItem* alias, ItemScope* scope, const GenericEnv& env, Type self,
                   const syn::ImplItem* impl = nullptr);
  bool hasFixed(Type self, const TraitRef& trait) { return !fixedMismatch(self, trait); }
  /// What an associated type is that the trait reference says to be another; null if all are as it says.
  Type fixedMismatch(Type self, const TraitRef& trait);
  Type pathType(const syn::NamedType* type, DimPolicy policy, bool& isPath);
  void checkAssociatedTypes(const ImplBlock& impl, const TraitRef& trait, Type self);
  void checkAssociatedBounds(const TraitRef& trait, const syn::TypeAliasItem* declared, Type type, Type self,
                             SourceRange use);

  // ---- types with the operators of a field: fields.cpp
  bool isField(Type type);
  Expr* fieldCall(Type field, std::string_view function, std::vector<Expr*> args, SourceRange range);
  Expr* fieldBinary(BinaryOp op, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange);
  Expr* repeatedPlace(Expr* place, std::vector<Expr*>& before);
  Expr* fieldAssign(const syn::AssignExpr* expr, BinaryOp op, Expr* target, Expr* value);

  // ---- bounds: bounds.cpp
  std::optional<TraitRef> boundTrait(const syn::Type* bound, const GenericEnv& env, ItemScope* scope, Type self,
                                     Type of, bool report);
  std::string describeBound(const syn::Type* bound, const TraitRef& trait) const;
  /// The generic parameter that a value or element of the type stands for; null if none.
  static const BoundParam* paramOf(Type type);
  static const BoundParam* paramOf(const GenericValue& value);
  static std::string onlyText(const BoundParam& param);
  static std::string boundWith(const BoundParam& param, std::string_view bound);
  /// In a generic definition: do the bounds of the type's parameter allow the operation? True for every other type; reports E0350.
  bool grants(Type type, std::initializer_list<BuiltinTrait> anyOf, SourceRange use, std::string_view operation);
  /// The same for the memory space of a tensor.
  bool spaceGrants(Type type, BuiltinTrait trait, SourceRange use, std::string_view operation);
  void missingBound(const BoundParam& param, std::string_view bound, SourceRange use, std::string_view operation);

  // ---- memory spaces: spaces.cpp
  bool checkResultSpace(Type type, SourceRange range);
  bool checkHostSpace(Type type, SourceRange range);
  bool checkKernelParamSpace(Type type, SourceRange range);
  bool checkFieldSpace(Type type, const syn::Field& field, const syn::Name& owner);

  // ---- generic definitions: definitions.cpp
  void addBuiltinBounds(BoundParam& param, syn::List<syn::Type*> bounds, ItemScope* scope);
  void addTraitBounds(Type type, syn::List<syn::Type*> bounds, ItemScope* scope);
  void addSpaceBounds(const GenericValue& value, syn::List<syn::Type*> bounds, ItemScope* scope);
  void addPathBounds(syn::List<syn::WherePredicate> where, GenericEnv& env, ItemScope* scope);
  Type standIn(const BoundParam& param);
  GenericEnv standIns(const syn::Generics& params, GenericEnv outer, ItemScope* scope,
                      const syn::FunctionItem* function, syn::List<syn::WherePredicate> more = {});
  Type standInSelf(const TraitRef& trait);

  // ---- declarations of traits and impls: impls.cpp
  void checkMemberNames(syn::List<syn::Item*> members);
  bool isFirstOf(const std::vector<TraitRef>& traits, const syn::TraitItem* item) const;
  void checkTrait(const syn::TraitItem* item, ItemScope* scope);
  void checkImpl(const ImplBlock& impl);
  void checkStructTraits(const syn::StructItem* item, ItemScope* scope);
  Type implSelf(const ImplBlock& impl);
  void checkSupertraits(const TraitRef& trait, Type self, SourceRange range);
  void checkImplMembers(const ImplBlock& impl, const TraitRef& trait, Type self);
  void compareConstants(const syn::ConstItem* mine, const syn::ConstItem* declared, const TraitRef& trait);
  void compareFunctions(const ImplBlock& impl, const syn::FunctionItem* mine, const TraitRef& trait,
                        const syn::FunctionItem* declared, Type self);
  void checkOverlap(const ImplBlock& impl, const TraitRef& trait, Type self);
  void checkInherentTwice(const ImplBlock& impl, Type self);

  // ---- expressions: expr.cpp, literals.cpp, operators.cpp, index.cpp
  Expr* check(const syn::Expr* expr, Type expected = nullptr);
  /// check, then dereferenced: what operators and most built-ins want.
  Expr* value(const syn::Expr* expr, Type expected = nullptr);
  Expr* deref(Expr* expr);
  Expr* checkInt(const syn::IntExpr* expr, Type expected, bool negative);
  Expr* checkFloat(const syn::FloatExpr* expr, Type expected, bool negative);
  Expr* checkArray(const syn::ArrayExpr* expr, Type expected);
  Expr* checkRepeat(const syn::ArrayExpr* expr, Type expected);
  Expr* checkProgression(const syn::ArrayExpr* expr, Type expected);
  Expr* checkFloatProgression(const syn::ArrayExpr* expr, Type elemType, const std::vector<Expr*>& literals);
  Expr* checkString(const syn::StringExpr* expr);
  Expr* checkTupleMember(const syn::TupleMemberExpr* expr);
  Expr* rangeOf(Expr* begin, Expr* end, bool endIsLength, SourceRange range);
  Expr* misplaced(SourceRange range, std::string_view what);
  void literalTooLarge(SourceRange range, Type type, bool negative = false);
  void hostTensorArithmetic(SourceRange range);
  Expr* checkTuple(const syn::TupleExpr* expr, Type expected);
  Expr* checkUnary(const syn::UnaryExpr* expr, Type expected);
  Expr* checkBinary(const syn::BinaryExpr* expr, Type expected);
  Expr* binary(BinaryOp op, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange);
  void badOperands(BinaryOp op, const Expr* lhs, const Expr* rhs, SourceRange opRange);
  Expr* matmul(Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange, Type expected);
  Expr* checkRef(const syn::RefExpr* expr, Type expected);
  Expr* checkCast(const syn::CastExpr* expr);
  Expr* checkedEnum(Expr* number, Type to, SourceRange range);
  Expr* checkRange(const syn::RangeExpr* expr, Type expected);
  Expr* checkIndex(const syn::IndexExpr* expr);
  Expr* checkTensorIndex(const syn::IndexExpr* expr, Expr* base);
  Expr* checkVecIndex(const syn::IndexExpr* expr, Expr* base);
  Expr* index(const syn::Expr* expr, const DimExpr* extent);  ///< any integer, as usize
  Expr* asIndex(Expr* position, const DimExpr* extent);
  bool sliceDim(const syn::Expr* expr, const DimExpr* extent, SliceDim& out, DimExpr& length);
  bool mentionsMutable(const DimExpr& dim) const;
  bool isUntyped(const syn::Expr* expr);  ///< a number (or arithmetic on numbers) without a type of its own
  bool isUntypedFloat(const syn::Expr* expr);
  bool isUntypedList(const syn::Expr* expr);  ///< a list or progression of such numbers

  // ---- conversions and shapes: convert.cpp, shapes.cpp
  Expr* convert(Expr* expr, Type to, Site site, SourceRange because = {}, std::string_view becauseText = {});
  Expr* convertTensor(Expr* expr, Type from, Type to, Site site, SourceRange because = {},
                      std::string_view becauseText = {});
  Expr* mismatch(Expr* expr, Type to, SourceRange because, std::string_view becauseText);
  std::string spaceText(Type type) const;
  /// A product of such elements may be summed up in a wider type, which holds all of their values.
  static bool mayAccumulateIn(Type elem, Type sum);
  Expr* cast(Expr* expr, Type to);  ///< elementwise, no checks; the same expression when nothing changes
  /// Makes two numeric operands one scalar type; false after an error.
  bool unify(Expr*& lhs, Expr*& rhs, std::string_view what, SourceRange range);
  std::optional<Interval> literalInterval(const Expr* expr, uint32_t depth = 0);
  bool learnType(Expr* expr, Type to, uint32_t depth = 0);  ///< true: noted, the body will be checked again
  /// `var best = 0` … `best = k`: the variable gets the type of k.
  bool learnFromStore(Expr* target, const Expr* value);
  DimEqual dimEqual(const DimExpr& a, const DimExpr& b) const;
  /// The value of an integer expression as an extent; opaque terms where it is not known.
  DimExpr dimOf(const Expr* expr);
  /// The running host program can compute the extent from its variables.
  bool isCounted(const DimExpr& extent) const;
  DimExpr ownExtent(const Variable* variable);  ///< a term of its own for the value of a host variable
  /// The type of a value that leaves a scope: dimension variables declared since get extents of their own. Host code only.
  Type leaveScope(Type type, size_t firstLocal);
  /// Broadcasts the operands to one shape (NumPy rules); false after an error.
  bool broadcast(std::vector<Expr*>& operands, std::string_view what, SourceRange range);
  Expr* broadcastTo(Expr* expr, const std::vector<DimExpr>& shape);
  bool broadcastShapes(const std::vector<std::vector<DimExpr>>& shapes, std::vector<DimExpr>& out);
  bool sameShape(Type a, Type b) const;  ///< ranks equal and no extent known to differ
  std::string shapeText(Type type) const;
  Type substitute(Type type, const std::vector<std::optional<DimExpr>>& values);
  Type withElem(Type type, Type elem);  ///< scalar or tensor value with another element type
  Type valueOf(Type type);              ///< tensors become tensor values
  void learnDims(Type param, Type arg, std::vector<std::optional<DimExpr>>& values);
  bool checkDims(Type param, Type arg, const std::vector<std::optional<DimExpr>>& values, const Function& callee,
                 SourceRange argRange, std::string_view paramName);

  // ---- statements: control.cpp, statements.cpp, match.cpp
  Expr* checkBlock(const syn::BlockExpr* block, Type expected);
  Expr* checkIf(const syn::IfExpr* expr, Type expected);
  bool checkBranchCount(size_t count, SourceRange range);
  Expr* checkWhile(const syn::WhileExpr* expr);
  Expr* checkLoop(const syn::LoopExpr* expr, Type expected);
  Expr* checkFor(const syn::ForExpr* expr);
  Expr* checkBreak(const syn::BreakExpr* expr);
  Expr* checkContinue(const syn::ContinueExpr* expr);
  Expr* checkReturn(const syn::ReturnExpr* expr);
  Expr* checkMatch(const syn::MatchExpr* expr, Type expected);
  Expr* checkClosure(const syn::ClosureExpr* expr, Type expected);
  Expr* condition(const syn::Expr* expr);
  Expr* returned(const syn::Expr* value, SourceRange range);
  Expr* convertReturn(Expr* value, Type result, SourceRange range);
  void checkStmt(const syn::Stmt* stmt, std::vector<Expr*>& out);
  void checkLet(const syn::LetStmt* stmt, std::vector<Expr*>& out);
  void checkDeclared(const syn::LetStmt* stmt, std::vector<Expr*>& out);
  void checkTail(const syn::ExprStmt* stmt, Type expected, std::vector<Expr*>& out);
  Type letType(const syn::LetStmt* stmt, Type declared, std::string_view name, bool& isResult);
  void checkOnChipShape(const syn::LetStmt* stmt, Type declared);
  Type bindLetDims(Type declared, Type actual);
  void markDeclared(Expr& let) const;
  bool isStorage(Type type) const;
  void finishLet(const syn::LetStmt* stmt, Type type, Expr* init, bool isResult, std::vector<Expr*>& out);
  void bindNothing(const syn::Pattern* pattern);
  Expr* storeConvert(Expr* value, Type to, SourceRange because, std::string_view becauseText);
  Expr* compoundValue(const syn::AssignExpr* expr, Expr*& target, Expr* value);
  static const Variable* assignedRoot(const Expr* place);
  Expr* checkAssign(const syn::AssignExpr* expr);
  bool checkWritable(Expr* place, SourceRange range, std::string_view what);
  /// Binds the names of an irrefutable pattern to a value.
  void bindPattern(const syn::Pattern* pattern, Expr* value, bool isVar, std::vector<Expr*>& out);
  void noteLiterals(const syn::Pattern* pattern, const syn::Expr* written, const Expr& value);
  /// Condition under which the pattern matches (null: always) and the bindings it makes.
  Expr* patternTest(const syn::Pattern* pattern, Expr* subject, std::vector<Expr*>& bindings);
  Type join(Type a, Type b);  ///< type of two branches; null if they differ
  Type joinBranches(std::vector<Expr**>& branches, Type expected, SourceRange range);
  Expr* tailOf(Expr* expr) const;
  bool isAdaptable(const Expr* expr) const;  ///< a number that took its default type
  bool canAdapt(const Expr* expr, Type type) const;
  void adaptTail(Expr* expr, Type type);
  Expr* iterable(const syn::Expr* expr, Type elem);
  void learnLoopVariable(Variable* variable, const Expr* over, const syn::Expr* written);
  bool learnElement(const Variable* variable, Type to);
  bool learnWalked(const Variable* variable, Type to);
  bool isLearnable(const syn::Expr* written);
  Expr* forByIndex(Expr* loop);
  Expr* arraySlice(const syn::IndexExpr* expr, Expr* base);
  void letOfList(const syn::LetStmt* stmt, Type declared, std::vector<Expr*>& out);
  bool listElements(const syn::Expr* list, const std::vector<DimExpr>& shape, size_t depth, Type elem,
                    std::vector<Expr*>& values);
  Variable* loopVariable(const syn::Pattern* pattern, Type type, std::vector<Expr*>& bindings);
  Expr* literalTest(const syn::Expr* literal, Expr* subject);
  Expr* conjunction(Expr* a, Expr* b);
  Expr* guardedTest(Expr* test, const std::vector<Expr*>& bindings, Expr* guard);
  bool coversAll(Type type, const std::set<long long>& values) const;
  void reportUncovered(const syn::MatchExpr* expr, Type type, const std::set<long long>& values);

  // ---- calls: calls.cpp, methods.cpp, launch.cpp
  Expr* checkCall(const syn::CallExpr* call, Type expected);
  struct FunctionCall {
    const syn::FunctionItem* item = nullptr;
    ItemScope* scope = nullptr;
    Type selfType = nullptr;
    Expr* receiver = nullptr;  ///< a method's, already checked
    syn::Name name;
    syn::List<syn::GenericArg> explicitGenerics;
    GenericEnv implEnv;
    const syn::ImplItem* impl = nullptr;  ///< that the function stands in
    std::optional<TraitRef> trait;        ///< open: its arguments follow from the call's, and the type must have it
    const LaunchSpec* launch = nullptr;
  };
  Expr* callFunction(FunctionCall& target, const syn::CallExpr* call, Type expected);
  bool mayCall(const syn::FunctionItem* item, SourceRange range, bool hasLaunch);
  bool checkArgs(FunctionCall& target, const std::vector<const syn::Expr*>& placed, GenericEnv& env, Type expected,
                 std::vector<Expr*>& args);
  Type hintFor(const syn::Type* written, const GenericEnv& env, const FunctionCall& target);
  bool checkOpenTrait(const FunctionCall& target, const GenericEnv& env, SourceRange range);
  bool completeGenerics(const FunctionCall& target, GenericEnv& env, const syn::CallExpr* call);
  void placeTensors(Instance& request, const std::vector<Expr*>& args);
  Expr* finishCall(const Function& callee, const FunctionCall& target, std::vector<Expr*>& args, SourceRange range);
  Expr* convertArgument(Expr* arg, const Variable& param, Type type, const std::vector<std::optional<DimExpr>>& dims,
                        const Function& callee);
  Expr* adjustReceiver(Expr* receiver, Type type, SourceRange range);
  Expr* failedCall(const syn::CallExpr* call);
  Expr* callOfGenericStruct(const syn::CallExpr* call, const syn::MemberExpr* callee, const Symbol& symbol,
                            Type expected);
  Expr* callSymbol(const Symbol& symbol, const syn::CallExpr* call, const syn::Name& name, bool hasGenerics,
                   syn::List<syn::GenericArg> generics, Type expected, const LaunchSpec* launch = nullptr);
  Expr* callMember(const syn::CallExpr* call, const syn::MemberExpr* callee, Type expected);
  Expr* callMethod(const syn::CallExpr* call, const syn::MemberExpr* callee, Expr* receiver, Type expected);
  Expr* callAssociated(const syn::CallExpr* call, const syn::MemberExpr* callee, Type type, Type expected);
  Expr* callLaunched(const syn::CallExpr* call, const syn::CallExpr* launch, const Symbol& symbol, Type expected);
  Expr* callClosure(const syn::CallExpr* call, Expr* callee);
  Expr* callOfTrait(const syn::CallExpr* call, const syn::MemberExpr* callee, const Symbol& symbol, Type expected);
  /// A function or constant of a type: in an impl of its own, of a trait, or the trait's default.
  struct Member {
    const syn::Item* item = nullptr;
    ItemScope* scope = nullptr;
    GenericEnv env;
    std::optional<TraitRef> trait;        ///< none: a member of the type's own
    const syn::ImplItem* impl = nullptr;  ///< none: the trait's default, or what a bound promises
  };
  /// All that the name may mean; those of one trait with several arguments are told apart by how they are called.
  std::vector<Member> findMembers(Type type, std::string_view name, syn::ItemKind kind);
  std::vector<Member> traitMembers(Type type, const TraitRef& trait, std::string_view name, syn::ItemKind kind);
  /// The one that is meant; none if there is none, or after an error (`isAmbiguous`: reported as E0357 at `use`).
  std::optional<Member> findMember(Type type, std::string_view name, syn::ItemKind kind, SourceRange use,
                                   bool& isAmbiguous);
  void reportAmbiguous(Type type, const std::vector<Member>& found, std::string_view name, syn::ItemKind kind,
                       SourceRange use);
  std::optional<Member> selectMember(std::vector<Member> found, Type self, const syn::CallExpr* call, bool hasReceiver,
                                     const syn::Name& name, Type expected);
  std::optional<int> fitOf(const Member& candidate, Type self, const syn::CallExpr* call,
                           const std::vector<Expr*>& args, bool hasReceiver, Type expected);
  Expr* callMemberFound(Member member, Type self, const syn::CallExpr* call, const syn::MemberExpr* callee,
                        Expr* receiver, Type expected);
  Expr* callValues(Member member, Type self, std::vector<Expr*> args, SourceRange range);
  void unknownMember(Type type, const syn::Name& name, std::string_view what);
  Expr* standInConst(Type type, SourceRange range);
  Type canonicalSelf(Type type);
  Type withCanonicalExtents(Type type, size_t& next);
  Type selfParameter();
  Type withOwnDims(Type type);
  std::vector<Expr*> extents(const syn::Expr* expr, bool allowScalar,
                             std::string_view what);  ///< `[a, b]` or `a` as usize values
  /// Arguments by parameter position from positional and named ones; false after an error.
  bool placeArgs(const syn::CallExpr* call, const std::vector<std::string_view>& params, size_t first, size_t required,
                 std::vector<const syn::Expr*>& placed, std::string_view callee, bool variadic = false,
                 SourceRange declared = {});

  // ---- built-ins: builtin/
  Expr* callBuiltin(const BuiltinRow& row, const syn::CallExpr* call, const syn::Name& name, Expr* receiver,
                    syn::List<syn::GenericArg> generics, Type expected);

  // ---- attributes.cpp
  void functionAttributes(const syn::FunctionItem* item);
  void statementAttributes(const syn::Stmt* stmt);
  void markAccesses(std::vector<Expr*>& statement, size_t first);
  void structAttributes(const syn::Item* item);
  const void* attributeRow(const syn::Attribute& attribute, uint8_t target);  ///< null after an error
  void launchAttribute(const syn::Attribute& attribute);
  void checkBlockSizes(const std::vector<Expr*>& sizes);
  std::string castText(const Expr* expr, Type to, std::string_view within) const;
  void uncheckedAttribute(const syn::Attribute& attribute, bool isStatement);

  // ---- tile code: tiles.cpp
  void tileAttribute(const syn::Attribute& attribute);
  Type tiledOutput(SourceRange range);
  std::vector<Expr*> tileOffsets();
  Expr* returnedTile(Expr* value, Type result, SourceRange because);
  bool adoptFragment(const Expr* accumulator, const Expr* product);
  Type wholeOfFragment(Type declared, const syn::Name& name) const;
  bool isStageable(const Expr* view, std::string_view what);
  bool mayStageInto(const Expr* target, const Expr* view, SourceRange range);

  // ---- constants: consts.cpp, fold.cpp
  /// Checks and evaluates; null after an error. The result is a literal (see ConstItemValue).
  Expr* constant(const syn::Expr* expr, Type expected, std::string_view what);
  static constexpr std::string_view kProgressionElement =
      "an element of a progression";  ///< a `what` with a help of its own
  std::optional<__int128> constantInt(const syn::Expr* expr, Type expected, std::string_view what);
  /// Reduces a typed expression to a literal; null if it is not constant (nothing reported unless overflow).
  Expr* fold(Expr* expr, bool& reported);
  Expr* clone(const Expr* expr, SourceRange range);

  // ---- small things: checker.cpp
  diag::DiagnosticBuilder error(std::string_view id, SourceRange range, std::string message);
  Expr* make(ExprKind kind, Type type, SourceRange range) {
    Expr* out = session.program.newExpr(kind, type, range);
    out->mayWrap = uncheckedOverflow;
    return out;
  }
  Expr* make(ExprKind kind, Type type, SourceRange range, std::vector<Expr*> args);
  Expr* makeBuiltin(Builtin builtin, Type type, SourceRange range, std::vector<Expr*> args,
                    std::vector<int64_t> ints = {});
  Expr* makeInt(__int128 value, Type type, SourceRange range);
  Expr* makeVar(Variable* variable, SourceRange range);
  Expr* makeDim(const DimExpr& dim, SourceRange range);
  Expr* errorExpr(SourceRange range) { return make(ExprKind::Unit, session.types.error(), range); }
  Expr* unitExpr(SourceRange range) { return make(ExprKind::Unit, session.types.unit(), range); }
  bool notYet(SourceRange range, std::string_view what);
  std::string text(Type type) const { return lang::text(type, function->dimNames()); }
  std::string text(const DimExpr& dim) const { return dim.text(function->dimNames()); }
  Variable* newVariable(std::string_view name, Type type, SourceRange range, bool isVar);
  void declareLocal(Variable* variable);
  /// A variable that the user cannot name, holding `value`; adds the Let to `out`.
  Expr* temporary(Expr* value, std::vector<Expr*>& out);
  Type usize() { return session.types.scalar(Scalar::Usize); }
  bool inKernel() const { return instance && instance->inKernel; }
  static bool isError(Type type) { return type->kind == TypeKind::Error; }
  static bool isError(const Expr* expr) { return expr->type->kind == TypeKind::Error; }

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
  const Local* findLocal(std::string_view name) const;

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
  /// Variables whose type is a default (`var n = 0`, `var v = vec![]`). When a use needs another type, it is noted in `inferred` and
  /// the body is checked again.
  std::set<const Variable*> defaulted;
  std::map<const Variable*, const Expr*> walked;  ///< loop variables: what they walk over, whose elements may adapt
  std::map<uint32_t, Type> inferred;              ///< by the position of the variable's name
  /// Totals of `fold` that start as a plain number, by the position of the name: is the number written with a fraction?
  std::map<uint32_t, bool> totals;
  bool restart = false;
  /// Accumulators declared as fragments, by the position of the variable's name; found by a product, then checked again.
  struct Fragment {
    std::vector<DimExpr> part, whole;
  };
  std::map<uint32_t, Fragment> fragments;
  std::set<DimVarId> pendingDims;            ///< new in the `let` type whose value is being checked
  std::vector<Expr*>* beforeLet = nullptr;   ///< statements that its written extents need first
  std::set<std::string_view> returnedNames;  ///< names in `return x`: candidates for result storage
  bool uncheckedBounds = false, uncheckedOverflow = false;
  /// What the attributes of the statement being checked say; its expressions are marked when they are done.
  bool uncheckedCoalescing = false, uncheckedRaces = false;
  SourceRange verifyBanks;

private:
  Type boundedType_ = nullptr;                         ///< what the bound being looked at is on
  DimVarId firstTypeExtent_ = 0, endTypeExtents_ = 0;  ///< dimensions that types bound to parameters brought
  std::optional<TraitRef> ownTrait_;
  bool knowsOwnTrait_ = false;
  std::vector<const void*> resolving_;  ///< struct and alias definitions being resolved
  uint32_t aliasDepth_ = 0;
  size_t signatureLocals_ = 0, signatureDims_ = 0, signatureVariables_ = 0;
  bool isStoreTarget_ = false;            ///< the element being checked is written, not read
  const Variable* assignedTo_ = nullptr;  ///< that the value being converted is assigned to (a part of)
  bool storesToTensor_ = false;           ///< the assignment being checked writes a tensor element
};

std::string_view operatorText(BinaryOp op);

// The built-in table (builtin/table.cpp).
bool isBuiltinName(std::string_view name);
bool isBuiltinMethod(std::string_view name);
void addBuiltinNames(std::vector<std::string>& names);

/// Scope of local names; restores on destruction.
class LocalScope {
public:
  explicit LocalScope(Checker& checker) : checker_(checker), count_(checker.locals.size()), items_(checker.items) {}
  ~LocalScope() {
    checker_.locals.resize(count_);
    checker_.items = items_;
  }
  LocalScope(const LocalScope&) = delete;
  LocalScope& operator=(const LocalScope&) = delete;

private:
  Checker& checker_;
  size_t count_;
  ItemScope* items_;
};

}  // namespace vortex::lang

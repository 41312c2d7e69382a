// What all checkers of one analysis share: modules, struct and function instances, the queue of bodies.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "lang/sema/analyze.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/traits/traits.h"

namespace vortex::lang {

struct BodyState;

/// Where the argument of a tensor parameter without a written space lives; only `fn`s called in kernels have these.
struct Placement {
  bool isSet = false;
  Space space = Space::Global;
  SharedLayout layout = SharedLayout::RowMajor;
  bool isValue = false;
  auto operator<=>(const Placement&) const = default;
};

/// One function with its generic arguments chosen, in host or kernel code.
struct Instance {
  const syn::FunctionItem* item = nullptr;
  ItemScope* scope = nullptr;
  Type selfType = nullptr;
  GenericEnv generics;
  bool inKernel = false;
  /// Its generic parameters stand for themselves (definitions.cpp). Only its signature is made, and never stays.
  bool isDefinition = false;
  const syn::ImplItem* impl = nullptr;  ///< that it stands in
  bool isRepresentative = false;        ///< arguments chosen by `vortex check`: errors name them
  std::vector<Placement> placements;
  Instance* parent = nullptr;  ///< who first asked for it
  SourceRange callSite;
  uint32_t depth = 0;
  Function* function = nullptr;
  bool signatureOk = false;
  std::unique_ptr<BodyState> body;
};

/// One struct or enum with its generic arguments chosen.
struct StructInstance {
  const syn::Item* item = nullptr;
  ItemScope* scope = nullptr;
  GenericEnv generics;
  StructDecl* decl = nullptr;
  Type canonical = nullptr;  ///< with extents of its own: what methods take for `Self`
};

/// A compile-time value: the typed expression it reduces to (Int, Float, String, MakeArray, MakeTuple, MakeStruct of such).
struct ConstItemValue {
  enum class State : uint8_t { Busy, Done } state = State::Busy;
  Expr* expr = nullptr;
  bool isUntyped = false;  ///< no declared type and a plain number: takes the type its use requires
  Expr* inF64 = nullptr;   ///< of a plain number with a fraction: computed in f64, for uses of that type
};

class Session {
public:
  Session(Program& program, source::SourceManager& sources, diag::DiagnosticSink& sink, const AnalyzeOptions& options);
  ~Session();

  Program& program;
  source::SourceManager& sources;
  const AnalyzeOptions& options;
  TypeContext& types;
  diag::DiagnosticSink& sink() { return *sink_; }

  // modules.cpp
  ItemScope* loadRoot(source::FileId file);
  /// Declares the items of a block; null when there are none.
  ItemScope* declareLocalItems(const std::vector<const syn::Item*>& items, ItemScope* parent);
  /// The trait that needs no import; parsed when first asked for with `load`, null before (fields.cpp).
  const Symbol* primeField(bool load);
  const std::vector<ImplBlock>& impls() const { return impls_; }
  /// Every function item with its scope, in source order: what `vortex check` walks.
  struct DeclaredFunction {
    const syn::FunctionItem* item;
    ItemScope* scope;
    const syn::ImplItem* impl;
  };
  const std::vector<DeclaredFunction>& functions() const { return functions_; }
  struct DeclaredTrait {
    const syn::TraitItem* item;
    ItemScope* scope;
  };
  const std::vector<DeclaredTrait>& traits() const { return traits_; }

  // instances.cpp
  /// Finds or makes the instance; declares its signature and queues its body. Null after an error (reported).
  Instance* instantiate(Instance request);
  void checkQueuedBodies();
  /// Runs `attempt` until it returns true; what an attempt that returned false reported inside `range` and instantiated is dropped.
  void retry(const std::function<bool()>& attempt, SourceRange range);
  /// Checks a function that nothing calls: as `first`, or as `second` when only that has no errors.
  void checkEither(const Instance& first, const Instance& second);
  bool isBroken(const syn::FunctionItem* item) const { return broken_.count(item) != 0; }
  bool isInstantiated(const syn::FunctionItem* item) const { return instantiated_.count(item) != 0; }
  /// Checks a generic function against its bounds, in the first of the two kinds of code that has no errors.
  void checkDefinition(const Instance& wanted, const std::vector<bool>& inKernel);
  BoundParam* newBoundParam() { return boundParams_.emplace_back(std::make_unique<BoundParam>()).get(); }
  /// Types whose traits are being looked for: an impl whose bounds lead back to the question does not answer it.
  std::vector<std::pair<Type, TraitRef>> traitQuestions;
  /// What `T.Item` stands for in generic definitions, by `T` and the name; and the associated types being looked for.
  struct AssociatedStandIn {
    TraitRef trait;
    Type type = nullptr;
  };
  std::map<std::pair<Type, std::string_view>, std::vector<AssociatedStandIn>> associatedStandIns;
  std::vector<std::pair<Type, const syn::TypeAliasItem*>> associatedQuestions;
  /// Extent i of the tensors in the type that methods see as `Self`.
  DimExpr canonicalExtent(size_t i);
  /// What is reported while it lives is lost: it was reported where it is written, or only asks.
  class Quiet {
  public:
    explicit Quiet(Session& session) : session_(session), outer_(session.sink_), loud_(session.loud_) {
      session.sink_ = &sink_;
      session.loud_ = loud_ ? loud_ : outer_;
    }
    ~Quiet() {
      session_.sink_ = outer_;
      session_.loud_ = loud_;
    }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
    bool hasErrors() const { return sink_.hasErrors(); }

  private:
    Session& session_;
    diag::DiagnosticSink *outer_, *loud_;
    diag::DiagnosticSink sink_{UINT32_MAX};
  };
  StructInstance* structInstance(const syn::Item* item, ItemScope* scope, GenericEnv generics);
  const StructInstance* findStruct(const StructDecl* decl) const;

  // consts.cpp
  /// The value of a const item, evaluated once; null after an error (reported). Constants of an impl depend on its arguments.
  const ConstItemValue* constValue(const syn::ConstItem* item, ItemScope* scope, Type selfType = nullptr,
                                   const GenericEnv& generics = {});

  uint32_t newOpaque() { return nextOpaque_++; }
  Function* newFunction();
  Function* scratchFunction();  ///< owns the variables of constant expressions

private:
  void dropInstancesFrom(size_t count);
  bool checkQuietly(const Instance& request);
  struct PendingImport {
    const syn::ImportItem* item;
    ItemScope* scope;
  };
  ItemScope* loadModule(source::FileId file, std::string name);
  void declareItems(const std::vector<const syn::Item*>& items, ItemScope* scope);
  void declare(const syn::Item* item, ItemScope* scope);
  void resolveImport(const PendingImport& pending);
  void bindMissing(const syn::ImportItem* item, ItemScope* into);
  void importNames(const syn::ImportItem* item, ItemScope* into, ItemScope* module);
  ItemScope* findModule(const syn::ImportItem* item, size_t length, ItemScope* from, std::vector<std::string>& tried);
  void bind(ItemScope* scope, const syn::Name& name, Symbol symbol);

  std::vector<std::unique_ptr<syn::Module>> trees_;
  std::vector<std::unique_ptr<ItemScope>> scopes_;
  std::map<std::string, ItemScope*> modulesByPath_;
  std::vector<PendingImport> imports_;
  std::vector<ImplBlock> impls_;
  std::vector<DeclaredFunction> functions_;
  std::vector<DeclaredTrait> traits_;

  std::deque<std::unique_ptr<Instance>> instances_;
  std::map<std::string, Instance*> instancesByKey_;
  std::map<std::string, uint32_t> kernelNames_;
  std::set<const syn::FunctionItem*> instantiated_;
  std::deque<Instance*> queue_;
  std::deque<std::unique_ptr<StructInstance>> structs_;
  std::map<std::string, StructInstance*> structsByKey_;
  std::map<const StructDecl*, StructInstance*> structsByDecl_;
  std::map<std::tuple<const syn::ConstItem*, Type, std::string>, ConstItemValue> consts_;
  std::deque<std::unique_ptr<BoundParam>> boundParams_;
  std::set<const syn::FunctionItem*> broken_;  ///< generic definitions with errors
  std::unique_ptr<Function> scratch_;
  ItemScope* prelude_ = nullptr;
  std::vector<DimExpr> canonicalExtents_;
  uint32_t nextOpaque_ = 1;
  uint32_t constDepth_ = 0;
  diag::DiagnosticSink* sink_;
  diag::DiagnosticSink* loud_ = nullptr;  ///< where things are reported that are looked at once, while a Quiet lives
};

}  // namespace vortex::lang

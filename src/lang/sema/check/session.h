// What all checkers of one analysis share: modules, instances of functions and structs, constants, and where errors go.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <tuple>

#include "lang/sema/analyze.h"
#include "lang/sema/check/instances.h"
#include "lang/sema/check/modules.h"
#include "lang/sema/check/traits/traits.h"

namespace vortex::lang {

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
  Modules modules{*this};
  Instances instances{*this};
  diag::DiagnosticSink& sink() { return *sink_; }

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

  /// Until it ends, what is reported comes here.
  class Capture {
  public:
    explicit Capture(Session& session) : session_(session), outer_(session.sink_) { session.sink_ = &found; }
    ~Capture() { end(); }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    void end() { session_.sink_ = outer_; }
    diag::DiagnosticSink found{UINT32_MAX};

  private:
    friend class Session;
    Session& session_;
    diag::DiagnosticSink* outer_;
  };
  /// What is reported while it lives is lost: it was reported where it is written, or only asks.
  class Quiet {
  public:
    explicit Quiet(Session& session) : session_(session), loud_(session.loud_), capture_(session) {
      session.loud_ = loud_ ? loud_ : capture_.outer_;
    }
    ~Quiet() { session_.loud_ = loud_; }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
    bool hasErrors() const { return capture_.found.hasErrors(); }

  private:
    Session& session_;
    diag::DiagnosticSink* loud_;
    Capture capture_;
  };

  StructInstance* structInstance(const syn::Item* item, ItemScope* scope, GenericEnv generics);
  const StructInstance* findStruct(const StructDecl* decl) const;
  /// The value of a const item, evaluated once; null after an error (reported). Constants of an impl depend on its arguments.
  const ConstItemValue* constValue(const syn::ConstItem* item, ItemScope* scope, Type selfType = nullptr,
                                   const GenericEnv& generics = {});

  uint32_t newOpaque() { return nextOpaque_++; }
  Function* newFunction();
  Function* scratchFunction();  ///< owns the variables of constant expressions

private:
  std::deque<std::unique_ptr<StructInstance>> structs_;
  std::map<std::string, StructInstance*> structsByKey_;
  std::map<const StructDecl*, StructInstance*> structsByDecl_;
  std::map<std::tuple<const syn::ConstItem*, Type, std::string>, ConstItemValue> consts_;
  std::deque<std::unique_ptr<BoundParam>> boundParams_;
  std::unique_ptr<Function> scratch_;
  std::vector<DimExpr> canonicalExtents_;
  uint32_t nextOpaque_ = 1;
  uint32_t constDepth_ = 0;
  diag::DiagnosticSink* sink_;
  diag::DiagnosticSink* loud_ = nullptr;  ///< where things are reported that are looked at once, while a Quiet lives
};

}  // namespace vortex::lang

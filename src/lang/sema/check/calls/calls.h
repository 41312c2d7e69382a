// Calls: what is called, arguments by position and name, instances, launches.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

struct InstanceRequest;

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

Expr* checkCall(BodyState& body, const syn::CallExpr* call, Type expected);
Expr* callFunction(BodyState& body, FunctionCall& target, const syn::CallExpr* call, Type expected);
bool mayCall(BodyState& body, const syn::FunctionItem* item, SourceRange range, bool hasLaunch);
void placeTensors(InstanceRequest& request, const std::vector<Expr*>& args);
Expr* finishCall(BodyState& body, const Function& callee, const FunctionCall& target, std::vector<Expr*>& args,
                 SourceRange range);
Expr* failedCall(BodyState& body, const syn::CallExpr* call);
Expr* callSymbol(BodyState& body, const Symbol& symbol, const syn::CallExpr* call, const syn::Name& name,
                 bool hasGenerics, syn::List<syn::GenericArg> generics, Type expected,
                 const LaunchSpec* launch = nullptr);
Expr* callClosure(BodyState& body, const syn::CallExpr* call, Expr* callee);
/// Arguments by parameter position from positional and named ones; false after an error.
bool placeArgs(BodyState& body, const syn::CallExpr* call, const std::vector<std::string_view>& params, size_t first,
               size_t required, std::vector<const syn::Expr*>& placed, std::string_view callee, bool variadic = false,
               SourceRange declared = {});

}  // namespace vortex::lang

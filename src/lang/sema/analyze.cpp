#include "lang/sema/analyze.h"

#include "base/counted.h"
#include "base/hash.h"
#include "lang/sema/check/declarations/attributes.h"
#include "lang/sema/check/declarations/impls.h"
#include "lang/sema/check/declarations/kernel_code.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/definitions.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/integers.h"
#include "lang/syntax/unused_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

namespace vortex::lang {
namespace {

InstanceRequest request(const DeclaredFunction& declared, bool inKernel) {
  InstanceRequest out;
  out.item = declared.item;
  out.scope = declared.scope;
  out.inKernel = inKernel;
  out.impl = declared.impl;
  out.callSite = declared.item->name.range;
  return out;
}

void checkMain(Session& session, Program& program, const ItemScope* root) {
  auto found = root->symbols.find("main");
  if (found == root->symbols.end() || found->second.kind != SymbolKind::Function || found->second.scope != root)
    return;
  auto* item = found->second.item->as<syn::FunctionItem>();
  if (item->isKernel || !item->params.empty() || !item->generics.params.empty() || item->resultType) {
    session.sink()
        .error("E0211", item->name.range, "`main` must be `fn main()`")
        .primary(item->isKernel ? "this is a kernel" : "no parameters, no result")
        .help("the command line is `args()`");
    return;
  }
  if (Instance* instance = session.instances.instantiate(request({item, found->second.scope, nullptr}, false)))
    program.main = instance->function;
}

void checkUncalled(Session& session, const DeclaredFunction& declared, const GenericEnv& env, Type selfType) {
  const auto made = [&](bool inKernel) {
    InstanceRequest out = request(declared, inKernel);
    out.generics = env;
    out.selfType = selfType;
    out.isRepresentative = std::ranges::any_of(env, &GenericBinding::isExample);
    return out;
  };
  bool isHost = false;
  for (const syn::Attribute& attribute : declared.item->attributes)
    isHost = isHost || attribute.name.text == "test" || attribute.name.text == "bench";
  if (declared.item->isKernel || isHost) {
    session.instances.instantiate(made(declared.item->isKernel));
    return;
  }
  const bool kernelFirst = looksLikeKernelCode(*declared.item, *declared.scope);
  session.instances.checkEither(made(kernelFirst), made(!kernelFirst));
}

bool allBound(const GenericEnv& env) {
  return std::all_of(env.begin(), env.end(), [](const GenericBinding& binding) { return binding.value.isBound(); });
}

/// A generic function that nothing instantiated, with stand-in arguments.
void checkGeneric(Session& session, const DeclaredFunction& declared) {
  BodyState body(session, nullptr, session.scratchFunction(), declared.scope);
  GenericEnv env;
  Type selfType = nullptr;
  if (declared.impl) {
    env = representative(body, declared.impl->generics, {}, declared.scope);
    if (!allBound(env))
      return;  // no type satisfies the bounds yet
    body.generics = env;
    selfType = resolveType(body, declared.impl->selfType, DimPolicy::Fresh);
    if (isError(selfType))
      return;
  }
  env = representative(body, declared.item->generics, std::move(env), declared.scope);
  if (allBound(env))
    checkUncalled(session, declared, env, selfType);
}

bool hasTypeParams(const syn::Generics& generics) {
  for (const syn::GenericParam& param : generics.params)
    if (!param.isConst)
      return true;
  return false;
}

/// Conditions that nothing would check. Those of functions may be on dimensions, which the signature looks at.
void checkWhereSubjects(Session& session, const syn::Generics& generics, bool isFunction) {
  for (const syn::WherePredicate& predicate : generics.where) {
    if (isTypeCondition(predicate))
      continue;  // resolved and assumed where the definition is checked
    auto* subject = predicate.subject->as<syn::NamedType>();
    bool isKnown = isFunction;
    for (const syn::GenericParam& param : generics.params)
      isKnown = isKnown || param.name.text == subject->path[0].text;
    if (!isKnown)
      session.sink().error("E0201", predicate.subject->range,
                           base::concat("there is no generic parameter `", subject->path[0].text, "` here"));
  }
}

void checkGenericParams(Session& session, const syn::Generics& generics, bool isFunction) {
  checkWhereSubjects(session, generics, isFunction);
  for (size_t i = 0; i < generics.params.size(); ++i) {
    const syn::GenericParam& param = generics.params[i];
    for (size_t j = 0; j < i; ++j)
      if (generics.params[j].name.text == param.name.text)
        session.sink()
            .error("E0202", param.name.range, base::concat("there are two generic parameters `", param.name.text, "`"))
            .primary("second one")
            .label(generics.params[j].name.range, "first one");
    auto* type = param.constType ? param.constType->tryAs<syn::NamedType>() : nullptr;
    const auto scalar = type ? scalarNamed(type->path.back().text) : std::nullopt;
    if (scalar && isFloat(*scalar))
      session.sink()
          .error("E0329", param.constType->range, "a constant parameter is an integer or a `bool`")
          .primary(base::concat("`", type->path.back().text, "` values do not name instances"))
          .label(param.name.range, "declared here");
  }
}

void checkDefinition(Session& session, const DeclaredFunction& declared, const GenericEnv& env, Type selfType) {
  InstanceRequest wanted = request(declared, false);
  wanted.generics = env;
  wanted.selfType = selfType;
  wanted.impl = declared.impl;
  const bool kernelFirst = declared.item->isKernel || looksLikeKernelCode(*declared.item, *declared.scope);
  session.instances.checkDefinition(wanted, declared.item->isKernel ? std::vector{true}
                                                                    : std::vector{kernelFirst, !kernelFirst});
}

/// Traits, impls and generic functions as such, before anything uses them.
void checkDefinitions(Session& session) {
  std::set<const syn::Item*> seen;
  for (size_t i = 0; i < session.modules.traits().size(); ++i) {
    const DeclaredTrait declared = session.modules.traits()[i];
    if (!seen.insert(declared.item).second)
      continue;
    checkGenericParams(session, declared.item->generics, true);
    BodyState body(session, nullptr, session.scratchFunction(), declared.scope);
    TraitRef trait{declared.item, declared.scope, std::nullopt};
    body.generics = standIns(body, declared.item->generics, {}, declared.scope, nullptr);
    for (const GenericBinding& binding : body.generics)
      trait.args.push_back(binding.value);
    body.selfType = standInSelf(body, trait);
    checkTrait(body, declared.item, declared.scope);
    for (const syn::Item* member : declared.item->members)
      if (auto* function = member->tryAs<syn::FunctionItem>(); function && function->body)
        checkDefinition(session, {function, declared.scope, nullptr},
                        standIns(body, function->generics, body.generics, declared.scope, function), body.selfType);
  }
  for (size_t i = 0; i < session.modules.impls().size(); ++i) {
    const ImplBlock impl = session.modules.impls()[i];
    if (!seen.insert(impl.item).second)
      continue;
    checkGenericParams(session, impl.item->generics, false);
    BodyState body(session, nullptr, session.scratchFunction(), impl.scope);
    checkImpl(body, impl);
  }
  for (size_t i = 0; i < session.modules.functions().size(); ++i) {
    const DeclaredFunction declared = session.modules.functions()[i];
    checkGenericParams(session, declared.item->generics, true);
    const bool isGeneric =
        hasTypeParams(declared.item->generics) || (declared.impl && hasTypeParams(declared.impl->generics));
    if (!isGeneric || !declared.item->body || !seen.insert(declared.item).second)
      continue;
    BodyState body(session, nullptr, session.scratchFunction(), declared.scope);
    GenericEnv env;
    Type selfType = nullptr;
    if (declared.impl) {
      body.generics = env =
          standIns(body, declared.impl->generics, {}, declared.scope, nullptr, declared.item->generics.where);
      selfType = resolveType(body, declared.impl->selfType, DimPolicy::Fresh);
      if (isError(selfType))
        continue;
    }
    env = standIns(body, declared.item->generics, std::move(env), declared.scope, declared.item);
    checkDefinition(session, declared, env, selfType);
  }
}

void checkTypes(Session& session, ItemScope* root) {
  for (const auto& [name, symbol] : root->symbols) {
    if (symbol.scope != root)
      continue;
    BodyState body(session, nullptr, session.scratchFunction(), root);
    if (symbol.kind == SymbolKind::Const) {
      session.constValue(symbol.item->as<syn::ConstItem>(), root);
    } else if (symbol.kind == SymbolKind::Enum) {
      session.structInstance(symbol.item, root, {});
    } else if (symbol.kind == SymbolKind::Struct) {
      checkGenericParams(session, symbol.item->as<syn::StructItem>()->generics, false);
      structAttributes(body, symbol.item);
      checkStructTraits(body, symbol.item->as<syn::StructItem>(), symbol.scope);
      if (symbol.item->as<syn::StructItem>()->generics.params.empty())
        structType(body, session.structInstance(symbol.item, root, {}), DimPolicy::Fresh);
    } else if (symbol.kind == SymbolKind::Alias) {
      auto* alias = symbol.item->as<syn::TypeAliasItem>();
      if (alias->generics.params.empty() && alias->aliased)
        resolveType(body, alias->aliased, DimPolicy::Fresh);
    }
  }
}

/// The argument of a parameter: a scalar type, or a constant. Nothing: it is none.
std::optional<GenericValue> valueNamed(BodyState& body, const syn::GenericParam& param, const std::string& text) {
  GenericValue value;
  if (!param.isConst) {
    const std::optional<Scalar> scalar = scalarNamed(text);
    if (!scalar)
      return std::nullopt;
    value.kind = GenericValue::Kind::Type;
    value.type = body.types.scalar(*scalar);
    return value;
  }
  value.kind = GenericValue::Kind::Const;
  value.type =
      param.constType ? resolveType(body, param.constType, DimPolicy::Known) : body.types.scalar(Scalar::Usize);
  const Scalar scalar = value.type->kind == TypeKind::Scalar ? value.type->scalar : Scalar::Usize;
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || wrapInteger(scalar, number) != number)
    return std::nullopt;
  value.value = number;
  return value;
}

void makeInstance(Session& session, const DeclaredFunction& declared, const std::vector<std::string>& arguments) {
  const SourceRange name = declared.item->name.range;
  BodyState body(session, nullptr, session.scratchFunction(), declared.scope);
  GenericEnv env = genericEnv(declared.item->generics);
  if (arguments.size() != env.size()) {
    session.sink()
        .error("E0329", name,
               base::concat("expected ", base::counted(env.size(), "generic argument"), ", found ", arguments.size()))
        .primary("for an instance of this kernel");
    return;
  }
  for (size_t i = 0; i < env.size(); ++i) {
    const std::optional<GenericValue> value = valueNamed(body, *env[i].param, arguments[i]);
    if (!value) {
      session.sink()
          .error("E0329", name, base::concat("`", arguments[i], "` is no argument for `", env[i].name, "`"))
          .primary("for an instance of this kernel")
          .help("instances are made for scalar types, and for whole numbers that the parameter holds: 0 and 1 of a "
                "`bool`");
      return;
    }
    env[i].value = *value;
  }
  if (!checkBounds(body, declared.item->generics, env, name, declared.scope))
    return;
  InstanceRequest wanted = request(declared, true);
  wanted.generics = std::move(env);
  session.instances.instantiate(std::move(wanted));
}

void makeWantedInstances(Session& session, const AnalyzeOptions& options) {
  for (const WantedInstance& wanted : options.instances)
    for (size_t i = 0; i < session.modules.functions().size(); ++i) {
      const DeclaredFunction declared = session.modules.functions()[i];
      if (declared.item->isKernel && !declared.impl && declared.item->name.text == wanted.kernel)
        makeInstance(session, declared, wanted.arguments);
    }
}

}  // namespace

/// "my_kernel-f32-256": letters, digits and '_' of the name and the instance's arguments, everything else a '-'.
static std::string spelledForFiles(const Function& kernel) {
  std::string out = kernel.name;
  const size_t arguments = std::min(kernel.uniqueName.find('<'), kernel.uniqueName.find('#'));
  bool pending = true;
  for (size_t i = arguments; i < kernel.uniqueName.size(); ++i) {
    const char c = kernel.uniqueName[i];
    const bool isWord = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (isWord && pending)
      out += '-';
    if (isWord)
      out += c;
    pending = !isWord;
  }
  return out;
}

/// Two names that differ in '-' and '_' only would be one symbol of C.
static std::string asSymbol(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

static void nameArtifacts(Program& program) {
  std::map<std::string, uint32_t> uses;
  for (Function* kernel : program.kernels) {
    kernel->artifactName = spelledForFiles(*kernel);
    ++uses[asSymbol(kernel->artifactName)];
  }
  for (Function* kernel : program.kernels)
    if (uses[asSymbol(kernel->artifactName)] > 1 && kernel->artifactName != kernel->name)
      kernel->artifactName += "-" + base::contentHash(kernel->uniqueName).substr(0, 8);
}

std::unique_ptr<Program> analyze(source::FileId root, source::SourceManager& sources, diag::DiagnosticSink& sink,
                                 const AnalyzeOptions& options) {
  auto program = std::make_unique<Program>();
  Session session(*program, sources, sink, options);
  ItemScope* scope = session.modules.loadRoot(root);
  if (sink.hasErrors())
    return program;  // a file that does not parse would only cascade
  for (const DeclaredFunction& declared : session.modules.functions())
    syn::checkUnusedValues(declared.item, sink);
  checkTypes(session, scope);
  checkDefinitions(session);
  checkMain(session, *program, scope);
  makeWantedInstances(session, options);
  session.instances.checkQueuedBodies();
  // In source order; the list grows while bodies declare items of their own.
  for (size_t i = 0; i < session.modules.functions().size(); ++i) {
    const DeclaredFunction declared = session.modules.functions()[i];
    if (!declared.item->body || session.instances.wasChecked(declared.item) || declared.item->name.text == "main")
      continue;
    const bool isGeneric = !declared.item->generics.params.empty() || declared.impl;
    if (isGeneric && options.checkUninstantiated)
      checkGeneric(session, declared);
    else if (!isGeneric)
      checkUncalled(session, declared, {}, nullptr);
    session.instances.checkQueuedBodies();
  }
  std::erase_if(program->kernels, [](const Function* function) { return !function->body; });
  std::erase_if(program->functions, [](const std::unique_ptr<Function>& function) { return !function->body; });
  std::sort(program->kernels.begin(), program->kernels.end(), [](const Function* a, const Function* b) {
    return std::tuple(a->range.file.value, a->range.begin, a->uniqueName) <
           std::tuple(b->range.file.value, b->range.begin, b->uniqueName);
  });
  nameArtifacts(*program);
  return program;
}

}  // namespace vortex::lang

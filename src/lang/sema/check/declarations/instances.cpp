// Struct and function instances: one per choice of generic arguments (and, for functions, host or kernel code).
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/declarations/body.h"
#include "lang/sema/check/declarations/signature.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/generics.h"

#include "base/text.h"

#include <algorithm>
#include <functional>

namespace vortex::lang {
namespace {

std::string address(const void* pointer) { return std::to_string(reinterpret_cast<uintptr_t>(pointer)); }

std::string keyOf(const GenericEnv& env) {
  std::string key;
  for (const GenericBinding& binding : env) {
    const GenericValue& value = binding.value;
    const bool isType = value.kind == GenericValue::Kind::Type, isShape = value.kind == GenericValue::Kind::Shape;
    key += base::concat("|", static_cast<int>(value.kind), ":",
                        isType    ? address(value.type)
                        : isShape ? std::to_string(value.shape.size())
                                  : text(value));
  }
  return key;
}

std::string argumentsText(const GenericEnv& env) {
  std::string out;
  for (const GenericBinding& binding : env)
    out += (out.empty() ? "<" : ", ") + text(binding.value);
  return out.empty() ? out : out + ">";
}

std::string shortName(const Instance& instance) {
  const std::string& name = instance.function->uniqueName;
  return name.size() > 60 ? name.substr(0, 60) + "…" : name;
}

/// Generic recursion over two numbers below 64 needs that many.
constexpr uint32_t kMostOwnInstances = 5000;

/// Is the function wanted as a part of itself? Others on a long chain are not what makes it long.
bool growsItself(const InstanceRequest& request) {
  for (const Instance* at = request.parent; at; at = at->parent)
    if (at->item == request.item)
      return true;
  return false;
}

}  // namespace

InstanceRequest Instance::request(const syn::FunctionItem* callee, ItemScope* calleeScope, SourceRange range) const {
  return {.item = callee,
          .scope = calleeScope,
          .inKernel = inKernel,
          .isDefinition = isDefinition,
          .isRepresentative = isRepresentative,
          .parent = this,
          .callSite = range};
}

Instances::Instances(Session& session) : session_(session) {}
Instances::~Instances() = default;

StructInstance* Session::structInstance(const syn::Item* item, ItemScope* scope, GenericEnv generics) {
  const std::string key = address(item) + keyOf(generics);
  if (auto found = structsByKey_.find(key); found != structsByKey_.end())
    return found->second;
  program.structs.push_back(std::make_unique<StructDecl>());
  StructDecl* decl = program.structs.back().get();
  decl->name = std::string(item->name.text) + argumentsText(generics);
  decl->range = item->name.range;
  if (auto* structure = item->tryAs<syn::StructItem>()) {
    for (const syn::Field& field : structure->fields)
      decl->fields.emplace_back(field.name.text);
    for (const syn::Attribute& attribute : item->attributes)
      if (attribute.name.text == "layout" && attribute.args.size() == 1)
        if (auto* name = attribute.args[0].value ? attribute.args[0].value->tryAs<syn::NameExpr>() : nullptr)
          decl->arrayOfStructs = name->name.text == "aos";
  }
  auto instance = std::make_unique<StructInstance>(StructInstance{item, scope, std::move(generics), decl});
  structs_.push_back(std::move(instance));
  StructInstance* made = structs_.back().get();
  structsByKey_[key] = made;
  structsByDecl_[decl] = made;
  if (auto* enumeration = item->tryAs<syn::EnumItem>()) {
    decl->isEnum = true;
    BodyState body(*this, nullptr, scratchFunction(), scope);
    int64_t next = 0;
    std::map<std::string_view, SourceRange> names;
    for (const syn::EnumVariant& variant : enumeration->variants) {
      if (variant.value)
        if (auto value = constantInt(body, variant.value, types.scalar(Scalar::I32), "an enum value"))
          next = static_cast<int64_t>(*value);
      if (auto [first, isNew] = names.emplace(variant.name.text, variant.name.range); !isNew)
        sink()
            .error("E0202", variant.name.range, base::concat("`", variant.name.text, "` is defined twice"))
            .primary("second definition")
            .label(first->second, "first defined here");
      decl->fields.emplace_back(variant.name.text);
      decl->enumValues.push_back(next++);
    }
  }
  return made;
}

const StructInstance* Session::findStruct(const StructDecl* decl) const {
  auto found = structsByDecl_.find(decl);
  return found == structsByDecl_.end() ? nullptr : found->second;
}

Instance* Instances::instantiate(InstanceRequest request) {
  std::string key = address(request.item) + (request.inKernel ? "k" : "h") + keyOf(request.generics) + "|" +
                    address(request.selfType);
  for (const Placement& placement : request.placements)
    key += placement.isSet ? base::concat("|", static_cast<int>(placement.space), static_cast<int>(placement.layout),
                                          placement.isValue)
                           : "|-";
  key += request.isDefinition ? "|d" : "";
  if (auto found = instancesByKey_.find(key); found != instancesByKey_.end())
    return found->second->signatureOk ? found->second : nullptr;
  const uint32_t depth = request.parent && !request.generics.empty() ? request.parent->depth + 1 : 0;
  const bool grows = depth > 0 && growsItself(request);
  const uint32_t own = grows ? ++ownInstances_[request.item] : 0, deepest = session_.options.maxInstanceDepth;
  if (own > kMostOwnInstances + 1)
    return nullptr;  // reported once
  if (own > kMostOwnInstances || depth > deepest * (grows ? 1 : 4)) {
    const bool isMany = own > kMostOwnInstances;
    auto builder = session_.sink().error(
        "E0325", request.callSite,
        base::concat("`", request.item->name.text, "` needs more than ", isMany ? kMostOwnInstances : deepest,
                     isMany ? " instances of itself" : " instances of generic functions inside each other"));
    uint32_t shown = 0;
    for (const Instance* at = request.parent; at; at = at->parent)
      if (++shown <= 4 || !at->parent)
        builder.note(base::concat(shown <= 4 ? "needed by `" : "and so on, beginning in `", shortName(*at),
                                  at->callSite.isValid() ? "` at " + session_.sources.describe(at->callSite) : "`"));
    builder.help("a generic function that calls itself with ever larger arguments never ends; stop the recursion");
    return nullptr;
  }
  if (!request.isDefinition)
    instantiated_.insert(request.item);
  instances_.push_back(std::make_unique<Instance>(std::move(request)));
  Instance* made = instances_.back().get();
  instancesByKey_[key] = made;
  Function* function = session_.newFunction();
  made->function = function;
  made->depth = depth;
  const std::string& module = made->scope->moduleName;
  function->name = std::string(made->item->name.text);
  function->uniqueName = (module.empty() ? "" : module + ".") + (made->selfType ? text(made->selfType, {}) + "." : "") +
                         function->name + argumentsText(made->generics);
  function->chosenArguments = made->isRepresentative ? argumentsOf(*made) : "";
  function->isKernel = made->item->isKernel;
  function->inKernel = made->inKernel;
  if (function->isKernel && !made->isDefinition)
    if (const uint32_t uses = kernelNames_[function->uniqueName]++; uses > 0)  // types of one name from two modules
      function->uniqueName += base::concat("#", uses + 1);
  function->range = made->item->range;
  function->nameRange = made->item->name.range;
  made->body = std::make_unique<BodyState>(session_, made, function, made->scope);
  made->signatureOk = declareSignature(*made->body);
  if (!made->signatureOk)
    return nullptr;
  if (made->isDefinition || broken_.count(made->item) != 0)
    return made;
  if (function->isKernel) {
    function->genericArguments = genericArguments(*made->body, *made->item, made->generics, made->scope);
    for (const GenericBinding& binding : made->generics)
      if (binding.isExample)
        function->examples.push_back({std::string(binding.name), binding.param->isConst});
    session_.program.kernels.push_back(function);
  }
  queue_.push_back(made);
  return made;
}

void Instances::dropFrom(size_t count) {
  while (instances_.size() > count) {
    Instance* last = instances_.back().get();
    if (last->function->isKernel && !last->isDefinition)
      --kernelNames_[last->function->uniqueName.substr(0, last->function->uniqueName.find('#'))];
    std::erase(queue_, last);
    std::erase(session_.program.kernels, last->function);
    std::erase_if(instancesByKey_, [&](const auto& entry) { return entry.second == last; });
    std::erase_if(session_.program.functions, [&](const auto& function) { return function.get() == last->function; });
    instances_.pop_back();
  }
}

void Instances::retry(const std::function<bool()>& attempt, SourceRange range) {
  for (bool done = false; !done;) {
    Session::Capture captured(session_);
    const size_t before = instances_.size();
    done = attempt();
    captured.end();
    if (!done)
      dropFrom(before);
    for (const diag::Diagnostic& each : captured.found.all()) {
      const SourceRange at = each.position();
      const bool inside = at.file == range.file && at.begin >= range.begin && at.end <= range.end;
      if (done || !inside)
        session_.sink().report(each);
    }
  }
}

/// Keeps the instance only if it has no errors. Errors elsewhere (a constant, say) are reported only once, so they are passed on.
bool Instances::checkQuietly(const InstanceRequest& request) {
  Session::Capture captured(session_);
  const size_t before = instances_.size();
  instantiate(request);
  checkQueuedBodies();
  captured.end();
  const bool hasErrors = captured.found.hasErrors();
  if (hasErrors)
    dropFrom(before);
  const SourceRange range = request.item->range;
  for (const diag::Diagnostic& each : captured.found.all()) {
    const SourceRange at = each.position();
    if (!hasErrors || at.file != range.file || at.begin < range.begin || at.end > range.end)
      session_.sink().report(each);
  }
  return !hasErrors;
}

void Instances::checkEither(const InstanceRequest& first, const InstanceRequest& second) {
  if (session_.sink().isCut())
    return;
  const uint32_t errors = session_.sink().errorCount();
  if (checkQuietly(first) || checkQuietly(second) || session_.sink().errorCount() != errors)
    return;
  instantiate(first);
  checkQueuedBodies();
}

void Instances::checkQueuedBodies() {
  while (!queue_.empty()) {
    Instance* next = queue_.front();
    queue_.pop_front();
    if (!session_.sink().isCut())
      checkBody(*next->body);
    next->body.reset();
  }
}

}  // namespace vortex::lang

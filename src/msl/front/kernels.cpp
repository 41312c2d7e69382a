#include "msl/front/kernels.h"

#include "msl/front/atomic_orders.h"
#include "msl/front/inputs.h"
#include "msl/front/pointer_spaces.h"
#include "msl/front/vector_subscripts.h"

#include <clang/AST/Attr.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/Mangle.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace vortex::msl::front {

using llvm::StringRef;

void setPlace(Problem& problem, clang::SourceLocation location, const clang::SourceManager& sources,
              const SourceFiles& files) {
  auto [file, offset] = sources.getDecomposedLoc(sources.getFileLoc(location));
  auto name = sources.getNonBuiltinFilenameForID(file);
  if (const Rewritten* source = name ? files.find(*name) : nullptr) {
    problem.file = name->str();
    problem.begin = problem.end = source->sourceOffset(offset);
  }
}

bool isOfSources(clang::SourceLocation at, const clang::SourceManager& sources, const SourceFiles& files) {
  if (at.isInvalid())
    return false;
  auto name = sources.getNonBuiltinFilenameForID(sources.getFileID(sources.getSpellingLoc(at)));
  return name && files.find(*name);
}

namespace {

constexpr uint32_t kLastIndex = 30;  // of buffers and of threadgroup memory
constexpr uint32_t kLastConstant = 65535;

bool isOtherShader(StringRef name) {
  return name == "vertex" || name == "fragment" || name == "intersection" || name == "mesh" || name == "object";
}

/// "buffer" of `msl.buffer`; empty for other annotations.
StringRef metalName(const clang::AnnotateAttr* attribute) {
  StringRef text = attribute->getAnnotation();
  return text.consume_front("msl.") ? text : StringRef();
}

class Finder : public clang::RecursiveASTVisitor<Finder> {
public:
  Finder(clang::ASTContext& context, Unit& unit)
      : context_(context), unit_(unit), mangler_(context.createMangleContext()) {}

  bool shouldVisitTemplateInstantiations() const { return true; }

  bool VisitVarDecl(clang::VarDecl* variable) {
    if (llvm::isa<clang::ParmVarDecl>(variable))
      return true;
    bool isFunctionConstant = false;
    for (auto* attribute : variable->specific_attrs<clang::AnnotateAttr>())
      if (metalName(attribute) == "function_constant") {
        isFunctionConstant = true;
        const uint32_t index = number(attribute);
        checkFunctionConstant(variable, index);
        unit_.constants.push_back(functionConstant(variable, index));
      }
    if (variable->getDeclContext()->isDependentContext())
      return true;
    checkPrecision(variable->getLocation(), variable->getType());
    if (!isFunctionConstant)
      checkProgramVariable(variable);
    if (variable->isFileVarDecl())
      constants_[variable->getName()] = variable;
    if (variable->hasAttr<clang::SectionAttr>() && !isInKernel(variable))
      refuse(variable->getLocation(), "`" + variable->getNameAsString() +
                                          "` is threadgroup memory, which kernels declare: take a pointer to it");
    else if (variable->hasAttr<clang::SectionAttr>() && setsValue(variable->getInit()))
      refuse(variable->getLocation(), "`" + variable->getNameAsString() +
                                          "` is threadgroup memory, which has no initial value: let threads store one");
    return true;
  }

  bool VisitFloatingLiteral(clang::FloatingLiteral* literal) {
    checkPrecision(literal->getLocation(), literal->getType());
    return true;
  }
  bool VisitCXXThrowExpr(clang::CXXThrowExpr* expr) { return lacks(expr->getBeginLoc(), "exceptions"); }
  bool VisitCXXTryStmt(clang::CXXTryStmt* statement) { return lacks(statement->getBeginLoc(), "exceptions"); }
  bool VisitCXXNewExpr(clang::CXXNewExpr* expr) { return lacks(expr->getBeginLoc(), "`new`"); }
  bool VisitCXXDeleteExpr(clang::CXXDeleteExpr* expr) { return lacks(expr->getBeginLoc(), "`delete`"); }
  bool VisitCXXDynamicCastExpr(clang::CXXDynamicCastExpr* expr) { return lacks(expr->getBeginLoc(), "`dynamic_cast`"); }
  bool VisitCXXMethodDecl(clang::CXXMethodDecl* method) {
    return !method->isVirtualAsWritten() || lacks(method->getLocation(), "virtual functions");
  }
  bool VisitGCCAsmStmt(clang::GCCAsmStmt* statement) { return lacks(statement->getBeginLoc(), "`asm`"); }

  bool VisitGotoStmt(clang::GotoStmt* statement) { return lacks(statement->getBeginLoc(), "`goto`"); }
  /// Where it is written: parameters of templates, which may be it in what Clang only tries, are not.
  bool VisitBuiltinTypeLoc(clang::BuiltinTypeLoc type) {
    const clang::BuiltinType::Kind kind = type.getTypePtr()->getKind();
    const bool isWide = kind == clang::BuiltinType::Int128 || kind == clang::BuiltinType::UInt128;
    if ((kind != clang::BuiltinType::Double && !isWide) || type.getBeginLoc().isInvalid())
      return true;
    const clang::SourceManager& sources = context_.getSourceManager();
    StringRef written(sources.getCharacterData(sources.getSpellingLoc(type.getBeginLoc())));
    if (kind == clang::BuiltinType::UInt128 && written.consume_front("unsigned"))
      written = written.ltrim();
    const char* name = isWide ? "__int128" : "double";
    return !written.starts_with(name) || lacks(type.getBeginLoc(), std::string("`") + name + "`");
  }

  bool VisitCallExpr(clang::CallExpr* call) {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    if (callee && isKernel(callee))
      refuse(call->getBeginLoc(), "`" + callee->getNameAsString() + "` is a kernel: only launches run it");
    return true;
  }

  /// Memory of one space is none of another.
  bool VisitExplicitCastExpr(clang::ExplicitCastExpr* cast) {
    const clang::QualType from = cast->getSubExprAsWritten()->getType(), to = cast->getType();
    if (!from->isPointerType() || !to->isPointerType())
      return true;
    const clang::LangAS a = from->getPointeeType().getAddressSpace(), b = to->getPointeeType().getAddressSpace();
    if (a != b && a != clang::LangAS::Default && b != clang::LangAS::Default)
      refuse(cast->getBeginLoc(), "a pointer to memory of one address space is cast to another one");
    return true;
  }

  bool VisitCXXMemberCallExpr(clang::CXXMemberCallExpr* call) {
    return objects_.insert(call->getImplicitObjectArgument()), true;
  }

  /// To Clang every pointer is one to memory of a thread, which the shim uses. Metal's spaces are distinct.
  bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) {
    if (objects_.contains(cast) || cast->getCastKind() != clang::CK_AddressSpaceConversion ||
        !cast->getType()->isPointerType() ||
        !isOfSources(cast->getBeginLoc(), context_.getSourceManager(), *unit_.files))
      return true;
    const clang::LangAS space = cast->getSubExpr()->getType()->getPointeeType().getAddressSpace();
    const char* name = space == clang::LangAS::sycl_local           ? "threadgroup"
                       : space == clang::LangAS::sycl_global_device ? "constant"
                                                                    : "device";
    refuse(cast->getBeginLoc(), std::string("a pointer to ") + name + " memory is none to memory of a thread");
    return true;
  }

  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (function->getDeclName().isIdentifier() && function->getName().starts_with("__vx_") &&
        isOfSources(function->getLocation(), context_.getSourceManager(), *unit_.files))
      refuse(function->getLocation(), "names that begin with `__vx_` are the reader's own");
    const clang::FunctionDecl* definition = nullptr;
    if (function->isDependentContext() || !function->hasBody(definition))
      return true;
    if (definition == function && isOfSources(function->getLocation(), context_.getSourceManager(), *unit_.files))
      for (auto& [location, message] : wrongSubscripts(*function))
        refuse(location, message);
    bool isKernel = false;
    FoundKernel found;
    found.decl = function;
    for (const clang::FunctionDecl* each : function->redecls())
      for (auto* attribute : each->specific_attrs<clang::AnnotateAttr>()) {
        StringRef name = metalName(attribute);
        isKernel |= name == "kernel";
        if (isOtherShader(name) && seen_.insert(function->getCanonicalDecl()).second)
          refuse(function->getLocation(),
                 "`" + function->getNameAsString() + "` is a " + name.str() + " function; only kernels are supported");
        if (name.consume_front("host_name:"))
          found.kernel.name = name.str();
        else if (name == "max_total_threads_per_threadgroup")
          found.kernel.maxThreads = number(attribute);
        if (name == "max_total_threads_per_threadgroup" && found.kernel.maxThreads == 0)
          refuse(function->getLocation(), "[[" + name.str() + "]] takes a number that is known and at least 1");
      }
    bool isInstance = function->isTemplateInstantiation();
    if (!isKernel || (isInstance && found.kernel.name.empty()) || !seen_.insert(function->getCanonicalDecl()).second)
      return true;
    if (found.kernel.name.empty())
      found.kernel.name = function->getNameAsString();
    found.kernel.place = placeOf(function->getLocation());
    checkIsLaunchable(function, found.kernel.name);
    if (!function->getReturnType()->isVoidType())
      refuse(function->getLocation(), "a kernel returns nothing, `" + found.kernel.name + "` returns `" +
                                          function->getReturnType().getAsString() + "`");
    if (!names_.insert(found.kernel.name).second)
      refuse(isInstance ? function->getPointOfInstantiation() : function->getLocation(),
             "another kernel has the name `" + found.kernel.name + "`");
    readParameters(function, found.kernel);
    kernels.push_back(std::move(found));
    return true;
  }

  std::vector<FoundKernel> kernels;

private:
  void checkIsLaunchable(const clang::FunctionDecl* function, const std::string& name) {
    if (llvm::isa<clang::CXXMethodDecl>(function))
      refuse(function->getLocation(),
             "the kernel `" + name + "` is a member of a class: no launch has an object of it");
    else if (!function->isExternallyVisible())
      refuse(function->getLocation(),
             "the kernel `" + name + "` is `static` or in a namespace without a name: no launch sees it");
    if (function->isVariadic())
      refuse(function->getLocation(), "the kernel `" + name + "` takes `...`, for which launches have no arguments");
  }

  static bool isKernel(const clang::FunctionDecl* function) {
    return llvm::any_of(function->redecls(), [](const clang::FunctionDecl* each) {
      return llvm::any_of(each->specific_attrs<clang::AnnotateAttr>(),
                          [](const clang::AnnotateAttr* attribute) { return metalName(attribute) == "kernel"; });
    });
  }
  static bool isInKernel(const clang::VarDecl* variable) {
    auto* function = llvm::dyn_cast_or_null<clang::FunctionDecl>(variable->getParentFunctionOrMethod());
    return function && isKernel(function);
  }

  void checkPrecision(clang::SourceLocation at, clang::QualType type) {
    if (type->isSpecificBuiltinType(clang::BuiltinType::LongDouble) || type->isFloat128Type())
      lacks(at, "floats of more than 64 bits");
  }

  void checkFunctionConstant(const clang::VarDecl* variable, uint32_t index) {
    const clang::QualType type = variable->getType();
    const std::string name = "the function constant `" + variable->getNameAsString() + "`";
    if (!type->isArithmeticType() && !type->isEnumeralType() && !vectorOf(type))
      refuse(variable->getLocation(), name + " is no number");
    if (!variable->isFileVarDecl() || type.getAddressSpace() != clang::LangAS::sycl_global_device)
      refuse(variable->getLocation(), name + " is declared `constant`, outside functions");
    auto* made = llvm::dyn_cast_or_null<clang::CXXConstructExpr>(variable->getInit());
    if (variable->hasInit() && !(made && made->getNumArgs() == 0))
      refuse(variable->getLocation(), name + " has no initial value: its value comes with the pipeline");
    if (index > kLastConstant)
      refuse(variable->getLocation(), name + " has the index " + std::to_string(static_cast<int32_t>(index)) +
                                          ": the last one is " + std::to_string(kLastConstant));
    for (const FunctionConstant& other : unit_.constants)
      if (other.index == index && other.symbol != mangled(variable))
        refuse(variable->getLocation(), name + " has the index " + std::to_string(index) + " of `" + other.name + "`");
  }

  bool lacks(clang::SourceLocation at, const std::string& what) {
    refuse(at, "Metal has no " + what);
    return true;
  }

  /// Default constructors and zeros do not: threadgroup memory that has them is what it is without.
  bool setsValue(const clang::Expr* init) const {
    if (!init || llvm::isa<clang::ImplicitValueInitExpr>(init))
      return false;
    if (auto* made = llvm::dyn_cast<clang::CXXDefaultInitExpr>(init))
      return setsValue(made->getExpr());
    if (auto* made = llvm::dyn_cast<clang::CXXConstructExpr>(init))
      return made->getNumArgs() > 0 || setsValue(made->getConstructor());
    if (auto* list = llvm::dyn_cast<clang::InitListExpr>(init))
      return llvm::any_of(list->inits(), [&](const clang::Expr* each) { return setsValue(each); });
    clang::Expr::EvalResult value;
    return !init->EvaluateAsRValue(value, context_) || !(value.Val.isInt() || value.Val.isFloat()) ||
           (value.Val.isInt() ? value.Val.getInt() != 0 : value.Val.getFloat().isNonZero());
  }

  bool setsValue(const clang::CXXConstructorDecl* constructor) const {
    const clang::FunctionDecl* definition = nullptr;
    if (constructor->isTrivial() || !constructor->hasBody(definition))
      return false;
    auto* body = llvm::dyn_cast<clang::CompoundStmt>(definition->getBody());
    return !body || !body->body_empty() ||
           llvm::any_of(llvm::cast<clang::CXXConstructorDecl>(definition)->inits(),
                        [&](const clang::CXXCtorInitializer* each) { return setsValue(each->getInit()); });
  }

  std::string mangled(const clang::VarDecl* decl) const {
    if (!mangler_->shouldMangleDeclName(decl))
      return decl->getNameAsString();
    std::string text;
    llvm::raw_string_ostream out(text);
    mangler_->mangleName(clang::GlobalDecl(decl), out);
    return text;
  }

  uint32_t number(const clang::AnnotateAttr* attribute) {
    clang::Expr::EvalResult result;
    const clang::Expr* value = attribute->args_size() == 1 ? *attribute->args_begin() : nullptr;
    if (value && !value->isValueDependent() && value->EvaluateAsInt(result, context_))
      return static_cast<uint32_t>(result.Val.getInt().getZExtValue());
    refuse(attribute->getLocation(), "[[" + metalName(attribute).str() + "]] takes a whole number");
    return 1;
  }

  Problem problemAt(clang::SourceLocation at, std::string message) {
    Problem problem{"E0902", std::move(message), {}, 0, 0, {}};
    setPlace(problem, at, context_.getSourceManager(), *unit_.files);
    return problem;
  }
  Place placeOf(clang::SourceLocation at) {
    Problem found = problemAt(at, "");
    return {std::move(found.file), found.begin};
  }
  /// Templates and their instances say the same once.
  void refuse(clang::SourceLocation at, std::string message) {
    Problem made = problemAt(at, std::move(message));
    if (llvm::none_of(unit_.problems, [&](const Problem& each) {
          return each.message == made.message && each.file == made.file && each.begin == made.begin;
        }))
      unit_.problems.push_back(std::move(made));
  }

  /// What outlives a call is constant, or belongs to the threadgroup: threads have no other memory that they share.
  void checkProgramVariable(const clang::VarDecl* variable) {
    if (!variable->hasGlobalStorage() || variable->hasAttr<clang::SectionAttr>())
      return;
    const clang::QualType type = context_.getBaseElementType(variable->getType());
    if (type->isDependentType())
      return;
    const bool isOfProgram = variable->getDeclContext()->isFileContext() &&
                             variable->getTemplateSpecializationKind() == clang::TSK_Undeclared &&
                             !variable->getDescribedVarTemplate();
    if (isOfProgram && type.getAddressSpace() == clang::LangAS::Default &&
        isOfSources(variable->getLocation(), context_.getSourceManager(), *unit_.files))
      return refuse(variable->getLocation(),
                    "`" + variable->getNameAsString() + "` outlives a call: it must be `constant`");
    if (type.isConstQualified()) {
      if (variable->isStaticLocal() && variable->hasInit() && !variable->hasConstantInitialization())
        refuse(variable->getLocation(), "`" + variable->getNameAsString() +
                                            "` outlives a call: its value must be known when the kernel is compiled");
      if (variable->isReferenced() && !variable->getDefinition() && !variable->isThisDeclarationADefinition())
        refuse(variable->getLocation(), "`" + variable->getNameAsString() + "` is declared but not defined");
      return;
    }
    refuse(variable->getLocation(), "`" + variable->getNameAsString() +
                                        "` outlives a call: it must be `constant`, or `threadgroup` in a function");
  }

  FunctionConstant functionConstant(const clang::VarDecl* variable, uint32_t index) {
    FunctionConstant made{mangled(variable), variable->getNameAsString(), index,
                          problemAt(variable->getLocation(), "")};
    const clang::QualType type = variable->getType();
    made.isInteger = type->isIntegralOrEnumerationType();
    constexpr double kMostExact = 9007199254740992.0;  // requests have numbers as f64
    const bool isSigned = type->isSignedIntegerOrEnumerationType();
    if (made.isInteger) {
      const auto bits = static_cast<int>(context_.getTypeSize(type));
      const double limit = std::ldexp(1.0, type->isBooleanType() ? 1 : bits - (isSigned ? 1 : 0));
      made.least = isSigned ? std::max(-limit, -kMostExact) : 0;
      made.most = std::min(limit - 1, kMostExact);
    } else if (type->isRealFloatingType()) {
      made.least = -std::numeric_limits<double>::infinity();
      made.most = std::numeric_limits<double>::infinity();
    }
    return made;
  }

  void readParameters(const clang::FunctionDecl* function, Kernel& kernel) {
    uint32_t next = 0;  // buffers without an index are numbered in order
    for (const clang::ParmVarDecl* decl : function->parameters()) {
      Parameter parameter;
      parameter.name = decl->getNameAsString();
      parameter.type = decl->getType().getAsString();
      parameter.place = placeOf(decl->getLocation());
      clang::QualType type = decl->getType();
      bool isMemory = type->isPointerType() || type->isReferenceType();
      bool isThreadgroup = isMemory && type->getPointeeType().getAddressSpace() == clang::LangAS::sycl_local;
      std::optional<uint32_t> index;
      unsigned meanings = 0;
      for (auto* attribute : decl->specific_attrs<clang::AnnotateAttr>()) {
        StringRef name = metalName(attribute);
        meanings += !name.empty() && !name.starts_with("function_constant:");
        if (name == "buffer" || name == "threadgroup") {
          index = number(attribute);
          if (isMemory && (name == "threadgroup") != isThreadgroup)
            refuse(decl->getLocation(), "`" + parameter.name + "` is " + (isThreadgroup ? "" : "no ") +
                                            "threadgroup memory, which [[threadgroup]] numbers");
        } else if (name.consume_front("function_constant:"))
          checkCondition(decl, parameter.constant = name.trim().str());
        else if (!name.empty())
          parameter.input = name.str();
      }
      if (meanings > 1)
        refuse(decl->getLocation(), "`" + parameter.name + "` has several attributes that say what it is");
      if (isMemory) {
        parameter.kind = isThreadgroup ? ParameterKind::Threadgroup : ParameterKind::Buffer;
        if (type->getPointeeType().getAddressSpace() == clang::LangAS::Default &&
            (!type->isPointerType() || namesSpace(type->getPointeeType())))
          refuse(decl->getLocation(),
                 "`" + parameter.name + "` needs an address space: device, constant or threadgroup");
        parameter.index = index.value_or(isThreadgroup ? 0 : next);
        const clang::QualType element = type->getPointeeType();
        if (type->isPointerType() && !element->isIncompleteType() && !element->isDependentType())
          parameter.elementBytes = static_cast<uint32_t>(context_.getTypeSizeInChars(element).getQuantity());
        if (parameter.index > kLastIndex)
          refuse(decl->getLocation(), "`" + parameter.name + "` has the index " +
                                          std::to_string(static_cast<int32_t>(parameter.index)) + ": the last one is " +
                                          std::to_string(kLastIndex));
        if (!isThreadgroup) {
          next = parameter.index + 1;
          parameter.leastBytes = type->isReferenceType() ? bytesOf(type->getPointeeType()) : 0;
        }
      } else {
        parameter.kind = ParameterKind::Input;
        checkInput(decl, parameter);
      }
      kernel.parameters.push_back(std::move(parameter));
    }
    checkIndices(function, kernel);
  }

  /// `name`: of the constant that a parameter exists with, perhaps with namespaces.
  void checkCondition(const clang::ParmVarDecl* parameter, const std::string& name) {
    const StringRef last = StringRef(name).substr(name.rfind(':') + 1).trim();
    const clang::VarDecl* constant = constants_.lookup(last);
    if (!constant || !constant->getType()->isBooleanType())
      refuse(parameter->getLocation(), "`" + parameter->getNameAsString() + "` exists with `" + name +
                                           "`, which is no " + (constant ? "bool" : "constant of the program"));
  }

  void checkIndices(const clang::FunctionDecl* function, const Kernel& kernel) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const Parameter &a = kernel.parameters[j], &b = kernel.parameters[i];
        if (a.kind == b.kind && a.kind != ParameterKind::Input && a.index == b.index && a.constant.empty() &&
            b.constant.empty())
          refuse(function->getParamDecl(static_cast<unsigned>(i))->getLocation(),
                 "`" + b.name + "` has the index " + std::to_string(b.index) + " of `" + a.name + "`");
      }
  }

  /// Element type and number of a vec<T, N>; nothing for other types.
  static std::optional<std::pair<clang::QualType, uint32_t>> vectorOf(clang::QualType type) {
    auto* record = type->getAsCXXRecordDecl();
    auto* instance = record ? llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(record) : nullptr;
    if (!instance || instance->getName() != "vec")
      return std::nullopt;
    const auto& arguments = instance->getTemplateArgs();
    return std::pair(arguments[0].getAsType(), static_cast<uint32_t>(arguments[1].getAsIntegral().getZExtValue()));
  }

  /// A vector of three has the size of one of four, whose last element nobody reads.
  uint32_t bytesOf(clang::QualType type) const {
    if (type->isIncompleteType() || type->isDependentType())
      return 0;
    if (auto vector = vectorOf(type))
      return static_cast<uint32_t>(context_.getTypeSizeInChars(vector->first).getQuantity()) * vector->second;
    return static_cast<uint32_t>(context_.getTypeInfoDataSizeInChars(type).Width.getQuantity());
  }

  void checkInput(const clang::ParmVarDecl* decl, const Parameter& parameter) {
    if (parameter.input.empty())
      return refuse(decl->getLocation(),
                    "`" + parameter.name + "` is neither memory nor has an attribute that says what it is");
    if (!isKernelInput(parameter.input))
      return refuse(decl->getLocation(),
                    "[[" + parameter.input + "]] is no input of a compute kernel that is supported");
    clang::QualType elem = decl->getType();
    if (auto vector = vectorOf(elem)) {
      const uint32_t most = axesOf(parameter.input);
      if (vector->second > most)
        return refuse(decl->getLocation(), "[[" + parameter.input + "]] has " + std::to_string(most) +
                                               (most == 1 ? " element" : " elements") + ", not those of `" +
                                               parameter.type + "`");
      elem = vector->first;
    }
    auto* builtin = elem->getAs<clang::BuiltinType>();
    if (!builtin ||
        (builtin->getKind() != clang::BuiltinType::UInt && builtin->getKind() != clang::BuiltinType::UShort))
      refuse(decl->getLocation(),
             "[[" + parameter.input + "]] is a uint or ushort, or a vector of them, not `" + parameter.type + "`");
  }

  clang::ASTContext& context_;
  Unit& unit_;
  std::unique_ptr<clang::MangleContext> mangler_;
  llvm::DenseSet<const clang::FunctionDecl*> seen_;
  llvm::DenseSet<const clang::Expr*> objects_;                  ///< of calls of members, which are for all spaces
  std::set<std::string> names_;                                 ///< of kernels
  llvm::DenseMap<StringRef, const clang::VarDecl*> constants_;  ///< outside functions, by the last part of their names
};

}  // namespace

std::vector<FoundKernel> findKernels(clang::ASTContext& context, Unit& unit) {
  // What the prelude declares has been looked at when it was written; when it is precompiled, looking would load all of it.
  std::vector<clang::Decl*> declared;
  for (clang::Decl* each : context.getTranslationUnitDecl()->noload_decls())
    if (!each->isFromASTFile())
      declared.push_back(each);
  context.setTraversalScope(declared);
  checkPointerSpaces(context, unit);
  checkAtomicOrders(context, unit);
  Finder finder(context, unit);
  finder.TraverseAST(context);
  return std::move(finder.kernels);
}

}  // namespace vortex::msl::front

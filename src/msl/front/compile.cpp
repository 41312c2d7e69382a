#include "msl/front/compile.h"

#include "msl/front/bridge.h"
#include "msl/front/instance.h"
#include "msl/front/problems.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Mangle.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/MultiplexConsumer.h>

#include <algorithm>

namespace vortex::msl::front {
namespace {

std::vector<std::string> arguments(const Request& request, bool isPrecompiled) {
  std::vector<std::string> words;
  auto add = [&](std::string option, std::string value) {
    words.push_back(std::move(option));
    words.push_back(std::move(value));
  };
  for (const std::string& folder : request.includeFolders)
    add("-I", folder);
  add("-I", kShimFolder);
  if (isPrecompiled)
    add("-include-pch", kPrecompiled);
  else
    add("-include", kPrelude);
  add("-include", kDefinitions);  // after the prelude, whose names macros may have
  words.push_back(request.file);
  return words;
}

/// Ends code generation with the entry of the requested kernel.
class EntryMaker : public clang::ASTConsumer {
public:
  EntryMaker(clang::CompilerInstance& instance, clang::CodeGenerator& generator, const Request& request, Unit& unit)
      : instance_(instance), generator_(generator), request_(request), unit_(unit) {}

  void HandleTranslationUnit(clang::ASTContext& context) override {
    if (instance_.getDiagnostics().hasErrorOccurred())
      return;
    std::vector<FoundKernel> found = findKernels(context, unit_);
    generator_.HandleTranslationUnit(context);
    if (instance_.getDiagnostics().hasErrorOccurred() || !generator_.GetModule())
      return;
    for (const FoundKernel& each : found) {
      unit_.kernels.push_back(each.kernel);
      bool isOnly = request_.kernel.empty() && request_.lowersOnlyKernel && found.size() == 1;
      if ((each.kernel.name != request_.kernel && !isOnly) || unit_.entry || !unit_.problems.empty())
        continue;
      auto* constant = generator_.GetAddrOfGlobal(clang::GlobalDecl(each.decl), false);
      auto* function = llvm::dyn_cast_or_null<llvm::Function>(constant);
      if (function && !function->isDeclaration())
        unit_.entry = makeEntry(generator_.CGM(), context, each, function);
      if (!unit_.entry)
        unit_.problems.push_back(
            {"E0902", "`" + each.kernel.name + "` has a parameter that cannot be passed", {}, 0, 0, {}});
    }
  }

private:
  clang::CompilerInstance& instance_;
  clang::CodeGenerator& generator_;
  const Request& request_;
  Unit& unit_;
};

/// Hands everything but the end of the translation unit and kernels that nobody asked for to the code generator: a library may have thousands.
class Forwarder : public clang::ASTConsumer {
public:
  Forwarder(clang::CodeGenerator& generator, const Request& request) : generator_(generator), request_(request) {}
  void Initialize(clang::ASTContext& context) override { generator_.Initialize(context); }
  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    if (group.isSingleDecl())
      if (auto* function = llvm::dyn_cast<clang::FunctionDecl>(group.getSingleDecl()); function && !isWanted(*function))
        return true;
    return generator_.HandleTopLevelDecl(group);
  }
  void HandleInlineFunctionDefinition(clang::FunctionDecl* decl) override {
    generator_.HandleInlineFunctionDefinition(decl);
  }
  void HandleTagDeclDefinition(clang::TagDecl* decl) override { generator_.HandleTagDeclDefinition(decl); }
  void HandleTagDeclRequiredDefinition(const clang::TagDecl* decl) override {
    generator_.HandleTagDeclRequiredDefinition(decl);
  }
  void HandleCXXStaticMemberVarInstantiation(clang::VarDecl* decl) override {
    generator_.HandleCXXStaticMemberVarInstantiation(decl);
  }
  void CompleteTentativeDefinition(clang::VarDecl* decl) override { generator_.CompleteTentativeDefinition(decl); }

private:
  bool isWanted(const clang::FunctionDecl& function) const {
    bool isKernel = false, isNamed = function.getNameAsString() == request_.kernel;
    for (const clang::FunctionDecl* each : function.redecls())
      for (auto* attribute : each->specific_attrs<clang::AnnotateAttr>()) {
        isKernel |= attribute->getAnnotation() == "msl.kernel";
        isNamed |= attribute->getAnnotation() == "msl.host_name:" + request_.kernel;
      }
    return !isKernel || isNamed || request_.lowersOnlyKernel;
  }

  clang::CodeGenerator& generator_;
  const Request& request_;
};

class ReadAction : public clang::ASTFrontendAction {
public:
  ReadAction(const Request& request, Unit& unit) : request_(request), unit_(unit) {}

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance, llvm::StringRef) override {
    generator_.reset(clang::CreateLLVMCodeGen(instance.getDiagnostics(), "metal", &instance.getVirtualFileSystem(),
                                              instance.getHeaderSearchOpts(), instance.getPreprocessorOpts(),
                                              instance.getCodeGenOpts(), unit_.context));
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(std::make_unique<Forwarder>(*generator_, request_));
    consumers.push_back(std::make_unique<EntryMaker>(instance, *generator_, request_, unit_));
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }

  std::unique_ptr<llvm::Module> takeModule() {
    return std::unique_ptr<llvm::Module>(generator_ ? generator_->ReleaseModule() : nullptr);
  }

private:
  const Request& request_;
  Unit& unit_;
  std::unique_ptr<clang::CodeGenerator> generator_;
};

}  // namespace

/// `refused`: the casts that Clang refuses and that are right by way of float.
static std::unique_ptr<Unit> compileOnce(const Request& request, llvm::StringRef precompiled, const Widened& widened,
                                         Widened& refused) {
  auto unit = std::make_unique<Unit>();
  unit->files =
      llvm::makeIntrusiveRefCnt<SourceFiles>(request.file, request.text, request.definitions, precompiled, widened);
  clang::CompilerInstance instance;
  instance.createDiagnostics(new ProblemCollector(*unit->files, unit->problems, refused));
  if (!setUp(instance, unit->files, "c++", arguments(request, !precompiled.empty())))
    return unit;
  ReadAction action(request, *unit);
  bool isGood = instance.ExecuteAction(action);
  unit->module = action.takeModule();
  if (!isGood && unit->problems.empty())
    unit->problems.push_back({"E0901", "Clang refuses the source", {}, 0, 0, {}});
  return unit;
}

/// Whether there were any that are not in `to`.
static bool addTo(Widened& to, const Widened& more) {
  bool isMore = false;
  for (const auto& [path, ranges] : more)
    for (Range range : ranges)
      if (std::vector<Range>& known = to[path]; std::find(known.begin(), known.end(), range) == known.end()) {
        known.push_back(range);
        isMore = true;
      }
  return isMore;
}

std::unique_ptr<Unit> compile(const Request& request, llvm::StringRef precompiled) {
  Widened widened;
  while (true) {
    Widened refused;
    std::unique_ptr<Unit> unit = compileOnce(request, precompiled, widened, refused);
    if (!addTo(widened, refused))
      return unit;
  }
}

}  // namespace vortex::msl::front

#include "msl/flatten/clean.h"

#include "msl/flatten/constants.h"
#include "msl/flatten/integers.h"
#include "msl/flatten/overflows.h"
#include "msl/flatten/total.h"
#include "msl/flatten/vectors.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SCCP.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LowerMemIntrinsics.h>
#include <llvm/Transforms/Utils/LowerSwitch.h>
#include <llvm/Transforms/Utils/UnifyFunctionExitNodes.h>

namespace vortex::msl::flatten {

Problem problemAt(const front::Unit& unit, const llvm::Instruction* at, std::string message) {
  return problemAt(unit, at ? at->getDebugLoc() : llvm::DebugLoc(), std::move(message));
}

Problem problemAt(const front::Unit& unit, const llvm::DebugLoc& at, std::string message) {
  Problem problem{"E0902", std::move(message), {}, 0, 0, {}};
  if (auto place = unit.files->placeOf(at.get())) {
    problem.begin = problem.end = place->source->sourceOffset(place->source->offsetOf(place->line, place->column));
    problem.file = std::move(place->path);
  }
  return problem;
}

namespace {

/// Pass managers with all analyses registered.
class Passes {
public:
  Passes() {
    builder_.registerModuleAnalyses(modules_);
    builder_.registerCGSCCAnalyses(groups_);
    builder_.registerFunctionAnalyses(functions_);
    builder_.registerLoopAnalyses(loops_);
    builder_.crossRegisterProxies(loops_, functions_, groups_, modules_);
  }
  void run(llvm::Module& module, llvm::FunctionPassManager passes) {
    llvm::ModulePassManager all;
    all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    all.run(module, modules_);
  }
  void run(llvm::Module& module, llvm::ModulePassManager passes) { passes.run(module, modules_); }
  void run(llvm::Function& function, llvm::FunctionPassManager passes) { passes.run(function, functions_); }

private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager groups_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
};

llvm::InstCombinePass combine() {
  // Some kernels take more rounds than its check allows, which would abort.
  return llvm::InstCombinePass(llvm::InstCombineOptions().setVerifyFixpoint(false));
}

llvm::FunctionPassManager simplify(bool unrolls) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(SettleDivisions());
  passes.addPass(combine());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::SCCPPass());
  if (unrolls) {
    llvm::LoopPassManager loops;
    loops.addPass(llvm::LoopRotatePass());
    loops.addPass(llvm::LoopFullUnrollPass(3));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), false));
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(SettleDivisions());
    passes.addPass(combine());
  }
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

bool isHook(const llvm::Function& function) {
  return function.getName().starts_with("__vx_") && function.isDeclaration();
}

/// Attributes of parameters become calls that keep the parameter in memory. What a condition is expected to be is it.
void dropMarkers(llvm::Function& function) {
  for (llvm::Instruction& each : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&each);
    if (!call)
      continue;
    if (call->getIntrinsicID() == llvm::Intrinsic::expect ||
        call->getIntrinsicID() == llvm::Intrinsic::expect_with_probability)
      call->replaceAllUsesWith(call->getArgOperand(0));
    else if (!call->isAssumeLikeIntrinsic() || !call->use_empty())
      continue;
    call->eraseFromParent();
  }
}

/// Makes the entry the only thing that is kept, and everything it calls part of it.
void inlineAll(front::Unit& unit) {
  llvm::Module& module = *unit.module;
  for (llvm::Function& function : module) {
    if (function.isDeclaration())
      continue;
    dropMarkers(function);
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.removeFnAttr(llvm::Attribute::OptimizeNone);
    if (&function == unit.entry)
      continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  // `llvm.global_ctors` goes: constants.h has evaluated what they make.
  for (llvm::GlobalVariable& global : llvm::make_early_inc_range(module.globals())) {
    if (global.getName().starts_with("llvm.") && global.use_empty())
      global.eraseFromParent();
    else if (!global.isDeclaration() && !global.getName().starts_with("llvm."))
      global.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  Passes passes;
  llvm::ModulePassManager dead;
  dead.addPass(llvm::GlobalDCEPass());
  passes.run(module, std::move(dead));
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) {
      llvm::FunctionPassManager early;  // small functions inline into small ones
      early.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
      early.addPass(llvm::EarlyCSEPass());
      early.addPass(llvm::SimplifyCFGPass());
      Passes own;
      own.run(module, std::move(early));
      break;
    }
  llvm::ModulePassManager inliner;
  inliner.addPass(llvm::AlwaysInlinerPass(false));
  inliner.addPass(llvm::GlobalDCEPass());
  passes.run(module, std::move(inliner));
}

/// Without parameters, whose address spaces are demangled to no words of Metal's.
std::string nameOf(const llvm::Function& function) {
  const std::string name = llvm::demangle(function.getName());
  return name.substr(0, name.find('('));
}

bool refuseCalls(front::Unit& unit) {
  for (llvm::Instruction& each : llvm::instructions(*unit.entry)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&each);
    if (!call || llvm::isa<llvm::IntrinsicInst>(call))
      continue;
    llvm::Function* callee = call->getCalledFunction();
    if (callee && isHook(*callee))
      continue;
    std::string message = !callee                   ? "a call through a pointer to a function is not supported"
                          : callee->isDeclaration() ? "`" + nameOf(*callee) + "` is declared but not defined"
                                                    : "recursion is not supported";
    unit.problems.push_back(problemAt(unit, call, message));
    return true;
  }
  return false;
}

/// Those that the kernel uses: others may come from headers.
bool refuseConstants(front::Unit& unit, const std::vector<Unevaluated>& left) {
  for (const auto& [symbol, at, needed] : left)
    if (auto* global = unit.module->getNamedGlobal(symbol); needed.empty() && global && !global->use_empty()) {
      unit.problems.push_back(
          problemAt(unit, at, "a constant of the program needs a value that is known when it is compiled"));
      return true;
    }
  return false;
}

/// Loads and stores that have no place in the source, but for `known`, get that of `at`.
void place(llvm::Function& function, const llvm::DenseSet<llvm::Instruction*>& known, const llvm::DebugLoc& at) {
  for (llvm::Instruction& each : llvm::instructions(function))
    if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(each) && !each.getDebugLoc() && !known.contains(&each))
      each.setDebugLoc(at);
}

void expandMemoryIntrinsics(llvm::Function& function) {
  llvm::TargetTransformInfo costs(function.getDataLayout());
  std::vector<llvm::MemIntrinsic*> calls;  // expansion splits blocks
  for (llvm::Instruction& each : llvm::instructions(function))
    if (auto* call = llvm::dyn_cast<llvm::MemIntrinsic>(&each))
      calls.push_back(call);
  llvm::DenseSet<llvm::Instruction*> nowhere;
  for (llvm::Instruction& each : llvm::instructions(function))
    if (!each.getDebugLoc())
      nowhere.insert(&each);
  for (llvm::MemIntrinsic* call : calls) {
    const llvm::DebugLoc at = call->getDebugLoc();
    if (auto* copy = llvm::dyn_cast<llvm::MemCpyInst>(call))
      llvm::expandMemCpyAsLoop(copy, costs);
    else if (auto* move = llvm::dyn_cast<llvm::MemMoveInst>(call))
      llvm::expandMemMoveAsLoop(move, costs);
    else if (auto* set = llvm::dyn_cast<llvm::MemSetInst>(call))
      llvm::expandMemSetAsLoop(set);
    call->eraseFromParent();
    place(function, nowhere, at);
  }
}

/// How large positions are, by which sums and products of them do not wrap.
void boundInputs(front::Unit& unit, const Request& request) {
  constexpr uint64_t kMostThreads = kMostThreadsOfGroup;
  const auto extent = [&](unsigned axis) {
    return request.block ? static_cast<uint64_t>((*request.block)[axis]) : kMostThreads;
  };
  const uint64_t all = request.block ? extent(0) * extent(1) * extent(2) : kMostThreads;
  llvm::MDBuilder ranges(unit.context);
  for (llvm::Instruction& each : llvm::instructions(*unit.entry)) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(&each);
    if (!call || !call->getCalledFunction())
      continue;
    llvm::StringRef name = call->getCalledFunction()->getName();
    if (!name.consume_front("__vx_input_"))
      continue;
    const auto axis = static_cast<unsigned>(llvm::cast<llvm::ConstantInt>(call->getArgOperand(0))->getZExtValue());
    const uint64_t end = name == "thread_position_in_threadgroup"   ? extent(axis)
                         : name == "thread_index_in_threadgroup"    ? all
                         : name == "thread_index_in_simdgroup"      ? 32
                         : name == "thread_index_in_quadgroup"      ? 4
                         : name == "simdgroup_index_in_threadgroup" ? (all + 31) / 32
                                                                    : 0;
    if (end != 0)
      call->setMetadata(llvm::LLVMContext::MD_range, ranges.createRange(llvm::APInt(32, 0), llvm::APInt(32, end)));
  }
}

}  // namespace

void straighten(llvm::Function& function) {
  constexpr unsigned kMostRounds = 64;  // recursion ends in a call that is left
  const auto inlineCalls = [&] {
    llvm::SmallVector<llvm::CallInst*> calls;
    for (llvm::Instruction& each : llvm::instructions(function))
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&each);
          call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration())
        calls.push_back(call);
    for (llvm::CallInst* call : calls) {
      llvm::InlineFunctionInfo info;
      llvm::InlineFunction(*call, info);
    }
    return !calls.empty();
  };
  for (unsigned round = 0; round < kMostRounds && inlineCalls(); ++round) {
  }
  const auto simplifyAll = [&] {
    for (bool unrolls : {false, true, true}) {
      Passes passes;
      passes.run(function, simplify(unrolls));
    }
  };
  simplifyAll();
  expandMemoryIntrinsics(function);
  simplifyAll();
}

void cleanModule(front::Unit& unit, const Request& request) {
  llvm::Module& module = *unit.module;
  const size_t problems = unit.problems.size();
  makeTotal(unit);
  if (unit.problems.size() != problems)
    return;
  const std::vector<Unevaluated> left = setConstants(unit, request);
  if (unit.problems.size() != problems)
    return;
  boundInputs(unit, request);
  inlineAll(unit);
  if (refuseCalls(unit) || refuseConstants(unit, left))
    return;
  Passes passes;
  passes.run(module, simplify(false));
  if (const bool isGiven = !request.isCheck || unit.constants.empty(); isGiven && refuseDivisionsByZero(unit))
    return;
  passes.run(module, simplify(true));
  passes.run(module, simplify(false));
  refuseMissing(unit, left);
  if (unit.problems.size() != problems)
    return;
  dropMarkers(*unit.entry);
  expandMemoryIntrinsics(*unit.entry);
  llvm::ModulePassManager dead;
  dead.addPass(llvm::GlobalDCEPass());
  Passes last;
  last.run(module, std::move(dead));
}

void tidyModule(llvm::Module& module) {
  Passes passes;
  llvm::FunctionPassManager scalars;
  llvm::ScalarizerPassOptions options;
  options.ScalarizeLoadStore = false;
  options.ScalarizeVariableInsertExtract = true;
  llvm::FunctionPassManager first;
  first.addPass(llvm::ScalarizerPass(options));
  passes.run(module, std::move(first));
  for (llvm::Function& function : module)
    splitCasts(function);
  Passes rest;
  scalars.addPass(SettleDivisions());
  scalars.addPass(combine());
  scalars.addPass(ExpandOverflows());
  scalars.addPass(llvm::EarlyCSEPass());
  scalars.addPass(llvm::ScalarizerPass(options));
  scalars.addPass(llvm::DCEPass());
  scalars.addPass(llvm::SimplifyCFGPass());
  scalars.addPass(llvm::ADCEPass());
  scalars.addPass(llvm::LowerSwitchPass());
  scalars.addPass(llvm::UnifyFunctionExitNodesPass());
  rest.run(module, std::move(scalars));
  for (llvm::Function& function : module)
    if (!function.isDeclaration())
      widenIntegers(function);
}

}  // namespace vortex::msl::flatten

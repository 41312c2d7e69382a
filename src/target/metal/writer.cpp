#include "target/metal/writer.h"

#include "artifact/metal_interface.h"
#include "base/text.h"
#include "ir/location.h"
#include "target/metal/kernel_writer.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::metal {

namespace scf = mlir::scf;
using base::concat;

KernelWriter::KernelWriter(vxt::KernelOp kernel, Functions& functions)
    : kernel_(kernel), functions_(functions), module_("metal", context_) {}

void KernelWriter::fail(mlir::Operation* op, const std::string& why) {
  for (mlir::Value result : op->getResults())
    if (!values_.contains(result))
      set(result, Texts(gpu::lanesOf(result.getType()), "0"));
  if (!error.empty())
    return;
  std::string where = ir::describeLocation(op);
  error = concat(where.empty() ? "" : where + ": ", "Metal has no ",
                 why.empty() ? op->getName().getStringRef().str() : why);
}

//===-- names -------------------------------------------------------------------------------------------------===//

std::string KernelWriter::typeOf(mlir::Type type) {
  if (auto fragment = mlir::dyn_cast<vxt::FragmentType>(type))
    return concat("simdgroup_", typeOf(fragment.getElementType()), "8x8");
  if (auto pointer = mlir::dyn_cast<vxt::PtrType>(type)) {
    switch (pointer.getSpace()) {
    case ir::Space::Shared: return "threadgroup uchar*";
    case ir::Space::Local: return "thread uchar*";
    default: return "device uchar*";
    }
  }
  return typeName(llvmType(type));
}

std::string KernelWriter::declare(const std::string& type, const std::string& text) {
  std::string name = freshName();
  line(concat(type, " ", name, " = ", text, ";"));
  return name;
}

Texts KernelWriter::declareAll(mlir::Type type) {
  Texts names;
  for (unsigned i = 0; i < gpu::lanesOf(type); ++i) {
    names.push_back(freshName());
    line(concat(typeOf(type), " ", names.back(), ";"));
  }
  return names;
}

const Texts& KernelWriter::lanes(mlir::Value value) {
  auto found = values_.find(value);
  if (found == values_.end())  // after an error
    found = values_.insert({value, Texts(gpu::lanesOf(value.getType()), "0")}).first;
  return found->second;
}

std::string KernelWriter::text(mlir::Value value, unsigned lane) {
  const Texts& all = lanes(value);
  return all[std::min<size_t>(lane, all.size() - 1)];
}

std::string KernelWriter::asSigned(mlir::Value value) {
  return concat(signedName(llvmType(value.getType())), "(", text(value), ")");
}

void KernelWriter::assign(const std::vector<Texts>& variables, mlir::ValueRange values) {
  std::vector<Texts> from;
  for (mlir::Value each : values)
    from.push_back(lanes(each));
  // A variable that another one takes its value from is read before it is written.
  auto isVariable = [&](const std::string& text, const std::string& own) {
    return text != own && llvm::any_of(variables, [&](const Texts& each) { return llvm::is_contained(each, text); });
  };
  for (auto [i, each] : llvm::enumerate(from))
    for (auto [lane, text] : llvm::enumerate(each))
      if (isVariable(text, variables[i][lane]))
        text = declare(typeOf(values[i].getType()), text);
  for (auto [i, each] : llvm::enumerate(from))
    for (auto [lane, text] : llvm::enumerate(each))
      if (text != variables[i][lane])
        line(concat(variables[i][lane], " = ", text, ";"));
}

//===-- ops ---------------------------------------------------------------------------------------------------===//

void KernelWriter::nested(llvm::function_ref<void()> body) {
  ++depth_;
  body();
  --depth_;
}

void KernelWriter::writeBlock(mlir::Block& block) {
  for (mlir::Operation& op : block)
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
      writeOp(&op);
}

/// f64 exists only as the bits that reports show: a shorter float is widened by integer arithmetic.
bool KernelWriter::writeWideBits(mlir::Operation* op) {
  auto isNumberOfReports = [](mlir::arith::ExtFOp widen) {
    mlir::Type from = widen.getIn().getType();
    return widen.getType().isF64() && (from.isF32() || from.isF16() || from.isBF16()) &&
           llvm::all_of(widen->getUsers(),
                        [](mlir::Operation* user) { return mlir::isa<mlir::arith::BitcastOp>(user); });
  };
  if (auto widen = mlir::dyn_cast<mlir::arith::ExtFOp>(op); widen && isNumberOfReports(widen)) {
    set(widen, concat("float(", text(widen.getIn()), ")"));
    return true;
  }
  auto bits = mlir::dyn_cast<mlir::arith::BitcastOp>(op);
  auto widen = bits ? bits.getIn().getDefiningOp<mlir::arith::ExtFOp>() : nullptr;
  if (!widen || !isNumberOfReports(widen))
    return false;
  set(bits, declare("ulong", concat("vx_f64_bits(", text(widen), ")")));
  usesWideBits = true;
  return true;
}

static const char* const kWideBits = R"(
/// The bits of the f64 that equals x.
inline ulong vx_f64_bits(float x) {
  uint bits = as_type<uint>(x), magnitude = bits & 0x7fffffffu;
  ulong sign = ulong(bits >> 31) << 63;
  if (magnitude == 0u)
    return sign;
  if (magnitude >= 0x7f800000u)
    return sign | 0x7ff0000000000000ul | ulong(magnitude & 0x7fffffu) << 29;
  bool subnormal = magnitude < 0x800000u;
  uint zeros = subnormal ? clz(magnitude) - 8u : 0u;
  ulong exponent = ulong(magnitude >> 23) + (subnormal ? 897ul : 896ul) - ulong(zeros);
  return sign | exponent << 52 | ((ulong(magnitude) << (29u + zeros)) & 0xffffffffffffful);
}
)";

void KernelWriter::writeOp(mlir::Operation* op) {
  if (writeWideBits(op))
    return;
  for (mlir::Type type : op->getResultTypes())
    if (mlir::getElementTypeOrSelf(type).isF64())
      return fail(op, "f64");
  if (isElementwise(op))
    return writeElementwise(op);
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](mlir::func::CallOp call) { writeCall(call); })
      .Case([&](scf::ForOp loop) { writeFor(loop); })
      .Case([&](scf::IfOp branch) { writeIf(branch); })
      .Case([&](scf::WhileOp loop) { writeWhile(loop); })
      .Case([&](vxt::ThreadIdOp id) { set(id, concat(typeOf(id.getType()), "(vx_thread)")); })
      .Case([&](vxt::BlockIdOp id) {
        set(id, concat(typeOf(id.getType()), "(vx_block.", "xyz"[static_cast<int>(id.getAxis())], ")"));
      })
      .Case([&](vxt::GridDimOp id) {
        set(id, concat(typeOf(id.getType()), "(vx_grid.", "xyz"[static_cast<int>(id.getAxis())], ")"));
      })
      .Default([&](mlir::Operation*) {
        if (!writeMemory(op) && !writeAtomic(op) && !writeWarp(op) && !writeMatrices(op) && !writeVector(op))
          fail(op);
      });
}

void KernelWriter::writeElementwise(mlir::Operation* op) {
  mlir::Value result = op->getResult(0);
  if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    llvm::Constant* value = gpu::constantValue(context_, constant.getValue());
    constants_[result] = value;
    return set(result, Texts(gpu::lanesOf(result.getType()), constantText(value)));
  }
  // As a function of one element, which is printed for every lane. Constants are part of it: they make simpler code.
  llvm::SmallVector<llvm::Type*> types;
  for (mlir::Value operand : op->getOperands())
    types.push_back(llvmType(operand.getType()));
  auto* function = llvm::Function::Create(llvm::FunctionType::get(llvmType(result.getType()), types, false),
                                          llvm::GlobalValue::InternalLinkage, "element", module_);
  llvm::IRBuilder<> ir(llvm::BasicBlock::Create(context_, "", function));
  llvm::SmallVector<llvm::Value*> operands;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    llvm::Constant* known = constants_.lookup(operand);
    operands.push_back(known ? known : static_cast<llvm::Value*>(function->getArg(static_cast<unsigned>(i))));
  }
  llvm::Value* value = emitElementwise(ir, scalars_, op, operands, 1);
  if (!value) {
    function->eraseFromParent();
    return fail(op);
  }
  ir.CreateRet(value);
  writeLanes(op, *function);
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(value); constant && gpu::lanesOf(result.getType()) == 1)
    constants_[result] = constant;
  function->eraseFromParent();
}

/// What is long becomes a function of the file, and a call for every lane.
void KernelWriter::writeLanes(mlir::Operation* op, llvm::Function& function) {
  constexpr size_t kLongest = 100;  // characters
  Instructions instructions;
  std::string body, type = typeOf(op->getResult(0).getType());
  llvm::SmallVector<std::string> names, parameters;
  for (llvm::Argument& argument : function.args()) {
    names.push_back(concat("x", argument.getArgNo()));
    if (!argument.use_empty())
      parameters.push_back(concat(typeName(argument.getType()), " ", names.back()));
  }
  unsigned declared = 0;
  std::string value = instructions.print(function, names, [&](const std::string& ofType, const std::string& from) {
    std::string name = concat("y", declared++);
    body += concat("  ", ofType, " ", name, " = ", from, ";\n");
    return name;
  });
  if (value.empty())
    return fail(op, concat(op->getName().getStringRef().str(), " (", instructions.unsupported, ")"));
  std::string called;
  if (body.size() + value.size() > kLongest)
    called = functions_.name(op->getName().stripDialect().str(), type,
                             concat("(", llvm::join(parameters, ", "), ") {\n", body, "  return ", value, ";\n}\n"));
  Texts texts;
  for (unsigned lane = 0; lane < gpu::lanesOf(op->getResult(0).getType()); ++lane) {
    llvm::SmallVector<std::string> arguments, passed;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      arguments.push_back(text(operand, lane));
      if (!function.getArg(static_cast<unsigned>(i))->use_empty())
        passed.push_back(arguments.back());
    }
    std::string written = !called.empty()
                              ? concat(called, "(", llvm::join(passed, ", "), ")")
                              : instructions.print(function, arguments, [&](const auto& ofType, const auto& from) {
                                  return declare(ofType, from);
                                });
    bool isName = llvm::all_of(written, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    texts.push_back(isName ? written : declare(type, written));
  }
  set(op->getResult(0), texts);
}

void KernelWriter::writeFor(scf::ForOp op) {
  std::vector<Texts> carried;
  for (auto [init, argument] : llvm::zip(op.getInitArgs(), op.getRegionIterArgs())) {
    Texts names;
    for (unsigned lane = 0; lane < gpu::lanesOf(init.getType()); ++lane)
      names.push_back(declare(typeOf(init.getType()), text(init, lane)));
    carried.push_back(names);
    set(argument, names);
  }
  std::string i = freshName(), type = typeOf(op.getInductionVar().getType());
  set(op.getInductionVar(), i);
  line(concat("for (", type, " ", i, " = ", text(op.getLowerBound()), "; ",
              signedName(llvmType(op.getStep().getType())), "(", i, ") < ", asSigned(op.getUpperBound()), "; ", i,
              " += ", text(op.getStep()), ") {"));
  nested([&] {
    writeBlock(*op.getBody());
    assign(carried, op.getYieldedValues());
  });
  line("}");
  for (auto [result, names] : llvm::zip(op.getResults(), carried))
    set(result, names);
}

void KernelWriter::writeIf(scf::IfOp op) {
  std::vector<Texts> results;
  for (mlir::Value result : op.getResults()) {
    results.push_back(declareAll(result.getType()));
    set(result, results.back());
  }
  auto side = [&](mlir::Block* block) {
    nested([&] {
      writeBlock(*block);
      assign(results, block->getTerminator()->getOperands());
    });
  };
  line(concat("if (", text(op.getCondition()), ") {"));
  side(op.thenBlock());
  if (op.elseBlock() && (!op.getResults().empty() || op.elseBlock()->getOperations().size() > 1)) {
    line("} else {");
    side(op.elseBlock());
  }
  line("}");
}

void KernelWriter::writeWhile(scf::WhileOp op) {
  auto declared = [&](mlir::ValueRange inits) {
    std::vector<Texts> all;
    for (mlir::Value init : inits) {
      Texts names;
      for (unsigned lane = 0; lane < gpu::lanesOf(init.getType()); ++lane)
        names.push_back(declare(typeOf(init.getType()), text(init, lane)));
      all.push_back(names);
    }
    return all;
  };
  std::vector<Texts> arguments = declared(op.getInits()), forwarded;
  for (mlir::Value result : op.getResults())
    forwarded.push_back(declareAll(result.getType()));
  auto setAll = [&](mlir::ValueRange values, const std::vector<Texts>& names) {
    for (auto [value, each] : llvm::zip(values, names))
      set(value, each);
  };
  setAll(op.getBeforeArguments(), arguments);
  setAll(op.getAfterArguments(), forwarded);
  setAll(op.getResults(), forwarded);
  scf::ConditionOp condition = op.getConditionOp();
  line("while (true) {");
  nested([&] {
    writeBlock(*op.getBeforeBody());
    assign(forwarded, condition.getArgs());
    line(concat("if (!", text(condition.getCondition()), ")"));
    nested([&] { line("break;"); });
    writeBlock(*op.getAfterBody());
    assign(arguments, op.getYieldOp().getOperands());
  });
  line("}");
}

/// The name of a function that returns the first result and takes places for the others.
std::string KernelWriter::writeFunction(mlir::func::FuncOp function) {
  KernelWriter inner(nullptr, functions_);
  llvm::SmallVector<std::string> parameters;
  mlir::Block& body = function.getBody().front();
  for (mlir::BlockArgument argument : body.getArguments()) {
    inner.set(argument, concat("a", argument.getArgNumber()));
    parameters.push_back(concat(typeOf(argument.getType()), " a", argument.getArgNumber()));
  }
  inner.writeBlock(body);
  mlir::ValueRange results = body.getTerminator()->getOperands();
  for (auto [i, result] : llvm::enumerate(results.drop_front())) {
    parameters.push_back(concat("thread ", typeOf(result.getType()), "& r", i));
    inner.line(concat("r", i, " = ", inner.text(result), ";"));
  }
  inner.line(concat("return ", inner.text(results.front()), ";"));
  if (error.empty())
    error = inner.error;
  usesWideBits |= inner.usesWideBits;
  return functions_.name(function.getSymName().str(), typeOf(results.front().getType()),
                         concat("(", llvm::join(parameters, ", "), ") {\n", inner.body_, "}\n"));
}

void KernelWriter::writeCall(mlir::func::CallOp call) {
  if (call.getNumResults() == 0)
    return;
  auto function = mlir::SymbolTable::lookupNearestSymbolFrom<mlir::func::FuncOp>(call, call.getCalleeAttr());
  std::string& name = called_[function];
  if (name.empty())
    name = writeFunction(function);
  llvm::SmallVector<std::string> arguments;
  for (mlir::Value operand : call.getOperands())
    arguments.push_back(text(operand));
  for (mlir::Value result : call.getResults().drop_front()) {
    set(result, declareAll(result.getType()));
    arguments.push_back(text(result));
  }
  set(call.getResult(0),
      declare(typeOf(call.getResult(0).getType()), concat(name, "(", llvm::join(arguments, ", "), ")")));
}

//===-- kernels -----------------------------------------------------------------------------------------------===//

std::string KernelWriter::signature(const std::vector<uint32_t>& tensors) {
  std::string text = concat("kernel void ", kernel_.getSymName().str(), "(");
  for (size_t k = 0; k < tensors.size(); ++k)
    text += concat("device uchar* ", artifact::metalTensorName(tensors[k]), " [[buffer(", k, ")]],\n    ");
  text += concat("constant ulong* vx_slots [[buffer(", artifact::kMetalSlotsBuffer, ")]],\n    ");
  if (usesReport_)
    text += concat("device uchar* vx_report [[buffer(", artifact::kMetalReportBuffer, ")]],\n    ");
  if (usesShared_)
    text += "threadgroup uchar* vx_shared [[threadgroup(0)]],\n    ";
  return text + "uint vx_thread [[thread_index_in_threadgroup]],\n    "
                "uint3 vx_block [[threadgroup_position_in_grid]],\n    uint3 vx_grid [[threadgroups_per_grid]]) {\n";
}

std::string KernelWriter::write(const std::vector<uint32_t>& tensors) {
  for (auto [slot, argument] : llvm::enumerate(kernel_.getBody().getArguments())) {
    mlir::Type type = argument.getType();
    if (argument.use_empty())
      continue;
    if (mlir::isa<vxt::PtrType>(type)) {
      set(argument, artifact::metalTensorName(static_cast<uint32_t>(slot)));
      continue;
    }
    if (type.isF64()) {
      fail(kernel_, "f64");
      continue;
    }
    std::string word = concat("vx_slots[", slot, "]");
    llvm::Type* own = llvmType(type);
    unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    set(argument,
        declare(typeName(own), bits == 1            ? concat("(", word, " & 1) != 0")
                               : own->isIntegerTy() ? concat(typeName(own), "(", word, ")")
                                                    : concat("as_type<", typeName(own), ">(",
                                                             bits == 32 ? "uint" : "ushort", "(", word, "))")));
  }
  writeBlock(kernel_.getBody().front());
  return signature(tensors) + body_ + "}\n";
}

Result<std::string> writeMetal(mlir::ModuleOp lowered, const TensorsOf& tensorsOf) {
  std::string text =
      "// Metal Shading Language 3.1. Compile with -fno-fast-math (fastMathEnabled = false, mathMode = safe).\n"
      "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n";
  std::string kernels;
  Functions functions;
  bool usesWideBits = false;
  for (vxt::KernelOp kernel : lowered.getOps<vxt::KernelOp>()) {
    KernelWriter writer(kernel, functions);
    kernels += "\n" + writer.write(tensorsOf(kernel.getSymName()));
    usesWideBits |= writer.usesWideBits;
    if (!writer.error.empty())
      return base::Error{writer.error};
  }
  return text + (usesWideBits ? kWideBits : "") + functions.text() + kernels;
}

}  // namespace vortex::target::metal

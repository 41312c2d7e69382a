// Small modules for the interpreter's tests: the entry and the kernels' signatures written from a list of arguments.
#pragma once

#include "interpreter/interpreter.h"
#include "ir/vx.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

namespace vortex::interpreter {

struct TestArgument {
  std::string name, type;  ///< "?x?xf32" for a global view; a scalar's type with isScalar
  std::string role = "param";
  std::vector<std::string> extents = {};  ///< size expressions, for results and temporaries
  bool zero = false;
  bool isScalar = false;
};

inline TestArgument input(const std::string& name, const std::string& type) { return {name, type}; }
inline TestArgument scalar(const std::string& name, const std::string& type) {
  return {name, type, "param", {}, false, true};
}
inline TestArgument result(const std::string& name, const std::string& type, const std::vector<std::string>& extents,
                           bool zero = false) {
  return {name, type, "result", extents, zero};
}
inline TestArgument temporary(const std::string& name, const std::string& type,
                              const std::vector<std::string>& extents) {
  return {name, type, "temp", extents};
}

/// A phase. Arguments are visible as %name. An empty grid makes it whole_tensor.
struct TestKernel {
  std::vector<std::string> grid, block;
  std::string body;
};

class TestProgram {
public:
  TestProgram(const std::vector<TestArgument>& arguments, const std::vector<TestKernel>& kernels,
              const std::string& more = {}) {
    auto join = [](const std::vector<std::string>& parts) {
      std::string text;
      for (const std::string& part : parts)
        text += (text.empty() ? "" : ", ") + part;
      return text;
    };
    auto sizes = [&](std::vector<std::string> programs) {
      for (std::string& program : programs)
        program = "#vx.size<\"" + program + "\">";
      return "[" + join(programs) + "]";
    };
    std::vector<std::string> types, facts, signature;
    for (const TestArgument& argument : arguments) {
      types.push_back(argument.isScalar ? argument.type : "!vx.view<" + argument.type + ", global>");
      signature.push_back("%" + argument.name + ": " + types.back());
      std::string access = argument.isScalar ? "" : ", access = #vx.access<readwrite>";
      std::string extents = argument.role == "param" ? "" : ", extents = " + sizes(argument.extents);
      facts.push_back("{name = \"" + argument.name + "\", role = #vx.role<" + argument.role + ">" + access + extents +
                      (argument.zero ? ", zero" : "") + "}");
    }
    std::string text = more + "\nvx.entry @test : (" + join(types) + ") -> () args [" + join(facts) + "]\n";
    for (const TestKernel& kernel : kernels)
      text +=
          "vx.kernel @phase" + std::to_string(&kernel - kernels.data()) + "(" + join(signature) + ")" +
          (kernel.grid.empty() ? " whole_tensor" : " grid " + sizes(kernel.grid) + " block " + sizes(kernel.block)) +
          " {\n" + kernel.body + "\nvx.return\n}\n";
    mlir::DialectRegistry registry;
    ir::registerVxDialects(registry);
    context_.appendDialectRegistry(registry);
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context_), "test.vx");
    EXPECT_TRUE(module_) << text;
  }

  std::vector<Finding> run(std::vector<Argument>& arguments, const Options& options = {}) {
    if (!module_)
      return {{.message = "the module does not parse"}};
    auto interpreter = Interpreter::create(*module_);
    EXPECT_TRUE(interpreter.ok()) << (interpreter ? "" : interpreter.error().message);
    if (!interpreter)
      return {};
    auto findings = interpreter->run(arguments, options);
    EXPECT_TRUE(findings.ok()) << (findings ? "" : findings.error().message);
    return findings ? *findings : std::vector<Finding>();
  }

  /// The text of what stopped the run, empty if nothing did.
  std::string runText(std::vector<Argument>& arguments, const Options& options = {}) {
    std::vector<Finding> findings = run(arguments, options);
    return findings.empty() ? "" : toText(findings[0]);
  }

  mlir::ModuleOp module() { return *module_; }

private:
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

template <typename T> Argument tensorOf(std::vector<T>& values, std::vector<int64_t> extents = {}) {
  if (extents.empty())
    extents = {int64_t(values.size())};
  return Argument::tensor(values.data(), extents);
}

template <typename T> const T* dataOf(const Argument& argument) { return static_cast<const T*>(argument.data); }

/// Opens a thread region over block extents %nx, 1, 1 with %x the thread and %i the global id.
inline std::string perThread(const std::string& body) {
  return R"(
  %one = arith.constant 1 : index
  %nx = vx.block_dim x
  %bx = vx.block_id x
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %linear: index):
    %base = arith.muli %bx, %nx : index
    %i = arith.addi %base, %x : index
)" + body +
         "\n  }\n";
}

}  // namespace vortex::interpreter

#include "target/gpu/tiles/testing/programs.h"

#include "base/fresh_seed.h"
#include "interpreter/interpreter.h"
#include "ir/launch.h"
#include "ir/size_attr.h"
#include "size/evaluate.h"
#include "target/gpu/testing/machine.h"
#include "target/interface/describe.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <llvm/ADT/APFloat.h>
#include <mlir/Parser/Parser.h>

namespace vortex::target::gpu::tiles::testing {

using gpu::testing::Launch;
using passes::testing::extentOf;
using passes::testing::RandomProgram;

namespace {

constexpr unsigned char kPoison = 0xCD;
constexpr int64_t kShortRow = 12288;  // f32, in registers

std::string elementOf(const RandomProgram::Tensor& tensor) {
  return !tensor.element.empty() ? tensor.element : tensor.isFloat ? "f32" : "i32";
}

size_t bytesOf(const RandomProgram::Tensor& tensor) {
  const std::string element = elementOf(tensor);
  return element == "f16" || element == "bf16" ? 2 : 4;
}

const llvm::fltSemantics& semanticsOf(const std::string& element) {
  return element == "f16"    ? llvm::APFloat::IEEEhalf()
         : element == "bf16" ? llvm::APFloat::BFloat()
                             : llvm::APFloat::IEEEsingle();
}

struct Storage {
  std::vector<char> ours, reference;
  std::vector<int64_t> extents, strides;
  size_t first = 0;  ///< byte of the first element
};

std::string viewText(const RandomProgram::Tensor& tensor) {
  std::string text = "!vx.view<";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += "?x";
  return text + elementOf(tensor) + ", global>";
}

std::string moduleText(const RandomProgram& program) {
  std::string types, arguments, attributes;
  for (const auto& tensor : program.tensors) {
    std::string comma = types.empty() ? "" : ", ";
    types += comma + viewText(tensor);
    arguments += comma + "%" + tensor.name + ": " + viewText(tensor);
    attributes += comma + "{name = \"" + tensor.name + "\", role = #vx.role<param>, access = #vx.access<readwrite>}";
  }
  return "vx.entry @test : (" + types + ") -> () args [" + attributes + "]\nvx.kernel @test.body(" + arguments +
         ") attributes {whole_tensor} {\n" + program.body + "  vx.return\n}\n";
}

void write(char* to, const std::string& element, float value) {
  llvm::APFloat number(value);
  bool lost = false;
  number.convert(semanticsOf(element), llvm::APFloat::rmNearestTiesToEven, &lost);
  const uint64_t bits = number.bitcastToAPInt().getZExtValue();
  std::memcpy(to, &bits, element == "f32" ? 4 : 2);
}

float read(const char* from, const std::string& element) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, element == "f32" ? 4 : 2);
  llvm::APFloat number(semanticsOf(element), llvm::APInt(element == "f32" ? 32 : 16, bits));
  bool lost = false;
  number.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return number.convertToFloat();
}

template <typename Visit> void forEachElement(const Storage& storage, size_t size, Visit visit) {
  size_t count = 1;
  for (int64_t extent : storage.extents)
    count *= static_cast<size_t>(extent);
  for (size_t i = 0; i < count; ++i) {
    int64_t rest = static_cast<int64_t>(i), offset = 0;
    for (size_t dim = storage.extents.size(); dim-- > 0;) {
      offset += rest % storage.extents[dim] * storage.strides[dim];
      rest /= storage.extents[dim];
    }
    visit(storage.first + static_cast<size_t>(offset) * size, i);
  }
}

/// The last element ends where the memory does.
void place(const RandomProgram::Tensor& tensor, Storage& storage, Layout layout) {
  const size_t size = bytesOf(tensor);
  int64_t stride = 1, last = 0;
  bool isEmpty = false;
  storage.strides.resize(storage.extents.size());
  for (size_t dim = storage.extents.size(); dim-- > 0;) {
    storage.strides[dim] = stride;
    last += (storage.extents[dim] - 1) * stride;
    isEmpty |= storage.extents[dim] == 0;
    stride *= storage.extents[dim];
    if (dim + 1 == storage.extents.size())
      stride += layout.pad;
  }
  storage.first = static_cast<size_t>(layout.shift) * size;
  storage.ours.assign(storage.first + (isEmpty ? 0 : static_cast<size_t>(last + 1) * size), static_cast<char>(kPoison));
}

void fill(const RandomProgram::Tensor& tensor, Storage& storage, std::mt19937& random, Layout layout) {
  place(tensor, storage, layout);
  std::normal_distribution<float> normal;
  const std::string element = elementOf(tensor);
  const float infinity = std::numeric_limits<float>::infinity();
  const size_t row = storage.extents.empty() ? 1 : std::max<size_t>(1, static_cast<size_t>(storage.extents.back()));
  unsigned kind = 0;
  size_t chosen = 0;
  if (!tensor.isResult)
    forEachElement(storage, bytesOf(tensor), [&](size_t at, size_t number) {
      if (number % row == 0) {
        kind = layout.isSpecial ? random() % 6 : 5;
        chosen = random() % row;
      }
      if (!tensor.isFloat) {
        const int32_t integer = static_cast<int32_t>(random() % 41) - 20;
        return static_cast<void>(std::memcpy(&storage.ours[at], &integer, 4));
      }
      float value = normal(random);
      const bool isChosen = number % row == chosen;
      if (kind == 0 || (kind == 1 && !isChosen) || (kind == 2 && random() % 2 == 0))
        value = -infinity;
      else if ((kind == 3 || kind == 4) && isChosen)
        value = kind == 3 ? infinity : std::numeric_limits<float>::quiet_NaN();
      write(&storage.ours[at], element, value);
    });
  storage.reference = storage.ours;
}

void addTensor(std::vector<uint64_t>& slots, const void* data, llvm::ArrayRef<int64_t> extents,
               llvm::ArrayRef<int64_t> strides) {
  slots.push_back(reinterpret_cast<uint64_t>(data));
  for (int64_t extent : extents)
    slots.push_back(static_cast<uint64_t>(extent));
  for (int64_t stride : strides)
    slots.push_back(static_cast<uint64_t>(stride));
}

std::vector<int64_t> rowMajor(llvm::ArrayRef<int64_t> extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t dim = extents.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * extents[dim];
  return strides;
}

int64_t evaluate(ir::SizeAttr size, mlir::TypeRange types, const std::vector<uint64_t>& slots) {
  return size::evaluate(size.getExpr(), [&](const size::Node& argument) {
    return static_cast<int64_t>(slots[ir::slotOf(argument, types)]);
  });
}

/// Runs the phases of one launch on the machine.
class Steps : public ir::LaunchActions {
public:
  /// `seed`: even: the launch's own cases.
  Steps(Lowered& lowered, Lowered& fast, mlir::TypeRange types, Launch& launch, unsigned seed)
      : lowered_(lowered), fast_(fast), types_(types), launch_(launch), drawsCases_(seed % 2 != 0), lot_(seed) {
    describeInterface(*lowered.vx->getOps<ir::EntryOp>().begin(), interface_);
  }

  bool run(ir::KernelOp phase) override {
    auto phases = lowered_.vx->getOps<ir::KernelOp>();
    const size::Expr areAligned = conditionFor(phase, interface_, {.unitStrides = true, .alignedRows = true});
    const bool isFast = !areAligned || valueOf(ir::SizeAttr::get(phase.getContext(), areAligned)) != 0;
    auto kernels = (isFast ? fast_ : lowered_).vxt->getOps<ir::vxt::KernelOp>();
    ir::vxt::KernelOp kernel = *std::next(kernels.begin(), std::distance(phases.begin(), llvm::find(phases, phase)));
    for (auto [axis, size] : llvm::enumerate(phase.getGrid()->getAsRange<ir::SizeAttr>()))
      launch_.grid[axis] = valueOf(size);
    auto tail = kernel->getAttrOfType<ir::SizeAttr>(Lowering::kSharedTail);
    launch_.sharedTail = tail ? std::optional(valueOf(tail)) : std::nullopt;
    std::string error = gpu::testing::run(kernel, launch_);
    if (!error.empty()) {
      lowered_.vx->dump();
      kernel.dump();
    }
    EXPECT_EQ(error, "") << phase.getSymName().str();
    return error.empty();
  }
  void set(unsigned argument, int64_t value) override {
    launch_.slots[slotOf(argument)] = static_cast<uint64_t>(value);
  }
  void exchange(unsigned a, unsigned b) override { std::swap(launch_.slots[slotOf(a)], launch_.slots[slotOf(b)]); }
  int64_t read(unsigned temporary) override {
    return *reinterpret_cast<const int64_t*>(launch_.slots[slotOf(temporary)]);
  }
  int64_t valueOf(ir::SizeAttr size) override { return evaluate(size, types_, launch_.slots); }
  bool isTaken(ir::CaseOp each) override {
    if (!drawsCases_)
      return LaunchActions::isTaken(each);
    return (!each.getNeeds() || valueOf(*each.getNeeds()) != 0) && lot_() % 2 == 0;
  }

private:
  size_t slotOf(unsigned argument) {
    const auto op = types_[argument].isIndex() ? size::Op::Scalar : size::Op::Address;
    return ir::slotOf(size::Node{.op = op, .argument = argument}, types_);
  }

  Lowered &lowered_, &fast_;
  artifact::Kernel interface_;
  mlir::TypeRange types_;
  Launch& launch_;
  const bool drawsCases_;
  std::mt19937_64 lot_;
};

/// Runs the phases that a launch takes, or of cases drawn by lot, with temporaries full of garbage, in the versions that the tensors allow.
void launch(Lowered& lowered, Lowered& fast, std::vector<Storage>& storages, unsigned seed) {
  Launch base;
  base.seed = seed;
  for (Storage& storage : storages) {
    addTensor(base.slots, storage.ours.data() + storage.first, storage.extents, storage.strides);
    base.memory.push_back({storage.ours.data() + storage.first, storage.ours.size() - storage.first});
  }
  auto entry = *lowered.vx->getOps<ir::EntryOp>().begin();
  mlir::TypeRange types = llvm::cast<mlir::FunctionType>(entry.getFunctionType()).getInputs();
  std::vector<std::vector<uint64_t>> temporaries;
  for (size_t i = storages.size(); i < types.size(); ++i) {
    auto extents = llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[i]).getAs<mlir::ArrayAttr>("extents");
    if (!extents) {  // a let
      base.slots.push_back(0);
      continue;
    }
    std::vector<int64_t> sizes;
    size_t count = 1;
    for (auto size : extents.getAsRange<ir::SizeAttr>()) {
      sizes.push_back(evaluate(size, types, base.slots));
      count *= static_cast<size_t>(sizes.back());
    }
    temporaries.emplace_back(count + 1, 0xFBFBFBFBFBFBFBFB);
    addTensor(base.slots, temporaries.back().data(), sizes, rowMajor(sizes));
    auto element = llvm::cast<ir::ViewType>(types[i]).elementBytes();
    base.memory.push_back({reinterpret_cast<char*>(temporaries.back().data()), count * static_cast<size_t>(element)});
  }
  Steps steps(lowered, fast, types, base, seed);
  ir::walkLaunch(*lowered.vx, steps);
}

void interpret(const std::string& text, std::vector<Storage>& storages) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  auto interpreter = interpreter::Interpreter::create(*module);
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  std::vector<interpreter::Argument> arguments;
  for (Storage& storage : storages)
    arguments.push_back(
        interpreter::Argument::tensor(storage.reference.data() + storage.first, storage.extents, storage.strides));
  auto findings = interpreter->run(arguments);
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_TRUE(findings->empty()) << interpreter::toText(findings->front());
}

void compare(const RandomProgram::Tensor& tensor, const Storage& storage, Tolerance tolerance) {
  const std::string element = elementOf(tensor);
  std::vector<char> between = storage.ours;
  forEachElement(storage, bytesOf(tensor), [&](size_t at, size_t number) {
    if (::testing::Test::HasFatalFailure())
      return;
    std::memset(&between[at], kPoison, bytesOf(tensor));
    if (!tensor.isFloat) {
      ASSERT_EQ(std::memcmp(&storage.ours[at], &storage.reference[at], 4), 0)
          << "element " << number << " of " << tensor.name;
      return;
    }
    const float ours = read(&storage.ours[at], element), reference = read(&storage.reference[at], element);
    if ((std::isnan(reference) && std::isnan(ours)) || ours == reference)
      return;
    ASSERT_NEAR(ours, reference, tolerance.absolute + tolerance.relative * std::abs(reference))
        << "element " << number << " of " << tensor.name;
  });
  ASSERT_EQ(between, std::vector<char>(between.size(), static_cast<char>(kPoison)))
      << "between the rows of " << tensor.name;
}

}  // namespace

Compiled::Compiled(const RandomProgram& program)
    : program_(program), text_(moduleText(program)), general_(lower(context_, text_)),
      fast_(lower(context_, text_, {.unitStrides = true, .alignedRows = true})),
      longRows_(lower(context_, text_, {.longRows = true})),
      fastLongRows_(lower(context_, text_, {.unitStrides = true, .alignedRows = true, .longRows = true})) {}

std::string Compiled::scheduled() {
  std::string text;
  llvm::raw_string_ostream(text) << *general_.vx;
  return text;
}

void Compiled::check(Sizes sizes, std::mt19937& random, Layout layout, Tolerance tolerance) {
  std::vector<Storage> storages(program_.tensors.size());
  for (auto [tensor, storage] : llvm::zip(program_.tensors, storages)) {
    for (const std::string& symbol : tensor.shape)
      storage.extents.push_back(extentOf(symbol, sizes.m, sizes.n, sizes.p, sizes.b));
    fill(tensor, storage, random, layout);
  }
  std::vector<Storage> again = storages;
  const auto seed = static_cast<unsigned>(random());
  const bool isLong = random() % (sizes.n > kShortRow ? 2 : 4) == 0;
  launch(isLong ? longRows_ : general_, isLong ? fastLongRows_ : fast_, storages, seed);
  launch(isLong ? longRows_ : general_, isLong ? fastLongRows_ : fast_, again, seed);
  if (::testing::Test::HasFatalFailure())
    return;
  interpret(text_, storages);
  for (auto [tensor, storage, other] : llvm::zip(program_.tensors, storages, again)) {
    ASSERT_EQ(storage.ours, other.ours) << "two runs differ in " << tensor.name;
    compare(tensor, storage, tolerance);
    if (::testing::Test::HasFatalFailure())
      return;
  }
}

RandomProgram rowProgram(const std::vector<std::string>& result, const std::string& body, const std::string& element,
                         const std::string& to) {
  const std::string extents = result.size() == 2 ? "?x?x" : "?x", type = "tensor<" + extents + to + ">";
  const std::string from = "!vx.view<?x?x" + element + ", global>", view = "!vx.view<" + extents + to + ", global>";
  RandomProgram program;
  program.tensors = {{"x", {"m", "n"}, true, false, element}, {"o", result, true, true, to}};
  program.body = "  %c0 = arith.constant 0 : index\n  %m = vx.dim %x, 0 : " + from + "\n  %n = vx.dim %x, 1 : " + from +
                 "\n  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : " + from + " -> tensor<?x?x" + element +
                 ">\n" + body + "  vx.tile_store %r, %o[" + (result.size() == 2 ? "%c0, %c0" : "%c0") +
                 "] inbounds : " + type + ", " + view + "\n";
  return program;
}

void runSizes(const RandomProgram& program, std::initializer_list<Sizes> all, Layout layout, Tolerance tolerance) {
  std::mt19937 random(base::freshSeed());
  Compiled compiled(program);
  ASSERT_EQ(compiled.error(), "");
  for (Sizes sizes : all) {
    SCOPED_TRACE("m " + std::to_string(sizes.m) + " n " + std::to_string(sizes.n));
    compiled.check(sizes, random, layout, tolerance);
    if (::testing::Test::HasFatalFailure())
      return;
  }
}

}  // namespace vortex::target::gpu::tiles::testing

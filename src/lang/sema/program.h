// The typed program: what sema produces and irgen, the host evaluator and the driver consume. Every function here is one instance:
// types are concrete up to its own dimension variables; conversions, broadcasts, dereferences and argument order are explicit;
// `match`, patterns, methods, named and default arguments, `where` and generics are gone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lang/sema/expr.h"

namespace vortex::lang {

struct Variable {
  std::string name;
  Type type = nullptr;
  source::SourceRange range;
  bool isVar = false;  ///< reassignable (also `let` of tensor type)
  bool isParam = false;
  uint32_t index = 0;            ///< dense per Function
  bool isResultStorage = false;  ///< `var out: <result type>` that is returned: names the kernel's result
  /// The same where only its first value gives the type, as that of a tensor without memory has: `let v = out` copies it.
  bool isStoredValue = false;
  bool isDeferred = false;  ///< declared without a value; ownership analysis proves that it has one where it is used
  Uniformity uniformity = Uniformity::Uniform;  ///< kernel analysis
  /// A distributed accumulator written as the part of one thread, `[p, q]`; the type has the shape of the whole, `[P, Q]`.
  std::vector<DimExpr> fragment;
};

/// Where the value of a dimension variable comes from at launch (or call): extent `dim` of parameter `param` (through a reference;
/// `fieldPath` for tensors inside struct parameters) equals this variable; otherwise bound by a `let` type in the body.
struct DimBinding {
  std::string name;
  source::SourceRange range;
  std::optional<uint32_t> param;
  uint32_t dim = 0;
  std::vector<uint32_t> fieldPath;
  /// The extent is this many times the variable (`[G * R]`, where G is known); none: once.
  std::optional<DimExpr> factor;
  bool isScalarValue = false;       ///< the value of the integer parameter `param` itself, not an extent
  std::optional<int64_t> constant;  ///< a const generic or specialised value
};

/// `where N: PowerOfTwo`, extents of parameters that must equal expressions, and what shapes of the body need of extents: quotients that
/// are exact, differences that are no less than 0. Checked before launch.
struct LaunchCheck {
  enum class Kind : uint8_t { ExtentEquals, PowerOfTwo, NonZero, NotNegative, Exact } kind = Kind::ExtentEquals;
  uint32_t param = 0, dim = 0;  ///< ExtentEquals: this extent …
  std::vector<uint32_t> fieldPath = {};
  DimExpr expected = {};  ///< … must have this value; PowerOfTwo/NonZero/NotNegative: the value; Exact: the dividend
  DimExpr divisor = {};   ///< Exact
  DimExpr agrees = {}, with = {};  ///< Exact: what has to be equal; if it is, remainders do no harm
  source::SourceRange range = {};  ///< of the shape entry, the where clause, or the expression
  bool operator==(const LaunchCheck& other) const {
    return std::tie(kind, param, dim, fieldPath, expected, divisor, agrees, with) ==
           std::tie(other.kind, other.param, other.dim, other.fieldPath, other.expected, other.divisor, other.agrees,
                    other.with);
  }
  bool isOfValue() const { return kind == Kind::PowerOfTwo || kind == Kind::NonZero; }
};

struct Function;
void addCheck(Function& function, LaunchCheck check);  ///< unless it is there

enum class GridKind : uint8_t {
  WholeTensor,  ///< the body names no block.* or thread.*: the compiler picks the grid
  Explicit,     ///< @launch or .launch(...): grid and block given (a missing one defaulted by the rules)
  Domain,       ///< extents of tensors subscripted by exactly thread.global_id(.x/.y/.z)
};

enum class ReduceKind : uint8_t { None, Add, Mul, Min, Max, And, Or, Function };

/// `@tile(m = …, n = …, k = …)`: the output's last dimensions are cut into tiles, one per block.
struct TileSpec {
  std::vector<int64_t> extents;    ///< of the block's tile, in the order of the output's dimensions
  std::vector<Variable*> offsets;  ///< `block_m`, `block_n`: of the tile's first element, in the same order
  int64_t elements() const {       ///< at most 2^62
    int64_t count = 1;
    for (int64_t extent : extents)
      count = extent != 0 && count > (int64_t{1} << 62) / extent ? int64_t{1} << 62 : count * extent;
    return count;
  }
  std::optional<int64_t> k;  ///< step along the inner dimension, for schedules
  source::SourceRange range;
};

/// What a proof about races counts on: the product of these sizes is at most so much, each counted as 1 at least. The launch is refused else.
struct LaunchLimit {
  std::vector<DimVarId> dims;
  std::vector<uint32_t> scalars;        ///< parameters
  std::optional<uint32_t> blocksAlong;  ///< of the blocks along this axis, and of nothing else
  bool isExact = false;                 ///< of blocks: fewer are refused, too, unless there are none
  bool ofThreads = false;               ///< all of the launch
  /// More would draw a number twice: threads, or the bound that loops draw up to. Else they would not fit the integers they are counted in.
  bool ofTickets = false;
  int64_t most = 0;
  bool operator==(const LaunchLimit&) const = default;
};

struct KernelSpec {
  GridKind gridKind = GridKind::WholeTensor;
  std::vector<Expr*> grid;   ///< Explicit: blocks per axis (may be empty when .launch supplies it)
  std::vector<Expr*> block;  ///< Explicit: threads per axis; Domain: empty = compiler's choice (256, or 16×16, 8×8×4)
  std::vector<DimExpr> domain;           ///< Domain: extents in x, y, z order
  ReduceKind reduce = ReduceKind::None;  ///< `-> T reduce(op)`
  Function* reduceFunction = nullptr;
  std::optional<TileSpec> tile;
  /// A result has an element of each thread: that at its `thread.global_id`, with `@tile` the element of the block's tile that has its number.
  bool returnsElements = false;
  bool strict = false, fastMath = false;
  bool fused = false;        ///< one launch, or an error
  bool cooperative = false;  ///< all blocks of a launch run at the same time
  bool allowsTf32 = false;   ///< f32 products may round their operands to tf32
  bool uncheckedBounds = false, uncheckedRaces = false, uncheckedInit = false, uncheckedCoalescing = false;
  std::vector<LaunchLimit> limits;
  /// Threads along x, y and z of the blocks that the checks hold for; nothing where they hold for any number. Launches with others are refused.
  std::vector<std::array<std::optional<int64_t>, 3>> checkedBlocks;
  source::SourceRange verifyBanks;  ///< `@verify_no_bank_conflicts` on the kernel; invalid without it
};

/// A line of the build report: about an access, "4-way bank conflict …", or a barrier of the compiler's.
struct BuildNote {
  std::string_view what;  ///< "access", "barrier"
  source::SourceRange range;
  std::string text;
};

/// A parameter of a generic kernel in one instance, and which argument of a launch tells it.
struct GenericArgument {
  std::string value;              ///< "f32", "256"
  std::optional<uint32_t> param;  ///< a tensor whose elements have the type, or whose extent is the constant
  std::optional<uint32_t> dim;    ///< of a constant: which extent
};

/// A parameter of a generic kernel for which only the check has chosen an argument.
struct ExampleArgument {
  std::string name;
  bool isConstant = false;
};

struct Function {
  std::string name;        ///< the user's name
  std::string uniqueName;  ///< with module and instance arguments: "scale.my_kernel<f32>"
  /// Kernels: of what is built from it, distinct in the program: "my_kernel-f32", the arguments of the instance joined by '-'.
  std::string artifactName;
  bool isKernel = false;
  bool inKernel = false;  ///< a kernel, or an instance of a `fn` for calls from kernels
  bool isTest = false, isBench = false;
  bool staysFunction = false;   ///< `@noinline`
  std::string chosenArguments;  ///< "checked with B = 256": nothing but the check has made this instance
  source::SourceRange range, nameRange;
  std::vector<Variable*> params;
  Type resultType = nullptr;  ///< kernels: unit, tensor, scalar (with reduce), or a tuple of these
  source::SourceRange resultRange;
  std::vector<DimBinding> dims;
  /// The variables whose values opaque terms of extents are, by the term's number; of kernels those that never change.
  std::map<uint32_t, const Variable*> extentVariables;
  std::vector<LaunchCheck> checks;
  std::vector<std::unique_ptr<Variable>> variables;  ///< all, parameters first
  Expr* body = nullptr;
  std::optional<KernelSpec> kernel;
  /// Of kernels: the functions that stay functions, as code generation emits them. What is known of a call is known of its Inline, whose
  /// `function` is one of these. Their bodies are an Inline that takes the returns; `source` is the function as written.
  std::vector<std::unique_ptr<Function>> kept;
  const Function* source = nullptr;
  std::vector<GenericArgument> genericArguments;  ///< of kernels
  std::vector<ExampleArgument> examples;          ///< of a generic kernel that nothing uses
  std::vector<BuildNote> notes;                   ///< of kernels, those of each kind in source order

  std::vector<std::string> dimNames() const;
};

/// Owns everything a program consists of.
struct Program {
  TypeContext types;
  std::deque<std::unique_ptr<Function>>
      functions;  ///< every instance that main, tests, benches or a check instance reaches
  std::deque<Expr> exprs;
  std::deque<std::unique_ptr<StructDecl>> structs;
  Function* main = nullptr;         ///< fn main() of the root module, if any
  std::vector<Function*> kernels;   ///< every kernel instance, in source order
  std::set<std::string> fixedDims;  ///< names of AnalyzeOptions::fixedDims that are dimensions of a kernel

  Expr* newExpr(ExprKind kind, Type type, source::SourceRange range);
};

}  // namespace vortex::lang

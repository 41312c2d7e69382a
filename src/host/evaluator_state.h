// The tree walk's state, shared by the files that implement it. Not part of the folder's interface.
#pragma once

#include "host/evaluator.h"

#include <functional>
#include <map>

namespace vortex::host {

/// One call of a host function.
struct Frame {
  const lang::Function* function = nullptr;
  std::vector<Value> slots;                  ///< by Variable::index; addresses stay valid during the call
  std::vector<std::optional<int64_t>> dims;  ///< by DimVarId
};

enum class Flow : uint8_t { Normal, Break, Continue, Return, Stop };

class Evaluator {
public:
  Evaluator(Backend& backend, diag::DiagnosticSink& sink, const Options& options)
      : backend_(backend), sink_(sink), options_(options) {}

  int run(const lang::Function& function);

  // Every eval returns an arbitrary value when stopped() afterwards; callers test after each operand that matters.
  Value eval(const lang::Expr& expr);
  bool interrupted() const { return flow_ != Flow::Normal; }

private:
  // control.cpp
  Value evalBlock(const lang::Expr& expr);
  Value evalLet(const lang::Expr& expr);
  Value evalIf(const lang::Expr& expr);
  Value evalWhile(const lang::Expr& expr);
  Value evalLoop(const lang::Expr& expr);
  Value evalFor(const lang::Expr& expr);
  bool runBody(const lang::Expr& body);                     ///< false: leave the loop
  bool enterCall(const lang::Expr& at, std::string label);  ///< false after E0709
  Value call(const lang::Function& function, std::vector<Value> arguments, const lang::Expr& at);
  Value callClosure(const Value& closure, std::span<const Value> arguments, const lang::Expr& at);
  Value evalLaunch(const lang::Expr& expr);
  void flattenArgument(lang::Type type, const Value& argument, const lang::Expr& at, std::vector<LaunchArgument>& to);

  // operators.cpp
  Value evalUnary(const lang::Expr& expr);
  Value evalBinary(const lang::Expr& expr);
  Value binary(lang::BinaryOp op, lang::Scalar type, const Value& lhs, const Value& rhs, const lang::Expr& at);
  Value wrapped(lang::Scalar type, __int128 value, const lang::Expr& at);
  Value evalCast(const lang::Expr& expr);
  Value math(lang::Builtin builtin, lang::Scalar type, std::span<const Value> args);

  // ownership.cpp
  Value evalInPlace(const lang::Expr& expr);
  Value moveOut(const lang::Expr& place);
  /// A value of its own: lists, arrays and device memory inside are copied.
  Value duplicate(const Value& value, const lang::Expr& at);

  // places.cpp
  Reference place(const lang::Expr& expr);
  Value load(const Reference& reference, const lang::Expr& at);
  void store(const Reference& reference, const Value& value);
  Value evalAssign(const lang::Expr& expr);
  bool sharesExtents(const lang::Expr& assign, const Value& value, const Value* fields);
  Value evalElement(const lang::Expr& expr);
  Value evalSlice(const lang::Expr& expr);
  static TensorValue fieldOf(const TensorValue& tensor, uint32_t field);
  Value deref(const Value& value, const lang::Expr& at);
  std::optional<size_t> checkedIndex(const Value& index, size_t size, const lang::Expr& at);
  Value* slotOf(const lang::Variable* variable);

  // dims.cpp
  std::optional<int64_t> evaluate(const lang::DimExpr& dim) const;
  bool bindShape(lang::Type type, const Value& value, const lang::Expr& at);
  std::optional<std::vector<int64_t>> shapeOf(lang::Type tensor, std::optional<int64_t> elementCount,
                                              const lang::Expr& at);
  std::optional<std::vector<int64_t>> writtenShape(const lang::Expr& list, size_t count);

  // builtins.cpp, builtins_text.cpp, builtins_tensor.cpp, builtins_vec.cpp
  Value evalBuiltin(const lang::Expr& expr);
  std::optional<Value> vecBuiltin(const lang::Expr& expr);
  bool mayChangeLength(const VecValue& list, const lang::Expr& at);
  std::optional<Value> tensorBuiltin(const lang::Expr& expr);
  std::optional<Value> textBuiltin(const lang::Expr& expr);
  Value random(const lang::Expr& expr);
  Value fromHost(const lang::Expr& expr);
  Value toHost(const lang::Expr& expr);
  Value loadNpy(const lang::Expr& expr);
  Value saveNpy(const lang::Expr& expr);
  Value assertClose(const lang::Expr& expr);
  std::string format(const Value& value, lang::Type type);
  std::string formatList(const lang::Expr& expr, size_t first);

  /// A list of `count` elements without values; null after E0703.
  std::shared_ptr<VecStorage> makeList(lang::Type elem, int64_t count, const lang::Expr& at);
  std::vector<Value> evalArgs(const lang::Expr& expr);
  std::optional<TensorValue> makeTensor(lang::Scalar type, std::vector<int64_t> extents, const lang::Expr& at);
  // struct_tensors.cpp
  /// Storage of a tensor with these elements: scalars or structs.
  std::optional<TensorValue> makeTensorOf(lang::Type element, std::vector<int64_t> extents, const lang::Expr& at);
  /// Writes elements, of which `elementAt` gives each by its row-major number, to storage that makeTensorOf made. False after an error.
  bool writeElements(const TensorValue& tensor, lang::Type element, const std::function<Value(size_t)>& elementAt,
                     const lang::Expr& at);
  /// The elements as a list of structs; null after an error.
  std::shared_ptr<VecStorage> readElements(const TensorValue& tensor, const lang::Expr& at);
  /// All tensors and scalars that make up the results of a launch, in order, as values of the result's type.
  Value resultValue(lang::Type type, std::span<const LaunchArgument>& results);
  /// All elements, row-major, packed.
  /// False, with E0703, where memory does not have so many bytes.
  bool fits(unsigned __int128 bytes, const lang::Expr& at);
  std::optional<std::vector<uint8_t>> download(const TensorValue& tensor, const lang::Expr& at);
  /// A flat list of numbers of a Vec, array or tensor for comparisons; null after an error.
  std::optional<std::vector<double>> numbersOf(const Value& value, const lang::Expr& at);

  Value fail(std::string_view id, const lang::Expr& at, std::string message, std::string label = {},
             std::string help = {});

  Backend& backend_;
  diag::DiagnosticSink& sink_;
  const Options& options_;
  Frame* frame_ = nullptr;
  Flow flow_ = Flow::Normal;
  Value flowValue_;
  uint32_t depth_ = 0;
  uintptr_t stackLimit_ = 0;  ///< calls from below this address are refused
  int exitStatus_ = 0;
};

}  // namespace vortex::host

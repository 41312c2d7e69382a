// Checked construction of a kernel of the typed program, for front ends without a syntax tree. Every expression is made with operands whose
// types already agree; VORTEX_CHECK stops a front end that does not keep to it.
#pragma once

#include "lang/sema/program.h"

#include <string>
#include <string_view>
#include <vector>

namespace vortex::lang {

class KernelBuilder {
public:
  /// Adds a kernel without parameters to the program.
  KernelBuilder(Program& program, std::string name, source::SourceRange range);

  Function& function() { return *function_; }
  TypeContext& types() { return program_.types; }
  /// Where what is made from here on stands in the source.
  void at(source::SourceRange range) { range_ = range; }
  source::SourceRange range() const { return range_; }

  // parameters
  Variable* scalarParam(std::string name, Scalar type);
  /// A borrowed tensor in global memory; its extents are dimension variables of their own.
  Variable* tensorParam(std::string name, Scalar element, uint32_t rank, bool isWritten);
  void setLaunch(std::vector<Expr*> grid, int64_t threads);

  // values
  Expr* integer(Scalar type, __int128 value);
  Expr* real(Scalar type, double value);
  Expr* boolean(bool value);
  Expr* text(std::string value);
  Expr* read(Variable* variable);
  Expr* unary(UnaryOp op, Expr* value);
  /// Both sides have one type; comparisons give bool, or a tile of bool.
  Expr* binary(BinaryOp op, Expr* lhs, Expr* rhs);
  /// Nothing to do gives the value itself. Of a tile: its elements.
  Expr* cast(Expr* value, Scalar to);
  /// A number, or a tile along its dimensions of extent 1, repeated to a tile of these extents.
  Expr* broadcast(Expr* value, int64_t rows, int64_t columns);
  Expr* select(Expr* condition, Expr* then, Expr* otherwise);
  Expr* dot(Expr* lhs, Expr* rhs, Scalar element);
  Expr* zeros(Scalar element, int64_t rows, int64_t columns);
  /// An elementwise function: the result has the type of the first operand.
  Expr* elementwise(Builtin builtin, std::vector<Expr*> args);
  Expr* builtin(Builtin builtin, Type type, std::vector<Expr*> args, std::vector<int64_t> ints = {});

  /// Changes an element in one step, relaxed, and gives what it was before.
  Expr* atomic(Builtin builtin, Expr* element, Expr* value);
  /// Relaxed, one step for the device or for the block alone.
  Expr* atomicStore(Expr* element, Expr* value, bool isOfDevice);
  /// Of a tile along a dimension, which stays with extent 1: ReduceSum, ReduceMax, ReduceMin.
  Expr* reduce(Builtin builtin, Expr* tile, int64_t dim);
  Expr* transpose(Expr* tile);

  // places
  Expr* element(Variable* tensor, std::vector<Expr*> indices);
  Expr* element(Variable* vector, Expr* index) { return element(vector, std::vector<Expr*>{index}); }
  Expr* whole(Variable* tensor);
  /// `count` rows of a matrix from `first` on; those that it does not have are missing.
  Expr* rowsOf(Expr* matrix, Expr* first, Expr* count);
  /// Rows [row, row + rows) and columns likewise of a matrix.
  Expr* window(Expr* matrix, Expr* row, int64_t rows, Expr* column, int64_t columns);

  // statements, appended to the innermost open block
  Variable* let(std::string name, Expr* value, bool isVar = false);
  /// Shared memory of the block.
  Variable* shared(std::string name, Scalar element, const std::vector<int64_t>& extents);
  void assign(Expr* place, Expr* value);
  void addAssign(Expr* place, Expr* value);
  void run(Expr* statement);
  void openIf(Expr* condition);
  /// The variable counts from begin in steps; all of type i64.
  Variable* openFor(std::string name, Expr* begin, Expr* end, Expr* step);
  void openWhile(Expr* condition);
  void close();

private:
  Variable* variable(std::string name, Type type);
  Expr* make(ExprKind kind, Type type, std::vector<Expr*> args);
  Type withElement(Type type, Scalar element);
  Program& program_;
  Function* function_;
  source::SourceRange range_;
  std::vector<Expr*> open_;  ///< blocks
  uint32_t unknownExtents_ = 0;
};

/// The element type of a number or a tile.
Scalar scalarOf(Type type);

}  // namespace vortex::lang

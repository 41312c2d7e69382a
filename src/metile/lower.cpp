#include "metile/lower.h"

#include "base/check.h"
#include "lang/sema/integers.h"
#include "metile/emitter.h"

#include <algorithm>

namespace vortex::metile {

using lang::Scalar;

void lower(const Trace& trace, std::vector<Kind> kinds, lang::Program& program, diag::DiagnosticSink& sink,
           const Additions& additions) {
  Emitter(trace, std::move(kinds), program, sink, additions).run();
}

Emitter::Emitter(const Trace& trace, std::vector<Kind> kinds, lang::Program& program, diag::DiagnosticSink& sink,
                 const Additions& additions)
    : trace_(trace), sink_(sink), additions_(additions), kinds_(std::move(kinds)), variations_(variationOf(trace)),
      b_(program, trace.kernel, trace.range), values_(static_cast<size_t>(trace.values)) {}

/// A value that was made in an iteration is gone after the loop: Python could have kept it in an object or a variable of another function.
bool Emitter::checkScopes() {
  std::vector<std::vector<int64_t>> open(1);
  std::vector<bool> known(static_cast<size_t>(trace_.values));
  const auto declare = [&](int64_t id) {
    known[static_cast<size_t>(id)] = true;
    open.back().push_back(id);
  };
  for (const Op& op : trace_.ops) {
    const bool opensLoop = op.name == "loop" || op.name == "draw", declaresFirst = opensLoop || op.name == "carry";
    for (size_t i = declaresFirst ? 1 : 0; i < op.operands.size(); ++i)
      if (op.operands[i].kind == Operand::Kind::Value && !known[static_cast<size_t>(op.operands[i].number)]) {
        sink_.error("E0713", op.range, "a value that was computed in a loop is used outside of it")
            .primary("this uses it")
            .help("give the name a value before the loop: names of the function that the loop rebinds are carried");
        return false;
      }
    if (opensLoop)
      open.emplace_back();
    if (declaresFirst)
      declare(op.operands[0].number);
    if (op.result >= 0)
      declare(op.result);
    if (op.name == "end") {
      for (const int64_t id : open.back())
        known[static_cast<size_t>(id)] = false;
      open.pop_back();
    }
  }
  return true;
}

void Emitter::run() {
  if (!checkScopes())
    return;
  declareParams();
  declareShared();
  fillWithZeros();
  for (const Op& op : trace_.ops) {
    b_.at(op.range);
    visit(op);
  }
}

void Emitter::declareParams() {
  for (const Param& param : trace_.params) {
    switch (param.kind) {
    case Param::Kind::Pointer:
      params_.push_back(b_.tensorParam(param.name, scalarOf(*dtypeNamed(param.element)), param.rank, param.isWritten));
      break;
    case Param::Kind::Int: params_.push_back(b_.scalarParam(param.name, Scalar::I32)); break;
    case Param::Kind::Float: params_.push_back(b_.scalarParam(param.name, Scalar::F32)); break;
    }
  }
  std::vector<Expr*> grid;
  for (const char* name : {"grid_x", "grid_y", "grid_z"}) {
    Variable* size = b_.scalarParam(name, Scalar::I32);
    const bool isAxis = trace_.axes[grid.size()];
    grid.push_back(isAxis && !trace_.grid ? b_.cast(b_.read(size), Scalar::Usize)
                                          : b_.integer(Scalar::Usize, isAxis ? (*trace_.grid)[grid.size()] : 1));
  }
  b_.setLaunch(std::move(grid), trace_.threads);
}

/// At the beginning: loops do not declare memory again.
void Emitter::declareShared() {
  for (const Op& op : trace_.ops)
    if (op.name == "shared") {
      b_.at(op.range);
      const int64_t columns = op.operands[2].number;
      values_[static_cast<size_t>(op.result)].variable = b_.shared(
          op.operands[3].word.empty() ? "shared" : op.operands[3].word, scalarOf(*dtypeNamed(op.operands[1].word)),
          columns > 0 ? std::vector<int64_t>{op.operands[0].number / columns, columns}
                      : std::vector<int64_t>{op.operands[0].number});
    }
}

/// A round for as many elements as there are lanes.
void Emitter::fillWithZeros() {
  const auto number = [this](int64_t of) { return b_.integer(Scalar::I64, of); };
  for (const Op& op : trace_.ops) {
    if (op.name != "shared" || !additions_.zeroed.contains(op.result))
      continue;
    b_.at(op.range);
    const int64_t size = op.operands[0].number;
    Variable* to = values_[static_cast<size_t>(op.result)].variable;
    const std::string suffix = std::to_string(names_++);
    Variable* first = b_.openFor("first" + suffix, number(0), number(size), number(trace_.threads));
    Variable* at =
        b_.let("at" + suffix, b_.binary(lang::BinaryOp::Add, b_.read(first), position(lang::Builtin::ThreadLocalId)));
    const bool isWhole = size % trace_.threads == 0;
    if (!isWhole)
      b_.openIf(b_.binary(lang::BinaryOp::Lt, b_.read(at), number(size)));
    b_.assign(element(to, b_.read(at)), constant(*dtypeNamed(op.operands[1].word), 0));
    if (!isWhole)
      b_.close();
    b_.close();
  }
  if (!additions_.zeroed.empty())
    barrier();
}

/// Integers come as i32, so that products of two of them are exact, and count as indices from then on.
Emitter::Expr* Emitter::param(size_t index) {
  if (const std::optional<int64_t> known = trace_.params[index].known)
    return b_.integer(Scalar::I64, *known);
  Variable* variable = params_[index];
  Expr* value = b_.read(variable);
  return lang::scalarOf(variable->type) == Scalar::I32 ? b_.cast(value, Scalar::I64) : value;
}

void Emitter::visit(const Op& op) {
  if (visitStatement(op))
    return;
  if (op.name == "pid")
    return define(op, position(lang::Builtin::BlockId, {op.operands[0].number}));
  if (op.name == "programs")
    return define(op, position(lang::Builtin::GridDim, {op.operands[0].number}));
  if (op.name == "tid")
    return define(op, position(lang::Builtin::ThreadLocalId));
  if (op.name == "lane")
    return define(op, position(lang::Builtin::LaneId));
  if (op.name == "param")
    return define(op, param(static_cast<size_t>(op.operands[0].number)));
  if (op.name == "cast" || op.name == "scalar" || op.name == "index")
    return define(op, operand(op, 0, resultKind(op)));
  if (op.name == "zeros")
    return define(op, b_.zeros(scalarOf(resultKind(op).dtype), op.operands[0].number, op.operands[1].number));
  if (op.name == "where")
    return where(op);
  if (op.name == "load")
    return load(op);
  if (op.name == "tile_load")
    return tileLoad(op);
  if (op.name == "positions")
    return positions(op);
  if (op.name == "only")
    return only(op);
  if (op.name == "dot")
    return dot(op);
  if (op.name == "transpose")
    return define(op, b_.transpose(operand(op, 0, resultKind(op).transposed())));
  if (op.name.starts_with("tile_"))
    return tileReduce(op);
  if (op.name.starts_with("atomic_"))
    return atomic(op);
  if (op.name == "sum" || op.name == "max" || op.name == "min")
    return blockReduce(op);
  if (op.name.starts_with("simd_"))
    return warp(op);
  if (Expr* value = binary(op))
    return define(op, value);
  define(op, function(op));
}

bool Emitter::visitStatement(const Op& op) {
  if (op.name == "shared")
    return true;
  if (op.name == "store")
    return store(op), true;
  if (op.name == "tile_store")
    return tileStore(op), true;
  if (op.name == "barrier")
    return barrier(), true;
  if (op.name == "loop")
    return loop(op), true;
  if (op.name == "draw")
    return drawLoop(op), true;
  if (op.name == "carry")
    return carry(op), true;
  if (op.name == "yield")
    return yield(op), true;
  if (op.name == "print" || op.name == "assert")
    return print(op), true;
  if (op.name != "end")
    return false;
  return endLoop(), true;
}

void Emitter::endLoop() {
  for (const auto& [variable, value] : yields_)
    b_.assign(b_.read(variable), value);
  yields_.clear();
  if (draws_.back())
    draws_.back()();
  draws_.pop_back();
  b_.close();
}

bool Emitter::has(const Op& op, size_t index) const {
  return index < op.operands.size() && op.operands[index].kind != Operand::Kind::None;
}

Emitter::Expr* Emitter::literal(const Operand& operand, Dtype dtype) {
  const Scalar type = scalarOf(dtype);
  if (dtype == Dtype::Bool)
    return b_.boolean(operand.kind == Operand::Kind::Int ? operand.number != 0 : operand.real != 0);
  if (isFloat(dtype))
    return b_.real(type, operand.kind == Operand::Kind::Float ? operand.real : static_cast<double>(operand.number));
  return b_.integer(type, operand.kind == Operand::Kind::Float ? lang::saturateToInteger(type, operand.real)
                                                               : lang::wrapInteger(type, operand.number));
}

Emitter::Expr* Emitter::constant(Dtype dtype, double value) {
  return literal({Operand::Kind::Float, 0, value, {}}, dtype);
}

Emitter::Expr* Emitter::operand(const Op& op, size_t index, const Kind& like) {
  const Operand& given = op.operands[index];
  Expr* value = given.kind == Operand::Kind::Value ? b_.read(values_[static_cast<size_t>(given.number)].variable)
                                                   : literal(given, like.dtype);
  if (lang::scalarOf(value->type) != scalarOf(like.dtype)) {
    if (like.dtype == Dtype::Bool) {  // what is not zero
      Expr* zero = constant(kind(op, index).dtype, 0);
      if (value->type->isTensor())
        zero = b_.broadcast(zero, kind(op, index).rows, kind(op, index).columns);
      value = b_.binary(lang::BinaryOp::Ne, value, zero);
    } else {
      value = b_.cast(value, scalarOf(like.dtype));
    }
  }
  const Kind& own = kind(op, index);
  if (like.isTile() && (own.rows != like.rows || own.columns != like.columns))
    value = b_.broadcast(value, like.rows, like.columns);
  return value;
}

void Emitter::define(const Op& op, Expr* value) { define(op, value, validOf(op)); }

void Emitter::define(const Op& op, Expr* value, Validity valid) {
  values_[static_cast<size_t>(op.result)] = {b_.let("v" + std::to_string(op.result), value), std::move(valid)};
}

const Emitter::Validity& Emitter::validOf(const Operand& operand) const {
  static const Validity kAlways;
  return operand.kind == Operand::Kind::Value ? values_[static_cast<size_t>(operand.number)].valid : kAlways;
}

Emitter::Validity Emitter::validOf(const Op& op) const {
  Validity valid;
  for (const Operand& operand : op.operands)
    merge(valid, validOf(operand));
  return valid;
}

void Emitter::merge(Validity& into, const Validity& from) {
  for (Variable* condition : from)
    if (std::find(into.begin(), into.end(), condition) == into.end())
      into.push_back(condition);
}

Emitter::Expr* Emitter::allOf(const Validity& valid) {
  Expr* all = nullptr;
  for (Variable* condition : valid)
    all = all ? b_.binary(lang::BinaryOp::And, all, b_.read(condition)) : b_.read(condition);
  return all ? all : b_.boolean(true);
}

void Emitter::loop(const Op& op) {
  Variable* counter = b_.openFor("i" + std::to_string(op.operands[0].number), index(op, 1), index(op, 2), index(op, 3));
  values_[static_cast<size_t>(op.operands[0].number)] = {counter, validOf(op)};
  draws_.emplace_back();
}

/// Lane 0 draws for the block; what it drew goes through shared memory, so that the loop runs alike for all lanes.
void Emitter::drawLoop(const Op& op) {
  const std::string suffix = std::to_string(op.operands[0].number);
  Variable* cell = b_.shared("drawn" + suffix, Scalar::U32, {1});
  Variable* counter = memory(op.operands[1]);
  Variable* number = b_.let("i" + suffix, b_.integer(Scalar::I64, 0), true);
  const auto zero = [this] { return b_.integer(Scalar::I64, 0); };
  const auto draw = [this, &op, cell, counter, number, zero] {
    b_.openIf(b_.binary(lang::BinaryOp::Eq, position(lang::Builtin::ThreadLocalId), zero()));
    b_.assign(b_.element(cell, zero()),
              b_.atomic(lang::Builtin::AtomicAdd, b_.element(counter, index(op, 2)), b_.integer(Scalar::U32, 1)));
    b_.close();
    barrier();
    b_.assign(b_.read(number), b_.cast(b_.element(cell, zero()), Scalar::I64));
    barrier();
  };
  draw();
  b_.openWhile(b_.binary(lang::BinaryOp::Lt, b_.read(number), index(op, 3)));
  values_[static_cast<size_t>(op.operands[0].number)] = {number, validOf(op)};
  draws_.emplace_back(draw);
}

/// Stands before the loop that it belongs to.
void Emitter::carry(const Op& op) {
  const int64_t id = op.operands[0].number;
  Variable* variable = b_.let("c" + std::to_string(id), operand(op, 1, kinds_[static_cast<size_t>(id)]), true);
  Value& value = values_[static_cast<size_t>(id)];
  value = {variable, {}};
  if (!validOf(op.operands[1]).empty())
    value.valid = {b_.let("valid" + std::to_string(id), allOf(validOf(op.operands[1])), true)};
}

/// All new values are computed before the first is assigned: they may be each other's old ones.
void Emitter::yield(const Op& op) {
  const int64_t id = op.operands[0].number;
  const Value& carried = values_[static_cast<size_t>(id)];
  const Kind& kind = kinds_[static_cast<size_t>(id)];
  Expr* fresh = operand(op, 1, kind);
  const Validity& valid = validOf(op.operands[1]);
  if (!valid.empty() && !kind.isTile())
    fresh = b_.select(allOf(valid), fresh, b_.read(carried.variable));
  const auto keep = [&](Variable* variable, Expr* value) {
    yields_.emplace_back(variable, b_.read(b_.let("n" + std::to_string(names_++), value)));
  };
  if (kind.isTile())
    yields_.emplace_back(carried.variable, fresh);
  else
    keep(carried.variable, fresh);
  for (Variable* flag : carried.valid)
    keep(flag, valid.empty() ? b_.boolean(true) : b_.binary(lang::BinaryOp::Or, b_.read(flag), allOf(valid)));
}

void Emitter::print(const Op& op) {
  std::vector<Expr*> args;
  const bool isPrint = op.name == "print";
  for (size_t i = 1; i < op.operands.size(); ++i)
    args.push_back(operand(op, i, isPrint ? kind(op, i) : Kind{Dtype::Bool}));
  Expr* statement = b_.builtin(isPrint ? lang::Builtin::Print : lang::Builtin::Assert, b_.types().unit(), {});
  if (isPrint) {
    statement->text = op.operands[0].word;
  } else {
    Expr* message = b_.text(op.operands[0].word);
    args.push_back(message);
  }
  statement->args = std::move(args);
  b_.run(statement);
}

}  // namespace vortex::metile

#include "base/file.h"
#include "base/text.h"
#include "host/evaluator_state.h"

#include <algorithm>
#include <cstring>

namespace vortex::host {

using namespace lang;

static std::shared_ptr<VecStorage> storageFor(Type elem) {
  auto storage = std::make_shared<VecStorage>();
  storage->packed = elem->kind == TypeKind::Scalar;
  storage->type = elem->scalar;
  return storage;
}

std::shared_ptr<VecStorage> Evaluator::makeList(Type elem, int64_t count, const Expr& at) {
  auto storage = storageFor(elem);
  uint64_t bytes = storage->packed ? byteSize(storage->type) : sizeof(Value);
  if (!fits(static_cast<unsigned __int128>(bytes) * static_cast<uint64_t>(count), at))
    return nullptr;
  storage->resize(static_cast<size_t>(count));
  return storage;
}

bool Evaluator::mayChangeLength(const VecValue& list, const Expr& at) {
  if (list.isSlice)
    fail("E0706", at, "a part of a list keeps its length", "this is a slice",
         "`.copy()` of the slice is a list of its own");
  return !list.isSlice;
}

std::optional<Value> Evaluator::vecBuiltin(const Expr& expr) {
  auto arg = [&](size_t i) { return deref(eval(*expr.args[i]), *expr.args[i]); };
  switch (expr.builtin) {
  case Builtin::Len: {
    Value value = arg(0);
    if (interrupted())
      return Value();
    if (auto* text = std::get_if<std::shared_ptr<std::string>>(&value.data))
      return Value(static_cast<int64_t>((*text)->size()));
    if (auto* tensor = std::get_if<TensorValue>(&value.data))
      return Value(tensor->extents.empty() ? int64_t{1} : tensor->extents[0]);
    return Value(static_cast<int64_t>(value.asVec().size()));
  }
  case Builtin::Push: {
    Value vec = arg(0), value = interrupted() ? Value() : eval(*expr.args[1]);
    if (!interrupted() && mayChangeLength(vec.asVec(), expr))
      vec.asVec().storage->push(value);
    return Value();
  }
  case Builtin::Pop: {
    Value value = arg(0);
    if (interrupted() || !mayChangeLength(value.asVec(), expr))
      return Value();
    VecStorage& storage = *value.asVec().storage;
    if (storage.size() == 0)
      return fail("E0702", expr, "`pop` on an empty Vec");
    Value last = storage.at(storage.size() - 1);
    storage.resize(storage.size() - 1);
    return last;
  }
  case Builtin::VecFill: {
    Value count = eval(*expr.args[0]), value = interrupted() ? Value() : eval(*expr.args[1]);
    if (interrupted())
      return Value();
    auto storage = makeList(expr.type->elem, count.asInt(), expr);
    if (!storage)
      return Value();
    for (size_t i = 0; i < storage->size(); ++i)
      storage->set(i, i == 0 ? value : duplicate(value, expr));
    return VecValue{storage};
  }
  case Builtin::VecRange: {
    Value begin = eval(*expr.args[0]), end = interrupted() ? Value() : eval(*expr.args[1]);
    if (interrupted())
      return Value();
    const int64_t first = begin.asInt();
    int64_t count = 0;
    if (end.asInt() > first && __builtin_sub_overflow(end.asInt(), first, &count))
      count = INT64_MAX;
    auto storage = makeList(expr.type->elem, count, expr);
    if (!storage)
      return Value();
    for (int64_t i = 0; i < count; ++i)
      storage->set(static_cast<size_t>(i),
                   isFloat(storage->type) ? Value(static_cast<double>(first + i)) : Value(first + i));
    return VecValue{storage};
  }
  case Builtin::Map: {
    Value vec = arg(0), closure = interrupted() ? Value() : eval(*expr.args[1]);
    if (interrupted())
      return Value();
    auto storage = storageFor(expr.type->elem);
    const VecValue& from = vec.asVec();
    for (size_t i = 0; i < from.size() && !interrupted(); ++i) {
      Value element = from.storage->at(from.begin + i);
      if (expr.args[1]->kind != ExprKind::Closure)  // it may keep what it is given
        element = duplicate(element, expr);
      if (Value result = callClosure(closure, {&element, 1}, expr); !interrupted())
        storage->push(result);
    }
    return VecValue{storage};
  }
  case Builtin::Fold: {
    Value vec = arg(0), total = interrupted() ? Value() : eval(*expr.args[1]);
    Value closure = interrupted() ? Value() : eval(*expr.args[2]);
    if (interrupted())
      return Value();
    const VecValue& from = vec.asVec();
    for (size_t i = 0; i < from.size() && !interrupted(); ++i) {
      Value pair[2] = {std::move(total), from.storage->at(from.begin + i)};
      if (expr.args[2]->kind != ExprKind::Closure)
        pair[1] = duplicate(pair[1], expr);
      total = callClosure(closure, pair, expr);
    }
    return total;
  }
  case Builtin::SortVec: {
    Value value = arg(0);
    if (interrupted())
      return Value();
    const VecValue& list = value.asVec();
    VecStorage& storage = *list.storage;
    if (!storage.packed)
      return fail("E0706", expr, "`sort` orders numbers");
    std::vector<Value> values;
    for (size_t i = 0; i < list.size(); ++i)
      values.push_back(storage.at(list.begin + i));
    const auto isNumber = [&](const Value& x) { return binary(BinaryOp::Eq, storage.type, x, x, expr).asInt() != 0; };
    const auto numbers = std::partition(values.begin(), values.end(), isNumber);  // NaN comes last
    std::sort(values.begin(), numbers, [&](const Value& a, const Value& b) {
      return binary(BinaryOp::Lt, storage.type, a, b, expr).asInt() != 0;
    });
    for (size_t i = 0; i < values.size(); ++i)
      storage.set(list.begin + i, values[i]);
    return Value();
  }
  case Builtin::Copy: {
    Value value = arg(0);
    if (interrupted())
      return Value();
    return duplicate(value, expr);
  }
  case Builtin::ReadFile:
  case Builtin::ReadText: {
    Value path = arg(0);
    if (interrupted())
      return Value();
    auto file = base::readWholeFile(path.asText());
    if (!file)
      return fail("E0710", expr, file.error().message);
    if (expr.builtin == Builtin::ReadText)
      return Value::text(file.value());
    auto storage = std::make_shared<VecStorage>();
    storage->type = Scalar::U8;
    storage->bytes.assign(file->begin(), file->end());
    return VecValue{storage};
  }
  case Builtin::WriteFile: {
    Value path = arg(0), content = interrupted() ? Value() : arg(1);
    if (interrupted())
      return Value();
    std::string bytes;
    if (auto* text = std::get_if<std::shared_ptr<std::string>>(&content.data)) {
      bytes = **text;
    } else {
      const VecValue& vec = content.asVec();
      bytes.assign(reinterpret_cast<const char*>(vec.storage->bytes.data()) + vec.begin, vec.size());
    }
    if (auto written = base::writeFileAtomic(path.asText(), bytes); !written)
      return fail("E0710", expr, written.error().message);
    return Value();
  }
  default: return std::nullopt;
  }
}

}  // namespace vortex::host

// Moves and copies. The checker has made sure that no place is used after a move (Transfer in lang/sema/expr.h).
#include "host/evaluator_state.h"

#include <utility>

namespace vortex::host {

using namespace lang;

Value Evaluator::moveOut(const Expr& expr) {
  Reference from = place(expr);
  if (interrupted())
    return {};
  Value* slot = from.slot ? from.slot : from.temporary.get();
  return slot ? std::exchange(*slot, Value()) : load(from, expr);
}

Value Evaluator::duplicate(const Value& value, const Expr& at) {
  if (auto* vec = std::get_if<VecValue>(&value.data)) {
    auto storage = std::make_shared<VecStorage>();
    storage->packed = vec->storage->packed;
    storage->type = vec->storage->type;
    for (size_t i = 0; i < vec->size() && !interrupted(); ++i)
      storage->push(storage->packed ? vec->storage->at(vec->begin + i)
                                    : duplicate(vec->storage->values[vec->begin + i], at));
    return VecValue{storage};
  }
  if (auto* aggregate = std::get_if<std::shared_ptr<Aggregate>>(&value.data)) {
    auto copy = std::make_shared<Aggregate>();
    for (const Value& field : (*aggregate)->fields)
      copy->fields.push_back(duplicate(field, at));
    return copy;
  }
  auto* tensor = std::get_if<TensorValue>(&value.data);
  if (!tensor)
    return value;
  if (tensor->element) {
    auto elements = readElements(*tensor, at);
    auto copy = elements ? makeTensorOf(tensor->element, tensor->extents, at) : std::nullopt;
    if (!copy || !writeElements(*copy, tensor->element, [&](size_t i) { return elements->at(i); }, at))
      return {};
    return *copy;
  }
  auto bytes = download(*tensor, at);
  auto copy = bytes ? makeTensor(tensor->type, tensor->extents, at) : std::nullopt;
  if (!copy)
    return {};
  if (auto written = copy->buffer->write(0, *bytes); !written)
    return fail("E0708", at, written.error().message);
  return *copy;
}

}  // namespace vortex::host

#include "base/text.h"
#include "host/evaluator_state.h"
#include "host/format_number.h"

#include <charconv>
#include <chrono>
#include <cmath>

namespace vortex::host {

using namespace lang;

Value Evaluator::evalBuiltin(const Expr& expr) {
  if (isElementwise(expr.builtin)) {
    auto args = evalArgs(expr);
    if (interrupted())
      return {};
    Type type = stripRef(expr.builtin == Builtin::Select ? expr.type : expr.args[0]->type);
    if (type->kind != TypeKind::Scalar)
      return fail("E0706", expr, "tensors are computed in kernels, not on the host", "",
                  "move this expression into a `kernel`");
    if (expr.builtin == Builtin::FromBits) {
      const int64_t bits = args[0].asInt();
      return loadScalar(expr.type->scalar, reinterpret_cast<const uint8_t*>(&bits));
    }
    return math(expr.builtin, type->scalar, args);
  }
  if (auto value = textBuiltin(expr))
    return *value;
  if (auto value = vecBuiltin(expr))
    return *value;
  if (auto value = tensorBuiltin(expr))
    return *value;
  return fail("E0706", expr, "`" + std::string(spelling(expr.builtin)) + "` works only in kernels");
}

std::string Evaluator::format(const Value& value, Type type) {
  if (value.isReference())
    return format(deref(value, *frame_->function->body), stripRef(type));
  type = stripRef(type);
  constexpr size_t kShown = 16;
  switch (type->kind) {
  case TypeKind::Unit: return "()";
  case TypeKind::Scalar: return formatNumber(type->scalar, value);
  case TypeKind::String: return value.asText();
  case TypeKind::Enum: {
    for (size_t i = 0; i < type->decl->enumValues.size(); ++i)
      if (type->decl->enumValues[i] == value.asInt())
        return type->decl->name + "." + type->decl->fields[i];
    return std::to_string(value.asInt());
  }
  case TypeKind::Vec:
  case TypeKind::Array: {
    const VecValue& vec = value.asVec();
    std::string text = "[";
    for (size_t i = 0; i < vec.size(); ++i) {
      if (i == kShown && vec.size() > kShown + 4) {
        text += base::concat(", … ", vec.size() - kShown, " more");
        break;
      }
      text += (i ? ", " : "") + format(vec.storage->at(vec.begin + i), type->elem);
    }
    return text + "]";
  }
  case TypeKind::Tuple:
  case TypeKind::Struct: {
    bool isStruct = type->kind == TypeKind::Struct;
    std::string text = isStruct ? type->decl->name + " { " : "(";
    const auto& fields = value.asAggregate().fields;
    for (size_t i = 0; i < fields.size(); ++i)
      text += (i ? ", " : "") + (isStruct ? type->decl->fields[i] + ": " : std::string()) +
              format(fields[i], type->elems[i]);
    return text + (isStruct ? " }" : ")");
  }
  case TypeKind::Tensor: {
    const TensorValue& tensor = value.asTensor();
    std::string element =
        tensor.element ? lang::text(tensor.element, frame_->function->dimNames()) : std::string(name(tensor.type));
    return base::concat("Tensor<", element, ", [", base::join(tensor.extents, ", "), "]>");
  }
  case TypeKind::Range: {
    RangeValue range = std::get<RangeValue>(value.data);
    return formatNumber(type->elem->scalar, range.begin) + ".." + formatNumber(type->elem->scalar, range.end);
  }
  default: return "<" + lang::text(type, frame_->function->dimNames()) + ">";
  }
}

/// `print(a, b)` joins with spaces; with a format in expr.text each `{}` takes the next value and `{{`, `}}` are braces.
std::string Evaluator::formatList(const Expr& expr, size_t first) {
  std::vector<std::string> parts;
  for (size_t i = first; i < expr.args.size(); ++i) {
    Value value = eval(*expr.args[i]);
    if (interrupted())
      return {};
    parts.push_back(format(value, expr.args[i]->type));
  }
  if (expr.text.empty())
    return base::join(parts, " ");
  std::string result;
  size_t next = 0;
  for (size_t i = 0; i < expr.text.size(); ++i) {
    char c = expr.text[i];
    char following = i + 1 < expr.text.size() ? expr.text[i + 1] : '\0';
    if ((c == '{' || c == '}') && following == c) {
      result += c;
      ++i;
    } else if (c == '{') {
      size_t close = expr.text.find('}', i);
      if (next < parts.size())
        result += parts[next++];
      i = close == std::string::npos ? expr.text.size() : close;
    } else {
      result += c;
    }
  }
  return result;
}

std::optional<Value> Evaluator::textBuiltin(const Expr& expr) {
  switch (expr.builtin) {
  case Builtin::Print: {
    std::string line = formatList(expr, 0);
    if (!interrupted() && options_.output)
      options_.output(line + "\n");
    return Value();
  }
  case Builtin::Format: {
    std::string text = formatList(expr, 0);
    return Value::text(std::move(text));
  }
  case Builtin::ToText: {
    Value value = eval(*expr.args[0]);
    return interrupted() ? Value() : Value::text(format(value, expr.args[0]->type));
  }
  case Builtin::Assert: {
    Value condition = eval(*expr.args[0]);
    if (interrupted() || condition.asInt())
      return Value();
    std::string message = expr.args.size() > 1 ? formatList(expr, 1) : expr.text;
    return fail("E0704", expr, message.empty() ? "the assertion is false" : "assertion failed: " + message,
                "this is false");
  }
  case Builtin::AssertEqual: {
    auto args = evalArgs(expr);
    if (interrupted())
      return Value();
    std::string a = format(args[0], expr.args[0]->type), b = format(args[1], expr.args[1]->type);
    auto lhs = numbersOf(args[0], expr), rhs = numbersOf(args[1], expr);
    if (interrupted())
      return Value();
    // Numbers alone do not tell how lists of lists divide them; texts leave out what is long.
    Value whole = deref(args[0], expr);
    auto* list = std::get_if<VecValue>(&whole.data);
    const bool isNested =
        (list && !list->storage->packed) || std::holds_alternative<std::shared_ptr<Aggregate>>(whole.data);
    bool equal = lhs && rhs ? *lhs == *rhs && (!isNested || a == b) : a == b;
    return equal ? Value() : fail("E0704", expr, "the two values differ: " + a + " and " + b);
  }
  case Builtin::AssertClose: return assertClose(expr);
  case Builtin::ParseInt:
  case Builtin::ParseFloat: {
    Value value = deref(eval(*expr.args[0]), expr);
    if (interrupted())
      return Value();
    const std::string& text = value.asText();
    const char *begin = text.data(), *end = text.data() + text.size();
    if (end - begin > 1 && *begin == '+' && begin[1] != '-')
      ++begin;
    bool isTooLarge = false;
    if (expr.builtin == Builtin::ParseInt) {
      int64_t number = 0;
      auto result = std::from_chars(begin, end, number);
      if (result.ec == std::errc() && result.ptr == end && begin != end)
        return Value(number);
      isTooLarge = result.ec == std::errc::result_out_of_range && result.ptr == end;
    } else {
      double number = 0;
      auto result = std::from_chars(begin, end, number);
      if (result.ec == std::errc() && result.ptr == end && begin != end)
        return Value(number);
    }
    const char* wanted = isTooLarge                          ? "a number that i64 holds"
                         : expr.builtin == Builtin::ParseInt ? "an integer"
                                                             : "a number";
    return fail("E0707", expr, base::concat("\"", text, "\" is not ", wanted));
  }
  case Builtin::Args: {
    auto storage = std::make_shared<VecStorage>();
    storage->packed = false;
    for (const std::string& argument : options_.arguments)
      storage->push(Value::text(argument));
    return VecValue{storage};
  }
  case Builtin::Exit: {
    Value status = expr.args.empty() ? Value(int64_t{0}) : eval(*expr.args[0]);
    if (interrupted())
      return Value();
    flow_ = Flow::Stop;
    exitStatus_ = static_cast<int>(status.asInt() & 0xff);
    return Value();
  }
  case Builtin::Time: {
    Value closure = eval(*expr.args[0]);
    if (interrupted())
      return Value();
    (void)backend_.synchronize();
    auto start = std::chrono::steady_clock::now();
    callClosure(closure, {}, expr);
    if (auto done = backend_.synchronize(); !done && !interrupted())
      return fail("E0708", expr, done.error().message);
    return Value(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  default: return std::nullopt;
  }
}

Value Evaluator::assertClose(const Expr& expr) {
  auto args = evalArgs(expr);
  if (interrupted())
    return {};
  auto actual = numbersOf(args[0], expr), expected = numbersOf(args[1], expr);
  if (interrupted() || !actual || !expected)
    return interrupted() ? Value() : fail("E0704", expr, "these values are not numbers");
  double rtol = args.size() > 2 ? args[2].asFloat() : 1e-5, atol = args.size() > 3 ? args[3].asFloat() : 1e-6;
  if (actual->size() != expected->size())
    return fail("E0704", expr,
                base::concat("assert_close compares ", actual->size(), " elements with ", expected->size()));
  size_t wrong = 0, worst = 0;
  double worstExcess = -1;
  for (size_t i = 0; i < actual->size(); ++i) {
    double a = (*actual)[i], b = (*expected)[i];
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    double excess = std::fabs(a - b) - (atol + rtol * std::fabs(b));
    if (excess <= 0)  // false for NaN
      continue;
    ++wrong;
    if (std::isnan(excess) || std::isinf(excess) || excess > worstExcess) {
      worst = i;
      worstExcess = std::isnan(excess) ? INFINITY : excess;
    }
  }
  if (wrong == 0)
    return {};
  return fail(
      "E0704", expr,
      base::concat(wrong, " of ", actual->size(), " elements differ by more than rtol = ", rtol, ", atol = ", atol),
      base::concat("worst at element ", worst, ": ", formatNumber(Scalar::F64, Value((*actual)[worst])), " against ",
                   formatNumber(Scalar::F64, Value((*expected)[worst]))));
}

std::optional<std::vector<double>> Evaluator::numbersOf(const Value& value, const Expr& at) {
  Value plain = deref(value, at);
  std::vector<double> numbers;
  auto addAll = [&](auto&& parts) {  // false: not all are numbers
    for (const auto& part : parts) {
      auto inner = numbersOf(Value(part), at);
      if (!inner)
        return false;
      numbers.insert(numbers.end(), inner->begin(), inner->end());
    }
    return true;
  };
  if (auto* aggregate = std::get_if<std::shared_ptr<Aggregate>>(&plain.data))
    return addAll((*aggregate)->fields) ? std::optional(numbers) : std::nullopt;
  if (auto* tensor = std::get_if<TensorValue>(&plain.data); tensor && tensor->element)
    return addAll(tensor->planes) ? std::optional(numbers) : std::nullopt;
  if (auto* vec = std::get_if<VecValue>(&plain.data); vec && !vec->storage->packed)
    return addAll(std::span(vec->storage->values).subspan(vec->begin, vec->size())) ? std::optional(numbers)
                                                                                    : std::nullopt;
  auto add = [&](Scalar type, const uint8_t* bytes) {
    Value element = loadScalar(type, bytes);
    numbers.push_back(isFloat(type)      ? element.asFloat()
                      : isUnsigned(type) ? static_cast<double>(static_cast<uint64_t>(element.asInt()))
                                         : static_cast<double>(element.asInt()));
  };
  if (auto* number = std::get_if<double>(&plain.data))
    return std::vector{*number};
  if (auto* number = std::get_if<int64_t>(&plain.data))
    return std::vector{static_cast<double>(*number)};
  if (auto* tensor = std::get_if<TensorValue>(&plain.data)) {
    auto bytes = download(*tensor, at);
    if (!bytes)
      return std::nullopt;
    for (size_t i = 0; i < bytes->size(); i += byteSize(tensor->type))
      add(tensor->type, bytes->data() + i);
    return numbers;
  }
  if (auto* vec = std::get_if<VecValue>(&plain.data); vec && vec->storage->packed) {
    size_t width = byteSize(vec->storage->type);
    for (size_t i = 0; i < vec->size(); ++i)
      add(vec->storage->type, &vec->storage->bytes[(vec->begin + i) * width]);
    return numbers;
  }
  return std::nullopt;
}

}  // namespace vortex::host

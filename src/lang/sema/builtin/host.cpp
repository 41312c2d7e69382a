// Host library: printing, assertions, files, random numbers, time.
#include "lang/sema/builtin/host.h"
#include "lang/sema/builtin/call.h"
#include "lang/sema/builtin/tensor.h"
#include "lang/sema/check/exprs/control.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

bool isPrintable(Type type) {
  switch (type->kind) {
  case TypeKind::Closure:
  case TypeKind::Never: return false;
  default: return true;
  }
}

/// Number of `{}` in a format; nothing when a brace is alone (reported).
std::optional<size_t> countHoles(BodyState& body, const syn::StringExpr* format) {
  const std::string_view text = format->value;
  size_t holes = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if (text[i] == '{' && doubled) {
      ++i;
    } else if (text[i] == '{') {
      if (i + 1 >= text.size() || text[i + 1] != '}') {
        error(body, "E0336", format->range, "`{` in a format must be followed by `}`")
            .help("a place for a value is `{}`, without a name or a form; write `{{` for a brace");
        return std::nullopt;
      }
      ++holes;
      ++i;
    } else if (text[i] == '}') {
      if (!doubled) {
        error(body, "E0336", format->range, "`}` in a format has no `{`").help("write `}}` for a brace");
        return std::nullopt;
      }
      ++i;
    }
  }
  return holes;
}

/// Arguments from `first` on; a leading text with `{` is a format. False after an error.
bool printArgs(BuiltinCall& call, size_t first, std::vector<Expr*>& args, std::string& format) {
  BodyState& body = call.body;
  bool ok = true;
  auto* text = first < call.placed.size() ? call.placed[first]->tryAs<syn::StringExpr>() : nullptr;
  const bool isFormat = text && text->value.find_first_of("{}") != std::string_view::npos;
  if (isFormat) {
    auto holes = countHoles(body, text);
    const size_t given = call.placed.size() - first - 1;
    if (holes && *holes != given) {
      error(body, "E0336", text->range,
            base::concat("this format has ", *holes, " `{}`, but ", given, given == 1 ? " value is" : " values are",
                         " given"));
      holes.reset();
    }
    ok = holes.has_value();
    format = std::string(text->value);
    ++first;
  }
  for (size_t i = first; i < call.placed.size(); ++i) {
    Expr* arg = call.arg(i);
    if (isError(arg)) {
      ok = false;
      continue;
    }
    if (!isPrintable(arg->type) || (inKernel(body) && arg->type->kind != TypeKind::Scalar &&
                                    arg->type->kind != TypeKind::String && arg->type->kind != TypeKind::Enum)) {
      call.wrongArg(arg, inKernel(body) ? "numbers and texts" : "values that have a text");
      ok = false;
      continue;
    }
    args.push_back(arg);
  }
  return ok;
}

Expr* textArg(BuiltinCall& call, size_t i) {
  Expr* text = call.arg(i);
  if (isError(text))
    return nullptr;
  if (text->type->kind == TypeKind::String)
    return text;
  call.wrongArg(text, "a text");
  return nullptr;
}

bool holdsNumbers(Type type) {
  switch (type->kind) {
  case TypeKind::Scalar: return true;
  case TypeKind::Tensor:
  case TypeKind::Vec:
  case TypeKind::Array: return type->elem->kind == TypeKind::Scalar;
  default: return false;
  }
}

}  // namespace

Expr* checkPrint(BuiltinCall& call) {
  std::vector<Expr*> args;
  std::string format;
  if (!printArgs(call, 0, args, format))
    return call.failed();
  Type type = call.row.id == Builtin::Format ? call.body.types.string() : call.body.types.unit();
  Expr* out = makeBuiltin(call.body, call.row.id, type, call.range(), std::move(args));
  out->text = std::move(format);
  return out;
}

Expr* checkAssert(BuiltinCall& call) {
  Expr* condition = lang::condition(call.body, call.placed[0]);
  std::vector<Expr*> args{condition};
  std::string format;
  if (!printArgs(call, 1, args, format) || isError(condition))
    return call.failed();
  Expr* out = makeBuiltin(call.body, Builtin::Assert, call.body.types.unit(), call.range(), std::move(args));
  out->text = std::move(format);
  return out;
}

Expr* checkAssertPair(BuiltinCall& call) {
  BodyState& body = call.body;
  const bool swap = call.isUntyped(0) && !call.isUntyped(1);
  Expr* first = call.arg(swap ? 1 : 0);
  Expr* second = call.arg(swap ? 0 : 1, isError(first) ? nullptr : first->type);
  if (isError(first) || isError(second))
    return call.failed();
  std::vector<Expr*> args{swap ? second : first, swap ? first : second};
  if (call.row.id == Builtin::AssertClose) {
    for (const Expr* arg : args)
      if (!grants(body, arg->type, {BuiltinTrait::Numeric}, arg->range, "`assert_close`"))
        return call.failed();
      else if (!holdsNumbers(arg->type))
        return call.wrongArg(arg, "numbers");
  } else if (args[0]->type != args[1]->type && !(holdsNumbers(args[0]->type) && holdsNumbers(args[1]->type))) {
    return mismatch(body, args[1], args[0]->type, args[0]->range, "`" + text(body, args[0]->type) + "`");
  }
  Type f64 = body.types.scalar(Scalar::F64);
  const double defaults[] = {1e-5, 1e-6};
  for (size_t i = 2; i < 4 && call.row.id == Builtin::AssertClose; ++i) {
    Expr* tolerance = nullptr;
    if (call.has(i)) {
      tolerance = call.arg(i, f64);
      if (isError(tolerance))
        return call.failed();
      if (tolerance->type->kind != TypeKind::Scalar || !isFloat(tolerance->type->scalar))
        return call.wrongArg(tolerance, "a float tolerance");
      tolerance = cast(body, tolerance, f64);
    } else {
      tolerance = make(body, ExprKind::Float, f64, call.range());
      tolerance->floatValue = defaults[i - 2];
    }
    args.push_back(tolerance);
  }
  return makeBuiltin(body, call.row.id, body.types.unit(), call.range(), std::move(args));
}

Expr* checkArgs(BuiltinCall& call) {
  return makeBuiltin(call.body, Builtin::Args, call.body.types.vec(call.body.types.string()), call.range(), {});
}

Expr* checkFile(BuiltinCall& call) {
  BodyState& body = call.body;
  Expr* path = textArg(call, 0);
  if (!path)
    return call.failed();
  Type bytes = body.types.vec(body.types.scalar(Scalar::U8));
  if (call.row.id == Builtin::ReadFile)
    return makeBuiltin(body, call.row.id, bytes, call.range(), {path});
  if (call.row.id == Builtin::ReadText)
    return makeBuiltin(body, call.row.id, body.types.string(), call.range(), {path});
  Expr* content = call.arg(1, bytes);
  if (isError(content))
    return call.failed();
  if (content->type != bytes && content->type->kind != TypeKind::String)
    return call.wrongArg(content, "a `Vec<u8>` or a text");
  return makeBuiltin(body, call.row.id, body.types.unit(), call.range(), {path, content});
}

Expr* checkLoadNpy(BuiltinCall& call) {
  BodyState& body = call.body;
  Expr* path = textArg(call, 0);
  if (!path)
    return call.failed();
  Type expected = call.expected;
  if (expected && expected->kind == TypeKind::Ref)
    expected = expected->elem;
  if (expected && isError(expected))
    return call.failed();
  if (!expected || !expected->isTensor()) {
    error(body, "E0327", call.range(), "the rank of the array in the file is not known here")
        .help("declare it: `let x: Tensor<f32, [M, N]> = load_npy(path)`");
    return call.failed();
  }
  Type elem = expected->elem;
  if (call.generics.size() == 1 && call.generics[0].type) {
    elem = resolveType(body, call.generics[0].type, DimPolicy::Known);
    if (isError(elem))
      return call.failed();
  }
  if (elem->kind != TypeKind::Scalar) {
    error(body, "E0303", call.range(), "a `.npy` file holds numbers, not `" + text(body, elem) + "`");
    return call.failed();
  }
  std::vector<DimExpr> shape;
  for (size_t i = 0; i < expected->rank(); ++i)
    shape.push_back(DimExpr::opaque(body.session.newOpaque()));
  return makeBuiltin(body, Builtin::LoadNpy, body.types.tensor(elem, std::move(shape), madeSpace(body, expected)),
                     call.range(), {path});
}

Expr* checkSaveNpy(BuiltinCall& call) {
  Expr* path = textArg(call, 0);
  Expr* value = call.arg(1);
  if (!path || isError(value))
    return call.failed();
  const bool ok =
      (value->type->isTensor() || value->type->kind == TypeKind::Vec) && value->type->elem->kind == TypeKind::Scalar;
  return ok ? makeBuiltin(call.body, Builtin::SaveNpy, call.body.types.unit(), call.range(), {path, value})
            : call.wrongArg(value, "a tensor or `Vec` of numbers");
}

Expr* checkRandom(BuiltinCall& call) {
  BodyState& body = call.body;
  const bool isInteger = call.row.id == Builtin::RandomInteger;
  Type elem = body.types.scalar(isInteger ? Scalar::I32 : Scalar::F32);
  Type expected = call.expected && call.expected->kind == TypeKind::Ref ? call.expected->elem : call.expected;
  if (call.generics.size() == 1 && call.generics[0].type) {
    elem = resolveType(body, call.generics[0].type, DimPolicy::Known);
    if (isError(elem))
      return call.failed();
  } else if (expected && expected->isTensor()) {
    elem = expected->elem;
  }
  if (!grants(body, elem, {isInteger ? BuiltinTrait::Integer : BuiltinTrait::Float}, call.nameRange,
              base::concat("`", call.row.name, "`")))
    return call.failed();
  if (elem->kind != TypeKind::Scalar || (isInteger ? !lang::isInteger(elem->scalar) : !isFloat(elem->scalar))) {
    error(body, "E0303", call.range(), base::concat("`", call.row.name, "` does not make `", text(body, elem), "`"));
    return call.failed();
  }
  std::vector<Expr*> extents = lang::extents(body, call.placed[0], true, "a shape");
  if (extents.empty())
    return call.failed();
  std::vector<DimExpr> shape;
  for (const Expr* extent : extents)
    shape.push_back(dimOf(body, extent));
  std::vector<Expr*> args{make(body, ExprKind::MakeArray, body.types.array(usize(body), shape.size()),
                               call.placed[0]->range, std::move(extents))};
  Type u64 = body.types.scalar(Scalar::U64);
  Expr* seed = call.has(1) ? convert(body, asIndex(body, call.arg(1, u64), nullptr), usize(body), Site::Argument)
                           : makeInt(body, 0, usize(body), call.range());
  if (isError(seed))
    return call.failed();
  args.push_back(cast(body, seed, u64));
  const Scalar ofInteger = bitWidth(elem->scalar) < 64 ? Scalar::I64 : elem->scalar;  // holds what `high` excludes
  Type bound = body.types.scalar(isInteger ? ofInteger : Scalar::F64);
  for (size_t i = 2; i < 4; ++i) {
    if (!call.has(i)) {
      Expr* value = make(body, isInteger ? ExprKind::Int : ExprKind::Float, bound, call.range());
      value->floatValue = i == 2 ? 0 : 1;
      value->intValue = i == 2 ? 0 : 100;
      args.push_back(value);
      continue;
    }
    Expr* value = call.arg(i, bound);
    if (!isError(value) &&
        (isInteger ? value->type == elem : value->type->kind == TypeKind::Scalar && isFloat(value->type->scalar)))
      value = cast(body, value, bound);
    value = isError(value) ? value : convert(body, value, bound, Site::Argument);
    if (isError(value))
      return call.failed();
    args.push_back(value);
  }
  return makeBuiltin(body, call.row.id, body.types.tensor(elem, std::move(shape), madeSpace(body, expected)),
                     call.range(), std::move(args));
}

Expr* checkTime(BuiltinCall& call) {
  Expr* closure = call.arg(0, call.body.types.closure({}, call.body.types.unit()));
  if (isError(closure))
    return call.failed();
  if (closure->type->kind != TypeKind::Closure || !closure->type->elems.empty())
    return call.wrongArg(closure, "a closure without parameters: `time(|| …)`");
  return makeBuiltin(call.body, Builtin::Time, call.body.types.scalar(Scalar::F64), call.range(), {closure});
}

Expr* checkExit(BuiltinCall& call) {
  std::vector<Expr*> args;
  if (call.has(0)) {
    Expr* status = call.arg(0);
    if (isError(status))
      return call.failed();
    if (status->type->kind != TypeKind::Scalar || !isInteger(status->type->scalar))
      return call.wrongArg(status, "an integer");
    args.push_back(status);
  }
  return makeBuiltin(call.body, Builtin::Exit, call.body.types.never(), call.range(), std::move(args));
}

Expr* checkParse(BuiltinCall& call) {
  Expr* text = textArg(call, 0);
  if (!text)
    return call.failed();
  const bool isInt = call.row.id == Builtin::ParseInt;
  return makeBuiltin(call.body, call.row.id, call.body.types.scalar(isInt ? Scalar::I64 : Scalar::F64), call.range(),
                     {text});
}

Expr* checkToText(BuiltinCall& call) {
  Expr* value = call.arg(0);
  if (isError(value))
    return call.failed();
  return isPrintable(value->type)
             ? makeBuiltin(call.body, Builtin::ToText, call.body.types.string(), call.range(), {value})
             : call.wrongArg(value, "a value that has a text");
}

}  // namespace vortex::lang

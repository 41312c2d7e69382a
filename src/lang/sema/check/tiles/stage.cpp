#include "lang/sema/check/tiles/stage.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/types/shapes.h"
#include "lang/sema/check/types/spaces.h"

#include "base/text.h"

namespace vortex::lang {

bool isStageable(BodyState& body, const Expr* view, std::string_view what) {
  Type type = view->type;
  if (!type->isTensor()) {
    error(body, "E0473", view->range,
          base::concat("`", what, "` copies a slice of a tensor, not a `", text(body, type), "`"));
    return false;
  }
  bool inMemory = !type->isValue && (type->space == Space::Global || type->space == Space::Constant);
  if (!inMemory) {
    error(body, "E0473", view->range, base::concat("`", what, "` copies from global or constant memory"))
        .primary(type->isValue ? "a value that the compiler places" : "this is in " + spaceText(type))
        .help("assign it: `tile = …`");
    return false;
  }
  if (!isConstantShape(type)) {
    error(body, "E0472", view->range, "the extents of a staged slice must be constants")
        .primary("an extent of this is known only at run time")
        .help("write its length: `a[i..+32]`; elements outside the tensor are copied as 0");
    return false;
  }
  return true;
}

/// `x = stage(view)`: x must be shared, of the view's shape and type.
bool mayStageInto(BodyState& body, const Expr* target, const Expr* view, SourceRange range) {
  Type to = target->type, from = view->type;
  if (to->kind == TypeKind::Ref)
    to = to->elem;
  if (!to->isTensor() || to->isValue || to->space != Space::Shared) {
    error(body, "E0470", range,
          base::concat("staging copies into shared memory, not into ", !to->isTensor() ? "a `" + text(body, to) + "`"
                                                                       : to->isValue   ? std::string("a value")
                                                                                       : spaceText(to)))
        .label(view->range, "copied from here")
        .help("declare the destination `@shared`");
    return false;
  }
  if (to->elem != from->elem) {
    error(body, "E0471", view->range,
          base::concat("staging does not convert: `", text(body, from->elem), "` is copied into `",
                       text(body, to->elem), "`"))
        .primary("elements of `" + text(body, from->elem) + "`")
        .label(range, "elements of `" + text(body, to->elem) + "`")
        .help(base::concat("declare the shared tensor with `", text(body, from->elem),
                           "`, or assign the slice without staging it"));
    return false;
  }
  if (!sameShape(body, to, from)) {
    error(body, "E0304", view->range,
          base::concat("expected the shape `", shapeText(body, to), "`, found `", shapeText(body, from), "`"))
        .label(range, "`" + shapeText(body, to) + "`");
    return false;
  }
  return true;
}

}  // namespace vortex::lang

#include "passes/workers.h"

namespace vortex::passes {

mlir::DictionaryAttr workersFacts(mlir::MLIRContext* context) {
  mlir::Builder builder(context);
  return builder.getDictionaryAttr({builder.getNamedAttr("name", builder.getStringAttr("workers")),
                                    builder.getNamedAttr("role", ir::RoleAttr::get(context, ir::Role::Temp))});
}

ir::SizeAttr workersOf(ir::EntryOp entry) {
  for (auto [number, facts] : llvm::enumerate(entry.getArgs().getAsRange<mlir::DictionaryAttr>()))
    if (facts == workersFacts(entry.getContext()))
      return ir::sizeScalar(entry.getContext(), static_cast<unsigned>(number));
  return {};
}

}  // namespace vortex::passes

#include "passes/workers.h"

namespace vortex::passes {

mlir::DictionaryAttr workersFacts(mlir::MLIRContext* context, unsigned clusterBlocks) {
  mlir::Builder builder(context);
  const std::string name = clusterBlocks == 1 ? "workers" : "clusters" + std::to_string(clusterBlocks);
  llvm::SmallVector<mlir::NamedAttribute> facts = {
      builder.getNamedAttr("name", builder.getStringAttr(name)),
      builder.getNamedAttr("role", ir::RoleAttr::get(context, ir::Role::Temp))};
  if (clusterBlocks != 1)
    facts.push_back(builder.getNamedAttr("cluster_blocks", builder.getI64IntegerAttr(clusterBlocks)));
  return builder.getDictionaryAttr(facts);
}

ir::SizeAttr workersOf(ir::EntryOp entry, unsigned clusterBlocks) {
  for (auto [number, facts] : llvm::enumerate(entry.getArgs().getAsRange<mlir::DictionaryAttr>()))
    if (facts == workersFacts(entry.getContext(), clusterBlocks))
      return ir::sizeScalar(entry.getContext(), static_cast<unsigned>(number));
  return {};
}

}  // namespace vortex::passes

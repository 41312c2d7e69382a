#include "target/interface/faults.h"

#include "ir/location.h"
#include "ir/vx.h"

#include <llvm/ADT/STLExtras.h>

namespace vortex::target {

uint32_t addFault(std::vector<artifact::Fault>& faults, mlir::Operation* op, llvm::StringRef id,
                  llvm::StringRef message) {
  artifact::Fault fault{id.str(), message.str(), "", 0, 0};
  if (mlir::FileLineColLoc location = ir::fileLocation(op->getLoc())) {
    fault.file = location.getFilename().str();
    fault.line = location.getLine();
    fault.column = location.getColumn();
  }
  for (auto [i, known] : llvm::enumerate(faults))
    if (known.id == fault.id && known.message == fault.message && known.file == fault.file &&
        known.line == fault.line && known.column == fault.column)
      return i;
  faults.push_back(std::move(fault));
  return faults.size() - 1;
}

uint32_t addValues(std::vector<artifact::Fault>& faults, mlir::Operation* op, llvm::StringRef text,
                   mlir::ValueRange values, llvm::ArrayRef<bool> isUnsigned) {
  std::string id = mlir::isa<ir::PrintOp>(op) ? "print:" : "assert:";
  for (auto [i, value] : llvm::enumerate(values)) {
    mlir::Type type = value.getType();
    id += type.isF64()                                                 ? 'd'
          : mlir::isa<mlir::FloatType>(type)                           ? 'f'
          : type.isInteger(1)                                          ? 'b'
          : type.isIndex() || (i < isUnsigned.size() && isUnsigned[i]) ? 'u'
                                                                       : 'i';
  }
  return addFault(faults, op, id, text);
}

}  // namespace vortex::target

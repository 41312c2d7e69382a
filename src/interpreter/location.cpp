#include "interpreter/location.h"

#include "base/check.h"

namespace vortex::interpreter {

Location locationOf(mlir::Location location) {
  if (auto position = llvm::dyn_cast<mlir::FileLineColLoc>(location))
    return {position.getFilename().str(), position.getLine(), position.getColumn()};
  if (auto named = llvm::dyn_cast<mlir::NameLoc>(location))
    return locationOf(named.getChildLoc());
  if (auto call = llvm::dyn_cast<mlir::CallSiteLoc>(location))
    return locationOf(call.getCallee());
  if (auto fused = llvm::dyn_cast<mlir::FusedLoc>(location))
    for (mlir::Location part : fused.getLocations())
      if (Location found = locationOf(part); !found.file.empty())
        return found;
  return {};
}

std::string toText(const Location& location) {
  if (location.file.empty())
    return {};
  return location.file + ":" + std::to_string(location.line) + ":" + std::to_string(location.column) + ": ";
}

std::string idOf(const Finding& finding) {
  using Kind = Finding::Kind;
  switch (finding.kind) {
  case Kind::Assertion: return finding.id.empty() ? "E0704" : finding.id;
  case Kind::Bounds: return "E0601";
  case Kind::Uninitialised: return "E0602";
  case Kind::Race: return "E0603";
  case Kind::Divergence: return "E0604";
  case Kind::Overflow: return "E0605";
  case Kind::Steps: return "E0606";
  case Kind::Memory: return "E0703";
  case Kind::Constraint:
  case Kind::Shape: return "E0712";
  }
  VORTEX_UNREACHABLE();
}

std::string toText(const Finding& finding) {
  std::string text = toText(finding.location) + finding.message;
  for (const Finding::Note& note : finding.notes)
    text += "\n" + toText(note.location) + note.message;
  return text;
}

}  // namespace vortex::interpreter

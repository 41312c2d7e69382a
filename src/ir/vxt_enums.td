// Enums of the vxt dialect, apart from its operations: the enum generator emits every enum it sees, vx's would come out twice.
#ifndef VORTEX_IR_VXT_ENUMS
#define VORTEX_IR_VXT_ENUMS
include "mlir/IR/EnumAttr.td"

def Vxt_Cache : I32EnumAttr<"Cache", "what the caches are told about an access", [
  I32EnumAttrCase<"Default", 0, "default">,
  I32EnumAttrCase<"ReadOnly", 1, "read_only">,    // nobody writes the memory during the launch: the non-coherent path
  I32EnumAttrCase<"Streaming", 2, "streaming">,   // touched once: evict first
  I32EnumAttrCase<"ReadOnlyStreaming", 3, "read_only_streaming">,
  I32EnumAttrCase<"Global", 4, "global_level">,   // keep in L2 only
]> {
  let cppNamespace = "::vortex::ir::vxt";
  let genSpecializedAttr = 0;
}
#endif

# The precompiled header of every MLIR target: build/vortex.pch. Not CMake's own, whose file records absolute paths of the checkout:
# this one is the same bytes in every checkout, so ccache shares the objects that use it.
set(header ${CMAKE_BINARY_DIR}/vortex.pch)
set(mlirHeaders ${LLVM_INCLUDE_DIR}/mlir)
set(included mlir/IR/BuiltinOps.h mlir/IR/BuiltinTypes.h mlir/Pass/Pass.h
    mlir/Dialect/Arith/IR/Arith.h mlir/Dialect/Math/IR/Math.h mlir/Dialect/SCF/IR/SCF.h mlir/Dialect/Func/IR/FuncOps.h)
list(TRANSFORM included PREPEND "-include;" OUTPUT_VARIABLE includeFlags)
separate_arguments(releaseFlags NATIVE_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE}")
add_custom_command(OUTPUT ${header}
  COMMAND ${CMAKE_CXX_COMPILER} ${releaseFlags} -std=c++20 ${VORTEX_CXX_OPTIONS} -Xclang -fno-pch-timestamp
          -isystem ${LLVM_INCLUDE_DIR} ${includeFlags} -x c++-header ${mlirHeaders}/IR/Builders.h -o vortex.pch
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR} DEPENDS ${mlirHeaders}/Config/mlir-config.h ${CMAKE_SOURCE_DIR}/cmake/flags.cmake
  COMMENT "Building the precompiled header" VERBATIM COMMAND_EXPAND_LISTS)
add_custom_target(vortex_pch DEPENDS ${header})

function(vortex_use_pch name)
  target_compile_options(${name} PRIVATE "SHELL:-include-pch vortex.pch") # relative: ninja runs in the build folder
  add_dependencies(${name} vortex_pch)
  get_target_property(sources ${name} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/vortex.pch)
endfunction()

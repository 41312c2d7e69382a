# One set of flags for every target: the shared precompiled header is refused by a target whose flags differ.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# -O1: a third less build time than -O2; kernels are compiled by LLVM, not by these flags. Assertions of LLVM's headers stay on.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g0")
set(CMAKE_C_FLAGS_RELEASE "-O1 -g0")
# LLVM's modules replace the output folders and append their own flags: keep ours.
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})

# The precompiled header is compiled by a command of our own, from the same list.
set(VORTEX_CXX_OPTIONS -fPIC -Wall -Wextra -Werror -fno-exceptions)
add_link_options(-fuse-ld=lld -Wl,--gc-sections)

separate_arguments(llvmDefinitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
list(APPEND VORTEX_CXX_OPTIONS ${llvmDefinitions})
if(VORTEX_SANITIZE STREQUAL "address")
  # AddressSanitizer finds null pointers and short objects; with UBSan's checks of each access the build takes 40 % longer.
  list(APPEND VORTEX_CXX_OPTIONS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-sanitize=vptr,function,null,alignment,object-size)
  add_link_options(-fsanitize=address,undefined)
elseif(VORTEX_SANITIZE STREQUAL "thread")
  list(APPEND VORTEX_CXX_OPTIONS -fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(VORTEX_SANITIZE)
  message(FATAL_ERROR "VORTEX_SANITIZE is address, thread or empty, not ${VORTEX_SANITIZE}")
endif()
if(VORTEX_FUZZ)
  list(APPEND VORTEX_CXX_OPTIONS -fsanitize=fuzzer-no-link)
endif()
if(VORTEX_COVERAGE)
  list(APPEND VORTEX_CXX_OPTIONS -fprofile-instr-generate -fcoverage-mapping -fcoverage-compilation-dir=. -fcoverage-prefix-map=${CMAKE_SOURCE_DIR}=.)
  add_link_options(-fprofile-instr-generate)
endif()
add_compile_options(${VORTEX_CXX_OPTIONS} "SHELL:-Xclang -fno-pch-timestamp")
include_directories(${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/src)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})

# Most of a compile is reading headers: several sources share it: docs/decisions/0018. 0 compiles each file alone.
set(VORTEX_UNITY 16 CACHE STRING "sources per translation unit, 0 for one each")

find_program(CCACHE ccache)
if(CCACHE)
  # A precompiled header needs the sloppiness; the base folder lets several checkouts share results.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

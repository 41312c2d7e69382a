# find_package(Vortex): the runtime as Vortex::runtime, Metal kernels as Vortex::metal (in bundles made with --metal), the compiler driver as ${Vortex_COMPILER}, and
#
#   vortex_kernels(<target> <file.vx>… [TARGETS cpu|sm_90|…] [DIMS D=128…])
#
# which compiles every kernel of the files at build time, for each of TARGETS (default: cpu), and puts the typed launchers on the target's
# include path: #include "<file>.<kernel>.hpp". The artifacts are embedded in the launchers.
get_filename_component(Vortex_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(Vortex_COMPILER "${Vortex_PREFIX}/bin/vortex")

if(NOT TARGET Vortex::runtime)
  add_library(Vortex::runtime SHARED IMPORTED)
  set_target_properties(Vortex::runtime PROPERTIES
    IMPORTED_LOCATION "${Vortex_PREFIX}/lib/libvortex_runtime.so"
    INTERFACE_INCLUDE_DIRECTORIES "${Vortex_PREFIX}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()

# Metal kernels with the names of metal-cpp, where the bundle was made with --metal.
if(NOT TARGET Vortex::metal AND EXISTS "${Vortex_PREFIX}/lib/libvortex_metal.so")
  foreach(library compiler metal)
    add_library(Vortex::${library} SHARED IMPORTED)
    set_target_properties(Vortex::${library} PROPERTIES IMPORTED_LOCATION "${Vortex_PREFIX}/lib/libvortex_${library}.so"
      INTERFACE_LINK_LIBRARIES Vortex::runtime)
  endforeach()
  set_property(TARGET Vortex::metal APPEND PROPERTY INTERFACE_LINK_LIBRARIES Vortex::compiler)
endif()

function(vortex_kernels target)
  cmake_parse_arguments(ARG "" "" "TARGETS;DIMS" ${ARGN})
  if(NOT ARG_TARGETS)
    set(ARG_TARGETS cpu)
  endif()
  string(REPLACE ";" "," targets "${ARG_TARGETS}")
  set(dims "")
  foreach(dim ${ARG_DIMS})
    list(APPEND dims --dim ${dim})
  endforeach()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels")
  file(MAKE_DIRECTORY "${folder}")
  foreach(source ${ARG_UNPARSED_ARGUMENTS})
    get_filename_component(source "${source}" ABSOLUTE)
    get_filename_component(stem "${source}" NAME_WE)
    set(stamp "${folder}/${stem}.stamp")
    add_custom_command(OUTPUT "${stamp}" DEPENDS "${source}" "${Vortex_COMPILER}"
      COMMAND "${Vortex_COMPILER}" build --header --target ${targets} ${dims} -o "${folder}" "${source}"
      COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}" VERBATIM COMMENT "Compiling kernels of ${stem}.vx")
    target_sources(${target} PRIVATE "${stamp}")
  endforeach()
  target_include_directories(${target} PRIVATE "${folder}")
  target_link_libraries(${target} PRIVATE Vortex::runtime)
endfunction()

# How GPU code is compiled, and what a variant's line promises about its kernels.
option(TMAOPS_WATCHDOG "Barrier waits in kernels that last too long print where and trap (for debugging: costs registers)" OFF)

option(TMAOPS_LINE_INFO "Source lines in the kernels' machine code, for ncu: a tenth of the kernels' build time" OFF)

# Kernels with wgmma (sm90a) run on Hopper alone. Those that need no more than TMA (sm90) are compiled for Hopper and for the
# GPU of this machine; a package for others is built with -DTMAOPS_GPUS=ALL, which takes about twice as long.
set(TMAOPS_GPUS AUTO CACHE STRING "GPUs the kernels are compiled for: AUTO (Hopper and this machine's) or ALL")
set(TMAOPS_ARCHITECTURES_sm90a 90a-real)
set(TMAOPS_ARCHITECTURES_sm90 90a-real)
set(TMAOPS_COMPILED_FOR 90)
if(NOT TMAOPS_GPUS STREQUAL "ALL")
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE found ERROR_QUIET)
endif()
foreach(capability 100 120)
  string(REGEX REPLACE "0$" ".0" dotted ${capability})
  if(TMAOPS_GPUS STREQUAL "ALL" OR "\n${found}" MATCHES "\n${dotted}")
    list(APPEND TMAOPS_ARCHITECTURES_sm90 ${capability}-real)
    string(APPEND TMAOPS_COMPILED_FOR ",${capability}")
  endif()
endforeach()

# Architectures and flags of a target's .cu files. Device code is left uncompressed so that tests can read it. Their host
# code prepares and launches, and a plan repeats launches that it has noted: what GCC makes of it is not to be measured.
function(tmaops_cuda_settings target arch)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${TMAOPS_ARCHITECTURES_${arch}}")
  set(flags --expt-relaxed-constexpr --no-compress -Xcompiler=-Wall,-Wextra,-O1)
  if(TMAOPS_LINE_INFO)
    list(APPEND flags -lineinfo)
  endif()
  if(TMAOPS_WARNINGS_AS_ERRORS)
    list(APPEND flags -Werror all-warnings)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
  target_compile_definitions(${target} PRIVATE TMAOPS_WATCHDOG=$<BOOL:${TMAOPS_WATCHDOG}>
    TMAOPS_COMPILED_FOR=${TMAOPS_COMPILED_FOR})
  target_link_libraries(${target} PRIVATE tmaops_settings)
endfunction()

# The .cu files (below src or tests) as they are compiled: in one, `name`.cu, where TMAOPS_TOGETHER says so. A file's headers
# take nvcc as long as a simple kernel, and CMake's own unity build is for C++ alone. Kernels come out the same.
function(tmaops_cuda_together result name)
  list(LENGTH ARGN count)
  set(files ${ARGN})
  if(TMAOPS_TOGETHER AND count GREATER 1)
    list(TRANSFORM files REPLACE "^${PROJECT_SOURCE_DIR}/(src|tests)/(.*)" "#include \"\\2\"\n" OUTPUT_VARIABLE includes)
    string(REPLACE ";" "" includes "${includes}")
    set(files ${PROJECT_BINARY_DIR}/generated/kernels/${name}.cu)
    file(CONFIGURE OUTPUT ${files} CONTENT "${includes}" @ONLY)
  endif()
  set(${result} "${files}" PARENT_SCOPE)
endfunction()

# The kernel files of a room's variants as they are compiled; each gets the smem(...) of its line as TMAOPS_VARIANT_SMEM,
# which dynamic_shared() and launch_kernel() hold it to, so those of one smem(...) are compiled together. But not those with
# kernels from headers of the room, whose names do not say which variant's they are (tests/codegen asks for that).
# Global properties: TMAOPS_OBJECT_<room>_<variant>, the end of its object's name as an expression, and
# TMAOPS_NEIGHBOURS_<room>_<variant>, the others in it.
set(tmaops_variants_alone narrow_rows tensor_levels tensor_merged vector_atomics_backward warp_atomics_backward
  fixed_point_backward)
function(tmaops_kernel_files room result)
  set(budgets "")
  set(files "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    file(STRINGS ${PROJECT_SOURCE_DIR}/src/ops/${room}/variants.def line REGEX "VARIANT\\([a-z0-9_]+, ${name}, cuda, ")
    if(NOT line MATCHES "smem\\(([0-9]+)\\)")
      message(FATAL_ERROR "a cuda variant declares smem(bytes): ${line}")
    endif()
    set(smem ${CMAKE_MATCH_1})
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS TMAOPS_VARIANT_SMEM=${smem})
    set_property(GLOBAL PROPERTY TMAOPS_OBJECT_${room}_${name} "/${room}/cuda/${name}[.]cu")
    if(name IN_LIST tmaops_variants_alone)
      list(APPEND files ${source})
    else()
      list(APPEND budgets ${smem})
      list(APPEND sources_${smem} ${source})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES budgets)
  foreach(smem IN LISTS budgets)
    tmaops_cuda_together(of_budget ${room}_smem_${smem} ${sources_${smem}})
    list(APPEND files ${of_budget})
    if(of_budget STREQUAL "${sources_${smem}}")  # single files
      continue()
    endif()
    set_property(SOURCE ${of_budget} APPEND PROPERTY COMPILE_DEFINITIONS TMAOPS_VARIANT_SMEM=${smem})
    list(TRANSFORM sources_${smem} REPLACE ".*/(.*)[.]cu" "\\1" OUTPUT_VARIABLE names)
    foreach(name IN LISTS names)
      set_property(GLOBAL PROPERTY TMAOPS_OBJECT_${room}_${name} "/${room}_smem_${smem}[.]cu")
      set(neighbours ${names})
      list(REMOVE_ITEM neighbours ${name})
      set_property(GLOBAL PROPERTY TMAOPS_NEIGHBOURS_${room}_${name} ${neighbours})
    endforeach()
  endforeach()
  set(${result} "${files}" PARENT_SCOPE)
endfunction()

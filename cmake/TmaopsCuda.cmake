# How GPU code is compiled, and what a variant's line promises about its kernels.
option(TMAOPS_WATCHDOG "Barrier waits in kernels that last too long print where and trap (for debugging: costs registers)" OFF)

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

# Architectures and flags of a target's .cu files. Device code is left uncompressed so that tests can read it.
function(tmaops_cuda_settings target arch)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${TMAOPS_ARCHITECTURES_${arch}}")
  set(flags --expt-relaxed-constexpr -lineinfo --no-compress -Xcompiler=-Wall,-Wextra)
  if(TMAOPS_WARNINGS_AS_ERRORS)
    list(APPEND flags -Werror all-warnings)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
  target_compile_definitions(${target} PRIVATE TMAOPS_WATCHDOG=$<BOOL:${TMAOPS_WATCHDOG}>
    TMAOPS_COMPILED_FOR=${TMAOPS_COMPILED_FOR})
  target_link_libraries(${target} PRIVATE tmaops_settings)
endfunction()

# Gives a kernel file the smem(...) of its line as TMAOPS_VARIANT_SMEM, which dynamic_shared() and launch_kernel() hold
# it to.
function(tmaops_cuda_budgets room)
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/ops/${room}/variants.def lines REGEX "^TMAOPS_(PLANNED_)?VARIANT\\(.*, cuda, ")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^TMAOPS_(PLANNED_)?VARIANT\\([a-z0-9_]+, ([a-z0-9_]+), .*, smem\\(([0-9]+)\\)")
      message(FATAL_ERROR "a cuda variant declares smem(bytes): ${line}")
    endif()
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/ops/${room}/cuda/${CMAKE_MATCH_2}.cu APPEND PROPERTY COMPILE_DEFINITIONS
      TMAOPS_VARIANT_SMEM=${CMAKE_MATCH_3})
  endforeach()
endfunction()

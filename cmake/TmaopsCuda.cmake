# How GPU code is compiled, and what a variant's line promises about its kernels.
option(TMAOPS_WATCHDOG "Barrier waits in kernels that last too long print where and trap (for debugging: costs registers)" OFF)

set(TMAOPS_ARCHITECTURES_sm90a 90a-real)                   # wgmma, setmaxnreg
set(TMAOPS_ARCHITECTURES_sm90 90a-real 100-real 120-real)  # TMA and mbarrier only

# Architectures and flags of a target's .cu files. Device code is left uncompressed so that tests can read it.
function(tmaops_cuda_settings target arch)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${TMAOPS_ARCHITECTURES_${arch}}")
  set(flags --expt-relaxed-constexpr -lineinfo --no-compress -Xcompiler=-Wall,-Wextra)
  if(TMAOPS_WARNINGS_AS_ERRORS)
    list(APPEND flags -Werror all-warnings)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
  target_compile_definitions(${target} PRIVATE TMAOPS_WATCHDOG=$<BOOL:${TMAOPS_WATCHDOG}>)
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

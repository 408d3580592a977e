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
  target_compile_definitions(${target} PRIVATE TMAOPS_WATCHDOG=$<BOOL:${TMAOPS_WATCHDOG}>)
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

# Variants whose kernel files are compiled together, a group per string; any other file is compiled alone. What takes half a
# minute by itself stays alone, so that two processors have work to the end. Variants with dynamic shared memory and
# variants with arrays of a fixed size stay apart: the alignment of the former (1024 bytes) rounds up what the latter take.
set(tmaops_together_ms_deform_attn
  "vector16 shuffled_samples cp_async_pipeline shared_padded fused_vectors channel_per_thread"
  "tma_resident tma_tile"
  "vector_atomics_backward pixel_lists_backward warp_atomics_backward fixed_point_backward")
set(tmaops_together_resample
  "bulk_window bulk_window_lane bulk_window_block bulk_window_walk touched_rows_lane touched_rows_block touched_rows_once"
  "narrow_rows narrow_rows_plain curve_window curve_window_walk"
  "async_pipeline persistent window_gather"
  "touched_rows warp_search element_search row_gather count_violations")
set(tmaops_together_tile_load
  "plain_prefetch plain cp_async cooperative_copy tensor_block"
  "tensor_levels tensor_warp tensor_merged bulk_rows")

# The kernel files of a room's variants as they are compiled. Which variant a kernel is of, its namespace says.
# Global properties: TMAOPS_OBJECT_<room>_<variant>, the end of its object's name as an expression, and
# TMAOPS_NEIGHBOURS_<room>_<variant>, the others in it.
function(tmaops_kernel_files room result)
  set(files "")
  set(groups "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    if(source MATCHES "/gpu/([a-z0-9_]+)/[^/]*$")
      set(name ${CMAKE_MATCH_1})
    endif()
    set(group ${name})
    foreach(together IN LISTS tmaops_together_${room})
      if(" ${together} " MATCHES " ${name} ")
        string(REGEX REPLACE " .*" "_and_others" group ${together})
      endif()
    endforeach()
    list(APPEND groups ${group})
    list(APPEND sources_${group} ${source})
    list(APPEND names_${group} ${name})
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    tmaops_cuda_together(as_compiled ${room}_${group} ${sources_${group}})
    list(APPEND files ${as_compiled})
    foreach(name IN LISTS names_${group})
      if(as_compiled STREQUAL "${sources_${group}}")  # single files
        set_property(GLOBAL PROPERTY TMAOPS_OBJECT_${room}_${name} "/${room}/(cuda/${name}|([a-z]+/)?gpu/${name}/[a-z_]+)[.]cu")
      else()
        set(neighbours ${names_${group}})
        list(REMOVE_ITEM neighbours ${name})
        set_property(GLOBAL PROPERTY TMAOPS_OBJECT_${room}_${name} "/${room}_${group}[.]cu")
        set_property(GLOBAL PROPERTY TMAOPS_NEIGHBOURS_${room}_${name} ${neighbours})
      endif()
    endforeach()
  endforeach()
  set(${result} "${files}" PARENT_SCOPE)
endfunction()

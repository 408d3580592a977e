# How GPU code is compiled, and what a variant's line promises about its kernels.
option(TMAOPS_WATCHDOG "Barrier waits in kernels that last too long print where and trap (for debugging: costs registers)" OFF)

option(TMAOPS_COMPRESS_KERNELS "Compress the kernels' machine code, which tests/codegen then cannot read" OFF)

option(TMAOPS_LINE_INFO "Source lines in the kernels' machine code, for ncu: a tenth of the kernels' build time" OFF)

set(TMAOPS_TYPES "" CACHE STRING "Element types whose GPU kernels are compiled (f64, f32, f16, bf16), for short builds while a kernel is written; all when empty")

# Kernels with wgmma (sm90a) run on Hopper alone, kernels with TMA (sm90) from Hopper on, all others (sm80) from compute
# capability 8.0 on. A build holds those of Hopper and of this machine's GPU. ALL takes several times as long. 80-virtual
# holds the sm80 kernels alone, as PTX for compute capability 8.0: a newer GPU then runs what an older one would.
set(TMAOPS_GPUS AUTO CACHE STRING "GPUs the kernels are compiled for: AUTO (Hopper and this machine's), ALL, or 80-virtual")
set(TMAOPS_ARCHS sm90a sm90 sm80)  # what a line of variants.def may say
set(TMAOPS_COMPILED_FOR 90)
# Compute capabilities of this machine's GPUs, one a line.
execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE TMAOPS_GPUS_HERE
  RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0)
  set(TMAOPS_GPUS_HERE "")
endif()
if(TMAOPS_GPUS STREQUAL "80-virtual")
  set(TMAOPS_ARCHITECTURES_sm80 80-virtual)
  set(TMAOPS_COMPILED_FOR 80)
else()
  foreach(arch IN LISTS TMAOPS_ARCHS)
    set(TMAOPS_ARCHITECTURES_${arch} 90a-real)
  endforeach()
  # Machine code runs on later minor versions too.
  foreach(gpu "80 8[.][0-5]" "86 8[.][678]" "89 8[.]9" "100 10[.]" "120 12[.]")
    string(REPLACE " " ";" gpu ${gpu})
    list(GET gpu 0 capability)
    list(GET gpu 1 pattern)
    if(TMAOPS_GPUS STREQUAL "ALL" OR "\n${TMAOPS_GPUS_HERE}" MATCHES "\n${pattern}")
      list(APPEND TMAOPS_ARCHITECTURES_sm80 ${capability}-real)
      if(capability GREATER 90)
        list(APPEND TMAOPS_ARCHITECTURES_sm90 ${capability}-real)
      endif()
      string(APPEND TMAOPS_COMPILED_FOR ",${capability}")
    endif()
  endforeach()
endif()

# Architectures and flags of a target's .cu files. Their host
# code makes plans and runs once for each, so -O1 is enough.
function(tmaops_cuda_settings target arch)
  if(TMAOPS_EXECUTOR)
    tmaops_executor_settings(${target})
    return()
  endif()
  set(architectures ${TMAOPS_ARCHITECTURES_${arch}})
  if(NOT architectures)  # 80-virtual: it must compile, and does not run
    set(architectures 90a-real)
  endif()
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
  set(flags --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra,-O1)
  if(NOT TMAOPS_COMPRESS_KERNELS)
    list(APPEND flags --no-compress)
  endif()
  if(TMAOPS_LINE_INFO)
    list(APPEND flags -lineinfo)
  endif()
  if(TMAOPS_WARNINGS_AS_ERRORS)
    list(APPEND flags -Werror all-warnings)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
  target_compile_definitions(${target} PRIVATE TMAOPS_WATCHDOG=$<BOOL:${TMAOPS_WATCHDOG}>)
  if(TMAOPS_TYPES)
    list(JOIN TMAOPS_TYPES "," types)
    target_compile_definitions(${target} PRIVATE TMAOPS_TYPES="${types}")
  endif()
  target_link_libraries(${target} PRIVATE tmaops_settings)
endfunction()

# generated/kernels/`name`.cu, which includes `files`.
function(tmaops_write_kernels result name files)
  list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n")
  list(JOIN files "" includes)
  set(${result} ${PROJECT_BINARY_DIR}/generated/kernels/${name}.cu)
  file(CONFIGURE OUTPUT ${${result}} CONTENT "${includes}" @ONLY)
  set(${result} ${${result}} PARENT_SCOPE)
endfunction()

# The .cu files (below src, tests or measure) as they are compiled: in one, `name`.cu, where TMAOPS_TOGETHER says so. A file's headers
# take nvcc as long as a simple kernel, and CMake's own unity build is for C++ alone. Kernels come out the same.
function(tmaops_cuda_together result name)
  list(LENGTH ARGN count)
  set(files ${ARGN})
  if(TMAOPS_TOGETHER AND count GREATER 1)
    list(TRANSFORM files REPLACE "^${PROJECT_SOURCE_DIR}/(src|tests|measure)/" "")
    tmaops_write_kernels(files ${name} "${files}")
    if(TMAOPS_WHEEL AND TMAOPS_OBJECTS_FROM)  # the same object
      cmake_path(RELATIVE_PATH CMAKE_CURRENT_BINARY_DIR BASE_DIRECTORY ${PROJECT_BINARY_DIR} OUTPUT_VARIABLE folder)
      set(files ${TMAOPS_OBJECTS_FROM}/${folder}/CMakeFiles/tmaops_${name}.dir/__/__/generated/kernels/${name}.cu.o)
    endif()
  endif()
  set(${result} "${files}" PARENT_SCOPE)
endfunction()

# How many bytes of variants are compiled together, in about half a minute. More saves reading headers, less gives two
# processors work to the end. Kernels with wgmma take ptxas three times as long.
set(TMAOPS_BYTES_TOGETHER_sm90a 16000)
set(TMAOPS_BYTES_TOGETHER_sm90 40000)
set(TMAOPS_BYTES_TOGETHER_sm80 40000)

# The kernel files of a room's variants for `arch` as they are compiled, as part of a target: behind the LaunchSites of
# their variants, so that a line of variants.def compiles its own kernel anew and few others. In groups, in the order of
# variants.def: variants of one home whose shared memory is of one kind; without TMAOPS_TOGETHER each variant alone. Dynamic
# shared memory and arrays of a fixed size stay apart, since the alignment of the former (1024 bytes) rounds up what the
# latter take.
# Which variant a kernel is of, its namespace says. Global properties for each <home>_<variant>: TMAOPS_TARGET_*,
# TMAOPS_OBJECT_*, the end of its object's name as an expression, and TMAOPS_NEIGHBOURS_*, the others in it.
function(tmaops_kernel_files room arch target result)
  set(folders ${ARGN})
  list(TRANSFORM folders REPLACE "/[^/]*$" "")
  list(REMOVE_DUPLICATES folders)
  set(files "")
  foreach(folder IN LISTS folders)
    cmake_path(GET folder FILENAME name)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE home)
    string(REGEX REPLACE "/gpu/[^/]*$" "" home ${home})
    tmaops_home_name(home ${home})
    set(bytes 0)
    set(kind fixed)
    file(GLOB variant_files CONFIGURE_DEPENDS ${folder}/*.cu ${folder}/*.cuh)
    foreach(file IN LISTS variant_files)
      file(SIZE ${file} size)
      math(EXPR bytes "${bytes} + ${size}")
      file(STRINGS ${file} dynamic REGEX "kSite[.]smem" LIMIT_COUNT 1)
      if(dynamic)
        set(kind dynamic)
      endif()
    endforeach()
    set(key ${home}_${kind})
    math(EXPR together "0${bytes_${key}} + ${bytes}")
    if(NOT TMAOPS_TOGETHER OR NOT DEFINED group_${key} OR together GREATER TMAOPS_BYTES_TOGETHER_${arch})
      set(group_${key} ${home}_${name})
      set(together ${bytes})
      list(APPEND groups ${home}_${name})
    endif()
    set(bytes_${key} ${together})
    set(group ${group_${key}})
    list(APPEND names_${group} ${name})
    list(APPEND homes_${group} ${home})
    list(APPEND sources_${group} sites/${home}_${name}.hpp)
    foreach(source IN LISTS ARGN)
      cmake_path(GET source PARENT_PATH parent)
      if(parent STREQUAL folder)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
        string(REGEX REPLACE "^src/" "" source ${source})
        list(APPEND sources_${group} ${source})
      endif()
    endforeach()
  endforeach()
  foreach(group IN LISTS groups)
    tmaops_write_kernels(as_compiled ${group} "${sources_${group}}")
    list(APPEND files ${as_compiled})
    list(GET homes_${group} 0 home)
    foreach(name IN LISTS names_${group})
      set(neighbours ${names_${group}})
      list(REMOVE_ITEM neighbours ${name})
      set_property(GLOBAL PROPERTY TMAOPS_TARGET_${home}_${name} ${target})
      set_property(GLOBAL PROPERTY TMAOPS_OBJECT_${home}_${name} "/${group}[.]cu")
      set_property(GLOBAL PROPERTY TMAOPS_NEIGHBOURS_${home}_${name} ${neighbours})
    endforeach()
  endforeach()
  set(${result} "${files}" PARENT_SCOPE)
endfunction()

# Reads src/ops/<room>/variants.def and, of the variants that are there to be compared, study/<room>/variants.def: one line per
# variant, best first, reference last. Either file may be missing, and so may the folder study.
#
#   TMAOPS_VARIANT(op, name, device, arch, "description", attributes...)
#
# is the folder <home>/cpu/<name>/ (for cuda <home>/gpu/<name>/), or the file <home>/reference.cpp for a name that starts with
# `reference`. The home of an operator is its room in src/ops or in study, there <room>/forward where that exists, and
# <room>/backward for <room>_backward. A line without a folder, or a folder without a line, stops the configure.
# supports(tiles) stands for a supports() of the folder that returns gpu::supports_tiles(problem), of the operator's shared files.
# A variant whose needs("library") is missing, and a cuda variant without a toolkit, is left out: its line stays in the table
# with the reason. A cuda variant whose supports() and configs() are in .cpp files of its folder keeps them there, so that
# what is chosen on a GPU can be tested without a toolkit. A variant of study/ gets the attribute `study`: it is not in the
# installed library, nor is an operator with nothing but studies. In an operator's table the studies stand behind its cuda
# variants.
#
# Result: generated/<op>_variants.inc and generated/<op>_table.cpp for every op named in the room, generated/sites/<home>_<variant>.hpp
# with the LaunchSite of a cuda variant, and the lists of sources <room>_<what> and <room>_<what>_studies, where <what> is
# SOURCES (C++), TABLES or KERNELS_<arch>. tmaops_operators and tmaops_studied_operators are appended to.

# Folder of an operator: src/ops/<room>, src/ops/<room>/forward, src/ops/<room>/<what> for <room>_<what>, or study/<room>.
# `base` is src/ops or study.
function(tmaops_home result base room op)
  string(REGEX REPLACE "^${room}_?" "" part ${op})
  if(NOT part)
    set(part forward)
  endif()
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${base}/${room}/${part})
    set(${result} ${base}/${room}/${part} PARENT_SCOPE)
  else()
    set(${result} ${base}/${room} PARENT_SCOPE)
  endif()
endfunction()

# The folder as a part of a name: ms_deform_attn_forward, study_gemm.
function(tmaops_home_name result home)
  string(REGEX REPLACE "^src/ops/" "" name ${home})
  string(REPLACE "/" "_" name ${name})
  set(${result} ${name} PARENT_SCOPE)
endfunction()

function(tmaops_read_variants room)
  set(named "")
  set(ops "")
  foreach(base src/ops study)
    set(file ${PROJECT_SOURCE_DIR}/${base}/${room}/variants.def)
    if(NOT EXISTS ${file})
      continue()
    endif()
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} lines REGEX "^TMAOPS_VARIANT\\(")
    if(NOT lines)
      message(FATAL_ERROR "${file} names no variant")
    endif()
    foreach(line IN LISTS lines)
      if(NOT line MATCHES "^TMAOPS_VARIANT\\(([a-z0-9_]+), ([a-z0-9_]+), (cpu|cuda), ([a-z0-9_]+), (\".*\\))$")
        message(FATAL_ERROR "${file}: not of the form TMAOPS_VARIANT(op, name, cpu|cuda, arch, \"description\", ...):\n  ${line}")
      endif()
      set(op ${CMAKE_MATCH_1})
      set(name ${CMAKE_MATCH_2})
      set(device ${CMAKE_MATCH_3})
      set(arch ${CMAKE_MATCH_4})
      set(rest "${CMAKE_MATCH_5}")
      if(device STREQUAL "cuda" AND NOT arch IN_LIST TMAOPS_ARCHS)
        message(FATAL_ERROR "${file}: a cuda variant has one of the architectures ${TMAOPS_ARCHS}:\n  ${line}")
      endif()

      tmaops_home(home ${base} ${room} ${op})
      if(device STREQUAL "cuda")
        if(NOT rest MATCHES "smem\\(([0-9]+)\\)")
          message(FATAL_ERROR "${file}: a cuda variant declares smem(bytes):\n  ${line}")
        endif()
        tmaops_home_name(site ${home}_${name})
        file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/sites/${site}.hpp CONTENT "// Made by CMake from ${base}/${room}/variants.def.
#pragma once

#include \"core/launch_site.hpp\"

namespace tmaops::ops::${op}::${name} {
inline constexpr LaunchSite kSite(\"${op}: ${name}\", ${CMAKE_MATCH_1});
}  // namespace tmaops::ops::${op}::${name}
" @ONLY)
        set(place ${home}/gpu/${name})
      elseif(name MATCHES "^reference")
        set(place ${home}/reference.cpp)
      else()
        set(place ${home}/cpu/${name})
      endif()
      if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${place})
        message(FATAL_ERROR "${file} names the variant ${name}, but there is no ${place}")
      endif()
      list(APPEND named ${place})
      set(host_sources ${PROJECT_SOURCE_DIR}/${place})
      set(kernel_sources "")
      if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${place})
        file(GLOB host_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${place}/*.cpp)
        file(GLOB kernel_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${place}/*.cu)
      endif()

      string(REGEX REPLACE "^\"[^\"]*\"" "" attributes "${rest}")
      if(base STREQUAL "study")
        set(part _studies)
        string(REGEX REPLACE "^(\"[^\"]*\")" "\\1, study" rest "${rest}")
      else()
        set(part "")
        list(APPEND chosen_ops ${op})
      endif()

      set(missing "")
      if(device STREQUAL "cuda" AND NOT TMAOPS_HAVE_CUDA)
        set(missing "${TMAOPS_MISSING_cuda}")
      elseif(device STREQUAL "cuda" AND NOT TMAOPS_ARCHITECTURES_${arch})
        set(missing "configured with -DTMAOPS_GPUS=${TMAOPS_GPUS}, which leaves out the kernels of ${arch}")
      elseif(device STREQUAL "cpu" AND TMAOPS_EXECUTOR AND NOT name MATCHES "^reference")
        set(missing "a build with the executor has the reference alone on the CPU")
      elseif(rest MATCHES "needs\\(\"([a-z0-9]+)\"\\)")
        if(NOT DEFINED TMAOPS_HAVE_${CMAKE_MATCH_1})
          message(FATAL_ERROR "${file}: needs(\"${CMAKE_MATCH_1}\") is not known to cmake/TmaopsDependencies.cmake")
        endif()
        if(NOT TMAOPS_HAVE_${CMAKE_MATCH_1})
          set(missing "${TMAOPS_MISSING_${CMAKE_MATCH_1}}")
        endif()
      endif()

      if(NOT op IN_LIST ops)
        list(APPEND ops ${op})
        set(problem_${op} ${home}/problem.hpp)
        if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${home}/problem.hpp)
          set(problem_${op} ${base}/${room}/problem.hpp)
        endif()
        if(base STREQUAL "study")  # which offers the whole operator
          set(problem_${op} offers/${op}.hpp)
        endif()
        string(REGEX REPLACE "^src/" "" problem_${op} ${problem_${op}})
      endif()
      set(supports nullptr)
      set(plan nullptr)
      set(configs nullptr)
      set(supports_in "")
      set(rule "")
      if(rest MATCHES ", supports\\(([a-z0-9_]+)\\)")
        set(rule supports_${CMAKE_MATCH_1})
        string(REPLACE "${CMAKE_MATCH_0}" "" rest "${rest}")
        string(APPEND rules_${op} "namespace gpu { Support ${rule}(const Problem&); }\n")
      endif()
      if(missing AND device STREQUAL "cuda")
        foreach(source IN LISTS host_sources)
          file(STRINGS ${source} supports_here REGEX "^Support supports\\(")
          string(APPEND supports_in "${supports_here}")
        endforeach()
      endif()
      if(NOT missing OR supports_in)
        set(supports "&${name}::supports")
        if(attributes MATCHES "[ ,]configs[,)]")
          set(configs "&${name}::configs")
        endif()
        list(APPEND SOURCES${part} ${host_sources})
      endif()
      if(rule)
        set(supports "[](const Problem& problem, const DeviceInfo&) { return gpu::${rule}(problem); }")
      endif()
      if(NOT missing)
        set(plan "&${name}::plan")
        list(APPEND KERNELS_${arch}${part} ${kernel_sources})
      endif()
      set(line "TMAOPS_VARIANT(\"${missing}\", ${supports}, ${plan}, ${configs}, ${op}, ${name}, ${device}, ${arch}, ${rest}")
      if(part)
        string(APPEND studies_${op} "#ifndef TMAOPS_WITHOUT_STUDIES\n${line}\n#endif\n")
      else()
        string(APPEND ${device}_${op} "${line}\n")
      endif()
    endforeach()
  endforeach()

  # What no line names.
  foreach(base src/ops study)
    set(patterns cpu/* gpu/* */cpu/* */gpu/* reference*.cpp */reference*.cpp)
    list(TRANSFORM patterns PREPEND ${PROJECT_SOURCE_DIR}/${base}/${room}/)
    file(GLOB found RELATIVE ${PROJECT_SOURCE_DIR} LIST_DIRECTORIES TRUE CONFIGURE_DEPENDS ${patterns})
    foreach(place IN LISTS found)
      if(NOT place IN_LIST named)
        message(FATAL_ERROR "${place} has no line in variants.def")
      endif()
    endforeach()
    # What the variants share.
    file(GLOB_RECURSE shared CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${base}/${room}/*.cpp)
    list(FILTER shared EXCLUDE REGEX "/${base}/${room}/(.*/)?(reference[^/]*\\.cpp$|(cpu|gpu)/)")
    if(base STREQUAL "study")
      list(APPEND SOURCES_studies ${shared})
    else()
      list(APPEND SOURCES ${shared})
    endif()
  endforeach()

  foreach(op IN LISTS ops)
    set(part "")
    if(NOT op IN_LIST chosen_ops)
      set(part _studies)
      list(APPEND studied ${op})
    endif()
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${op}_variants.inc CONTENT
      "// Made by CMake from the variants.def files of ${room}.\n${cuda_${op}}${studies_${op}}${cpu_${op}}" @ONLY)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${op}_table.cpp CONTENT
      "// Made by CMake from the variants.def files of ${room}.\n#include <vector>\n\n#include \"${problem_${op}}\"\n\nnamespace tmaops::ops::${op} {\n${rules_${op}}#define TMAOPS_VARIANTS_INC \"${op}_variants.inc\"\n#include \"core/operator_table.inc\"\n}  // namespace tmaops::ops::${op}\n" @ONLY)
    list(APPEND TABLES${part} ${PROJECT_BINARY_DIR}/generated/${op}_table.cpp)
  endforeach()

  set(tmaops_operators ${tmaops_operators} ${ops} PARENT_SCOPE)
  set(tmaops_studied_operators ${tmaops_studied_operators} ${studied} PARENT_SCOPE)
  foreach(part "" _studies)
    foreach(what SOURCES TABLES KERNELS_sm90a KERNELS_sm90 KERNELS_sm80)
      set(${room}_${what}${part} "${${what}${part}}" PARENT_SCOPE)
    endforeach()
  endforeach()
endfunction()

# generated/operators.inc: TMAOPS_OPERATOR(op) for every operator, in alphabetical order.
function(tmaops_write_operators)
  list(SORT tmaops_operators)
  set(text "// Made by CMake from the variants.def files.\n")
  foreach(op IN LISTS tmaops_operators)
    set(line "TMAOPS_OPERATOR(${op})\n")
    if(op IN_LIST tmaops_studied_operators)
      set(line "#ifndef TMAOPS_WITHOUT_STUDIES\n${line}#endif\n")
    endif()
    string(APPEND text "${line}")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/operators.inc CONTENT "${text}" @ONLY)
endfunction()

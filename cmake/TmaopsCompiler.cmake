# Flags every target of the project is compiled with, carried by the interface library tmaops_settings.
add_library(tmaops_settings INTERFACE)
target_compile_features(tmaops_settings INTERFACE cxx_std_20)
target_include_directories(tmaops_settings INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)

set(warnings -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Woverloaded-virtual
  -Wconversion -Wno-sign-conversion -Wimplicit-fallthrough)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND warnings -Wduplicated-cond -Wlogical-op)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND warnings -Wno-restrict)  # false alarm on "text" + std::string, GCC bug 105651
  endif()
endif()
if(TMAOPS_WARNINGS_AS_ERRORS)
  list(APPEND warnings -Werror)
endif()
target_compile_options(tmaops_settings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")

# GCC collects garbage whenever its heap of 128 MB is full, which takes a tenth of the time of the large files.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)

# Most of the time for a small file goes to the headers it shares with its neighbours and to their templates. So files of an
# operator, or of another part, that take part in no measurement are compiled together, where names in anonymous namespaces
# must then differ.
option(TMAOPS_TOGETHER "Compile small files of a part together: half of the processor time (OFF to work on single files)" ON)
function(tmaops_compile_together target group)
  if(TMAOPS_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
    # A struct of the project that holds one of an anonymous namespace: GCC takes the file for a header then.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# tmaops_<part>, a static library of a wing. A wheel takes the C++ object of the build that it takes objects from.
function(tmaops_add_part part)
  set(sources ${ARGN})
  set(together ${ARGN})
  list(FILTER together INCLUDE REGEX "[.]cpp$")
  if(TMAOPS_WHEEL AND TMAOPS_OBJECTS_FROM)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
    list(REMOVE_ITEM sources ${together})
    list(APPEND sources ${TMAOPS_OBJECTS_FROM}/${folder}/CMakeFiles/tmaops_${part}.dir/Unity/unity_${part}_cxx.cxx.o)
  endif()
  add_library(tmaops_${part} STATIC ${sources})
  set_target_properties(tmaops_${part} PROPERTIES LINKER_LANGUAGE CXX)
  tmaops_compile_together(tmaops_${part} ${part} ${together})
endfunction()

# -O3 of the release build is for what is measured. On the rest it takes up to twice as long to compile, and gains nothing.
function(tmaops_optimise target level)
  if(NOT TMAOPS_EXECUTOR)  # which has its own level
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:${level}>)
  endif()
endfunction()

# The command line is templates of CLI11 and nlohmann-json, and works through no data. Builds that nobody but tests runs do
# not optimise it: it compiles in half the time.
set(TMAOPS_COMMAND_LEVEL -O1)
if(TMAOPS_SANITIZE OR TMAOPS_EXECUTOR)
  set(TMAOPS_COMMAND_LEVEL -O0)
endif()

# UBSan checks the library and the tool. The code of the tests is half of that build, and AddressSanitizer alone checks it.
if(TMAOPS_SANITIZE)
  set(flags -fsanitize=${TMAOPS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_compile_options(tmaops_settings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${flags}>"
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:$<TARGET_PROPERTY:TMAOPS_IS_TEST>>>:-fno-sanitize=undefined>")
  target_link_options(tmaops_settings INTERFACE -fsanitize=${TMAOPS_SANITIZE})
  if(TMAOPS_SANITIZE MATCHES "address")  # at a fixed address: nothing is relocated at the start, of which there are thousands
    target_link_options(tmaops_settings INTERFACE -no-pie)
  endif()
endif()

# ThreadSanitizer looks at nothing but threads. So it gets what runs in several, which halves its build: the library and
# the workloads of bench, and the tests of these folders. The tool, its files and the tensor maps use one thread.
set(TMAOPS_TESTED_FOLDERS ".*")
if(TMAOPS_SANITIZE MATCHES "thread")
  set(TMAOPS_TESTED_FOLDERS "^(core|(ops|study)/.*|bench)$")
endif()

# Each target of Highway is a pass over every vector file. SSE4 serves all processors since 2008, and nothing here uses what
# AVX3_DL has beyond AVX3. A sanitizer build runs on this machine alone: it has the widest vectors of the machine and what
# every processor has. Threads are the same with any vectors.
set(TMAOPS_LEFT_OUT_SIMD "HWY_SSSE3|HWY_AVX3_DL")
if(TMAOPS_SANITIZE)
  string(APPEND TMAOPS_LEFT_OUT_SIMD "|HWY_SSE4")
  file(STRINGS /proc/cpuinfo wide REGEX avx512vl LIMIT_COUNT 1)
  if(NOT wide OR TMAOPS_SANITIZE MATCHES "thread")
    string(APPEND TMAOPS_LEFT_OUT_SIMD "|HWY_AVX3")
  endif()
  if(wide OR TMAOPS_SANITIZE MATCHES "thread")
    string(APPEND TMAOPS_LEFT_OUT_SIMD "|HWY_AVX2")
  endif()
endif()

# tmaops_add_executor_program(name file.cu ...): a program with kernels on the device layer that runs, and is checked, without a
# GPU (docs/executor.md). Its kernels are launched by device/launch.cuh. Where the project has tests, it runs under each schedule.

# The hooks of -fsanitize=thread report every access; nothing of the sanitizer is linked. -O1: with -O0 every local variable is
# an access. The vectorizer would merge accesses of several elements.
set(TMAOPS_EXECUTOR_FLAGS -O1 -g1 -w -Wno-psabi -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -fno-tree-vectorize
  -fno-strict-aliasing -fno-ipa-reference "SHELL:-include executor/shim/prelude.hpp")

function(tmaops_add_executor_program name)
  if(NOT ARGN)
    message(FATAL_ERROR "tmaops_add_executor_program(${name}): got no file, needs the program's: file.cu ...")
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "tmaops_add_executor_program(${name}): got the compiler ${CMAKE_CXX_COMPILER_ID}, needs GCC")
  endif()
  add_executable(${name} ${ARGN})
  set(files ${ARGN})
  list(FILTER files INCLUDE REGEX "[.]cu$")
  set_source_files_properties(${files} PROPERTIES LANGUAGE CXX)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE ${TMAOPS_EXECUTOR_FLAGS})
  target_compile_definitions(${name} PRIVATE TMAOPS_EXECUTOR TMAOPS_WATCHDOG=0)
  target_link_libraries(${name} PRIVATE tmaops::executor)
  set_target_properties(${name} PROPERTIES NO_SYSTEM_FROM_IMPORTED ON)  # so that its headers go before CUDA's
  foreach(schedule random eager lazy starving)
    add_test(NAME ${name}.${schedule} COMMAND ${name})
    set_tests_properties(${name}.${schedule} PROPERTIES ENVIRONMENT TMAOPS_EXECUTOR_SCHEDULE=${schedule} LABELS executor)
  endforeach()
endfunction()

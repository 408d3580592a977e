# GPU kernels as C++ for the executor (src/executor). The twins of the device layer go before it, and the hooks of
# -fsanitize=thread report every access; nothing of the sanitizer is linked.
if(TMAOPS_CUDA STREQUAL "ON" OR TMAOPS_SANITIZE)
  message(FATAL_ERROR "TMAOPS_EXECUTOR=ON is a build of its own: without TMAOPS_CUDA=ON and TMAOPS_SANITIZE")
endif()
find_program(addr2line addr2line REQUIRED)  # for the lines of findings
# Half of the build is host code that measures nothing here: the executor alone is optimised (src/CMakeLists.txt).
string(REPLACE "-O3" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

include(TmaopsExecutorProgram)  # the flags

function(tmaops_executor_settings target)
  get_target_property(files ${target} SOURCES)
  list(FILTER files INCLUDE REGEX "[.]cu$")
  set_source_files_properties(${files} PROPERTIES LANGUAGE CXX)
  target_compile_options(${target} PRIVATE ${TMAOPS_EXECUTOR_FLAGS})
  target_compile_definitions(${target} PRIVATE TMAOPS_EXECUTOR TMAOPS_WATCHDOG=0)
  target_include_directories(${target} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/src/executor/shim)
  target_link_libraries(${target} PRIVATE tmaops_settings tmaops_cudart)
endfunction()

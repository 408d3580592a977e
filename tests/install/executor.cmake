# Installs the executor into an empty prefix, then builds and runs a program with a kernel of its own against it. Wrong uses of
# tmaops_add_executor_program and of its variables say what they got and need.
# cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... -DCXX=... -DCTEST=... -P executor.cmake
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)
step(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/executor -B ${WORK_DIR}/build
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX})
step(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
step(${CTEST} --test-dir ${WORK_DIR}/build --no-tests=error)

function(expect_failure words)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(status EQUAL 0 OR NOT text MATCHES "${words}")
    message(FATAL_ERROR "no '${words}' in (${status}):\n${text}")
  endif()
endfunction()
expect_failure("TMAOPS_EXECUTOR_SCHEDULE: got 'slow', needed random, eager, lazy or starving"
  ${CMAKE_COMMAND} -E env TMAOPS_EXECUTOR_SCHEDULE=slow ${WORK_DIR}/build/doubled)
expect_failure("TMAOPS_EXECUTOR_SEED: got '-1', needed a whole number"
  ${CMAKE_COMMAND} -E env TMAOPS_EXECUTOR_SEED=-1 ${WORK_DIR}/build/doubled)
set(begin "cmake_minimum_required(VERSION 3.25)
project(wrong LANGUAGES CXX)
find_package(tmaops_executor REQUIRED)
")
file(WRITE ${WORK_DIR}/empty/CMakeLists.txt "${begin}tmaops_add_executor_program(empty)")
expect_failure("tmaops_add_executor_program.empty.: got no file, needs the program's"
  ${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK_DIR}/empty -B ${WORK_DIR}/empty/build -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
  -DCMAKE_CXX_COMPILER=${CXX})
file(WRITE ${WORK_DIR}/shared/CMakeLists.txt "${begin}tmaops_add_executor_program(shared shared.cu)")
file(WRITE ${WORK_DIR}/shared/shared.cu "__global__ void kernel() { __shared__ int word; }\n")
step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK_DIR}/shared -B ${WORK_DIR}/shared/build
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX})
expect_failure("error: __shared__ is unknown to the executor: device::block_shared<T>.. is"
  ${CMAKE_COMMAND} --build ${WORK_DIR}/shared/build)

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

# What the executor does not know is refused where it is compiled, with what to use instead.
set(project "${begin}")
function(expect_refused name code words)
  file(WRITE ${WORK_DIR}/refused/${name}.cu "#include \"device/launch.cuh\"\n${code}\n")
  set(project "${project}tmaops_add_executor_program(${name} ${name}.cu)\n" PARENT_SCOPE)
  set(refused ${refused} "${name}=${words}" PARENT_SCOPE)
endfunction()
expect_refused(shared "__global__ void kernel() { __shared__ int word; }" "__shared__ is unknown to the executor: device::block_shared<T>.. is")
expect_refused(barrier "#include <cuda/barrier>" "cuda::barrier is unknown to the executor: device::Barrier of device/barrier.cuh is")
expect_refused(ptx "#include <cuda/ptx>" "cuda::ptx is unknown to the executor: the functions of device/")
expect_refused(inline "__global__ void kernel() { asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\")\; }"
  "inline PTX is unknown to the executor: the functions of device/")
expect_refused(wmma "#include <mma.h>" "nvcuda::wmma is unknown to the executor: device/mma.cuh and device/wgmma.cuh are")
expect_refused(reduce "#include <cooperative_groups/reduce.h>" "cooperative_groups::reduce is unknown to the executor: __reduce_add_sync")
expect_refused(grid "#include <cooperative_groups.h>\nvoid kernel() { cooperative_groups::this_grid(); }"
  "this_grid is unknown to the executor: a block, a cluster and tiles are known")
expect_refused(mapped "#include <cooperative_groups.h>\nvoid kernel(int* at) { cooperative_groups::this_cluster().map_shared_rank(at, 1); }"
  "map_shared_rank is unknown to the executor: device::arrive_at.. and device::store_async.. are")
expect_refused(stages "#include <cuda/pipeline>\ncuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;"
  "the executor knows pipelines of a thread, of make_pipeline..: for a block's, device::Ring")
expect_refused(unaligned "#include <cuda/pipeline>
void kernel(int* to, int* from) { auto pipeline = cuda::make_pipeline(); cuda::memcpy_async(to, from, std::size_t{4}, pipeline); }"
  "the executor copies cuda::aligned_size_t<16>.bytes., or of <4> or <8>")
file(WRITE ${WORK_DIR}/refused/CMakeLists.txt "${project}")
step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK_DIR}/refused -B ${WORK_DIR}/refused/build
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX})
foreach(one IN LISTS refused)
  string(REGEX MATCH "^([a-z]+)=(.*)$" one "${one}")
  expect_failure("error: .*${CMAKE_MATCH_2}" ${CMAKE_COMMAND} --build ${WORK_DIR}/refused/build --target ${CMAKE_MATCH_1})
endforeach()

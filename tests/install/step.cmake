# Starts with an empty WORK_DIR; step(command ...) runs a command that must succeed. use_from_c() configures, builds and runs
# the consumer in C against what is installed in WORK_DIR/prefix.
file(REMOVE_RECURSE ${WORK_DIR})
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}\n${text}")
  endif()
endfunction()
function(use_from_c)
  step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/c -B ${WORK_DIR}/c
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_C_COMPILER=${CC} -DCMAKE_BUILD_TYPE=Release)
  step(${CMAKE_COMMAND} --build ${WORK_DIR}/c)
  step(${WORK_DIR}/c/c_consumer)
endfunction()

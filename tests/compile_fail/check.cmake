# Compiles `source` and checks that it fails with the text `expected` (or compiles, when that is "nothing").
execute_process(COMMAND ${nvcc} -std=c++20 -arch=compute_90a --expt-relaxed-constexpr -I${include} -ptx ${source} -o /dev/null
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(FIND "${output}" "${expected}" at)
if(expected STREQUAL "nothing")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "does not compile:\n${output}")
  endif()
elseif(result EQUAL 0)
  message(FATAL_ERROR "compiled, but should not have")
elseif(at EQUAL -1)
  message(FATAL_ERROR "failed without the words '${expected}':\n${output}")
endif()

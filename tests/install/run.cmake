# Installs the build into an empty prefix, then configures, builds and runs the consumer against it.
# The archive exports nothing, nor does a library of a client's into which it is linked; it holds no variant marked `study`.
# cmake -DBUILD_DIR=... -DFULL_LIBRARY=... -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... -DCXX=... -DPYTHON=... -P run.cmake
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)
step(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE_DIR} -B ${WORK_DIR}/build -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release)
step(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
step(${WORK_DIR}/build/consumer)
step(${WORK_DIR}/build/plugin_host)
if(PYTHON)
  file(GLOB_RECURSE archive ${WORK_DIR}/prefix/libtmaops.a)
  step(${PYTHON} ${SOURCE_DIR}/check_symbols.py hidden-archive ${archive})
  step(${PYTHON} ${SOURCE_DIR}/check_symbols.py studies ${archive} ${FULL_LIBRARY} ${SOURCE_DIR}/../..)
  step(${PYTHON} ${SOURCE_DIR}/check_symbols.py nothing-of-tmaops ${WORK_DIR}/build/libplugin.so)
endif()
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE package ${WORK_DIR}/prefix/tmaops.pc)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${package} COMMAND_ERROR_IS_FATAL ANY
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags)
  step(${CXX} -std=c++20 ${SOURCE_DIR}/consumer.cpp ${flags} -o ${WORK_DIR}/by_pkg_config)
  step(${WORK_DIR}/by_pkg_config)
endif()
if(NOT EXISTS ${WORK_DIR}/prefix/share/tmaops/python_peers.py)
  message(FATAL_ERROR "the installed tool does not find its Python peers: share/tmaops/python_peers.py is missing")
endif()

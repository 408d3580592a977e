# Builds the library as a shared one, with the compiled variants of BUILD_DIR, installs it into an empty prefix, and lets clients that were
# built against it run. What it exports is what the headers mark.
# cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... -DCXX=... -DCC=... -DPYTHON=... -P shared.cmake
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)
step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE_DIR} -B ${WORK_DIR}/library -DBUILD_SHARED_LIBS=ON -DTMAOPS_CUDA=OFF
  -DTMAOPS_OBJECTS_FROM=${BUILD_DIR} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
step(${CMAKE_COMMAND} --build ${WORK_DIR}/library)
step(${CMAKE_COMMAND} --install ${WORK_DIR}/library --prefix ${WORK_DIR}/prefix)
file(GLOB library ${WORK_DIR}/prefix/lib*/libtmaops.so ${WORK_DIR}/prefix/lib/*/libtmaops.so)
step(${PYTHON} ${CMAKE_CURRENT_LIST_DIR}/check_symbols.py api ${library} ${SOURCE_DIR}/include)

step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK_DIR}/build
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_VISIBILITY_PRESET=hidden)
step(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
step(${WORK_DIR}/build/consumer)
step(${WORK_DIR}/build/plugin_host)
use_from_c()

# `cmake --install` of a build with the executor: what runs and checks kernels of one's own, without operators.
include(CMakePackageConfigHelpers)
include(TmaopsInstallHeaders)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/tmaops_executor)
install(TARGETS tmaops_executor EXPORT tmaops_executor-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/executor/shim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tmaops/executor)
install(FILES src/executor/gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tmaops/executor)  # commands for gdb
install(FILES src/executor/interface.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tmaops/executor)
install(EXPORT tmaops_executor-targets NAMESPACE tmaops:: DESTINATION ${package_directory})
configure_package_config_file(cmake/tmaops_executor-config.cmake.in ${PROJECT_BINARY_DIR}/tmaops_executor-config.cmake
  INSTALL_DESTINATION ${package_directory})
install(FILES ${PROJECT_BINARY_DIR}/tmaops_executor-config.cmake cmake/TmaopsExecutorProgram.cmake DESTINATION ${package_directory})

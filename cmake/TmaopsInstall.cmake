# `cmake --install`: library, public headers, package files for find_package(tmaops) and pkg-config, the tool.
include(CMakePackageConfigHelpers)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/tmaops)

# Libraries a static tmaops leaves to its users; tmaops-config.cmake finds them again, pkg-config names them.
set(TMAOPS_STATIC_NEEDS "")
set(TMAOPS_STATIC_NEEDS_HINTS "")
if(NOT BUILD_SHARED_LIBS)
  if(TMAOPS_HAVE_highway)
    list(APPEND TMAOPS_STATIC_NEEDS hwy)
  endif()
  if(TMAOPS_HAVE_onednn)
    list(APPEND TMAOPS_STATIC_NEEDS dnnl)
  endif()
  if(TMAOPS_HAVE_CUDA)
    list(APPEND TMAOPS_STATIC_NEEDS cudart_static rt dl)
    cmake_path(GET TMAOPS_CUDART_LIBRARY PARENT_PATH TMAOPS_STATIC_NEEDS_HINTS)
  endif()
endif()
list(TRANSFORM TMAOPS_STATIC_NEEDS PREPEND " -l" OUTPUT_VARIABLE TMAOPS_PKGCONFIG_LIBRARIES)
list(JOIN TMAOPS_PKGCONFIG_LIBRARIES "" TMAOPS_PKGCONFIG_LIBRARIES)
list(JOIN TMAOPS_STATIC_NEEDS " " TMAOPS_STATIC_NEEDS)

install(TARGETS tmaops EXPORT tmaops-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tmaops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tmaops-targets NAMESPACE tmaops:: DESTINATION ${package_directory})
configure_package_config_file(cmake/tmaops-config.cmake.in ${PROJECT_BINARY_DIR}/tmaops-config.cmake
  INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tmaops-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tmaops-config.cmake ${PROJECT_BINARY_DIR}/tmaops-config-version.cmake
  DESTINATION ${package_directory})
configure_file(cmake/tmaops.pc.in ${PROJECT_BINARY_DIR}/tmaops.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tmaops.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tmaops)
if(TARGET tmaops_tool)
  install(TARGETS tmaops_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES scripts/peers/python_peers.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tmaops)
endif()

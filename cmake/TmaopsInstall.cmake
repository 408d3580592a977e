# `cmake --install`: library, public headers, package files for find_package(tmaops) and pkg-config, the tool.
include(CMakePackageConfigHelpers)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/tmaops)

# A static tmaops drags its own static needs along; what it links is found again on the user's machine.
set(TMAOPS_CONFIG_DEPENDENCIES "")
set(TMAOPS_PKGCONFIG_LIBRARIES "")
if(TMAOPS_HAVE_highway)
  string(APPEND TMAOPS_CONFIG_DEPENDENCIES "find_dependency(hwy)\n")
  string(APPEND TMAOPS_PKGCONFIG_LIBRARIES " -lhwy")
endif()
if(TMAOPS_HAVE_onednn)
  string(APPEND TMAOPS_CONFIG_DEPENDENCIES
    "if(NOT TARGET tmaops::onednn)\n"
    "  find_library(TMAOPS_ONEDNN_LIBRARY dnnl REQUIRED)\n"
    "  add_library(tmaops::onednn INTERFACE IMPORTED)\n"
    "  target_link_libraries(tmaops::onednn INTERFACE \${TMAOPS_ONEDNN_LIBRARY})\n"
    "endif()\n")
  string(APPEND TMAOPS_PKGCONFIG_LIBRARIES " -ldnnl")
endif()
if(TMAOPS_HAVE_CUDA)
  string(APPEND TMAOPS_CONFIG_DEPENDENCIES "find_dependency(CUDAToolkit)\n")
  string(APPEND TMAOPS_PKGCONFIG_LIBRARIES " -lcudart_static -lrt -ldl")
endif()

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
endif()

# `cmake --install`: library, headers, package config for find_package(tmaops), pkg-config file, tool.
include(CMakePackageConfigHelpers)
install(TARGETS tmaops EXPORT tmaops-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tmaops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

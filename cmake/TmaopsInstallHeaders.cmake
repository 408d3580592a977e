# The public headers and the device layer: for what is installed with the library and with the executor.
install(DIRECTORY include/tmaops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY src/device DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tmaops)

# What the Python wheel holds beside its modules, as the install component `python`: the shared library and the tool.
# scikit-build-core says where the package lies; by hand it is `cmake --install BUILD --component python --prefix DIR`.
set(package tmaops)
if(SKBUILD)
  set(package ${SKBUILD_PLATLIB_DIR}/tmaops)
endif()
target_link_options(tmaops_tool PRIVATE -Wl,--gc-sections,-s)
if(TMAOPS_YAML_ARCHIVE)
  # std::random_device, which nothing uses and which comes with the archive, would ask for glibc 2.36.
  target_link_options(tmaops_tool PRIVATE -static-libstdc++ -Wl,--defsym=arc4random=abort)
endif()
install(FILES python/MultiScaleDeformableAttention.py DESTINATION ${package}/.. COMPONENT python)
install(TARGETS tmaops_shared LIBRARY DESTINATION ${package}/lib COMPONENT python)
install(TARGETS tmaops_tool RUNTIME DESTINATION ${package}/bin COMPONENT python)
# The tool finds them from its own folder: ../share/tmaops.
install(FILES scripts/peers/python_peers.py DESTINATION ${package}/share/tmaops COMPONENT python)
install(DIRECTORY configs DESTINATION ${package}/share/tmaops COMPONENT python)

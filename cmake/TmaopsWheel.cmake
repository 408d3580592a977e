# What the Python wheel holds beside its modules, as the install component `python`: the shared library and the tool.
# scikit-build-core says where the package lies; by hand it is `cmake --install BUILD --component python --prefix DIR`.
set(package tmaops)
if(SKBUILD)
  set(package ${SKBUILD_PLATLIB_DIR}/tmaops)
endif()
add_custom_target(tmaops_wheel DEPENDS tmaops_shared)
if(TARGET tmaops_tool)  # not without the folder tool
  add_dependencies(tmaops_wheel tmaops_tool)
  target_link_options(tmaops_tool PRIVATE -Wl,--gc-sections,-s)
  if(TMAOPS_YAML_ARCHIVE)
    # std::random_device, which nothing uses and which comes with the archive, would ask for glibc 2.36.
    target_link_options(tmaops_tool PRIVATE -static-libstdc++ -Wl,--defsym=arc4random=abort)
  endif()
  install(TARGETS tmaops_tool RUNTIME DESTINATION ${package}/bin COMPONENT python)
  # The tool finds them from its own folder: ../share/tmaops.
  install(FILES scripts/peers/python_peers.py DESTINATION ${package}/share/tmaops COMPONENT python)
  install(DIRECTORY configs DESTINATION ${package}/share/tmaops COMPONENT python)
endif()
install(FILES python/MultiScaleDeformableAttention.py DESTINATION ${package}/.. COMPONENT python)
install(TARGETS tmaops_shared LIBRARY DESTINATION ${package}/lib COMPONENT python)

# The kernels of tmaops.torch, against the headers of a torch; they run on torch 2.10 and newer.
set(TMAOPS_TORCH_DIR "" CACHE PATH "Folder of the Python package torch (2.10 or newer), to build the native half of tmaops.torch")
if(TMAOPS_TORCH_DIR)
  add_library(tmaops_torch SHARED python/torch/operators.cpp)
  target_link_libraries(tmaops_torch PRIVATE tmaops_settings)
  target_include_directories(tmaops_torch SYSTEM PRIVATE ${TMAOPS_TORCH_DIR}/include)
  target_compile_definitions(tmaops_torch PRIVATE TORCH_TARGET_VERSION=0x020a000000000000ull)
  # Without the DT_NEEDED torch.ops.load_library finds none of torch's symbols, though they are in the process.
  target_link_options(tmaops_torch PRIVATE -static-libstdc++ -Wl,--exclude-libs,ALL,--gc-sections -Wl,--no-as-needed ${TMAOPS_TORCH_DIR}/lib/libtorch_cpu.so -Wl,--as-needed,-s)
  set_target_properties(tmaops_torch PROPERTIES SKIP_BUILD_RPATH ON)
  add_dependencies(tmaops_shared tmaops_torch)
  install(TARGETS tmaops_torch LIBRARY DESTINATION ${package}/lib COMPONENT python)
endif()

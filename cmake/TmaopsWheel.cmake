# What the Python wheel holds beside its modules, as the install component `python`: the shared library and the tool.
# scikit-build-core says where the package lies; by hand it is `cmake --install BUILD --component python --prefix DIR`.
set(package tmaops)
if(SKBUILD)
  set(package ${SKBUILD_PLATLIB_DIR}/tmaops)
endif()
# The library has the tool's code and the variants of study/ in it, so that both have the kernels once, and its C++ runtime, beside
# that of its users. The C interface does not list the studies. The tool is a program of one line.
set(entry ${PROJECT_BINARY_DIR}/generated/wheel.cpp)
file(CONFIGURE OUTPUT ${entry} CONTENT "// Made by CMake.\n" @ONLY)
if(TARGET tmaops_tool)  # not without the folder tool
  file(CONFIGURE OUTPUT ${entry} CONTENT "// Made by CMake.
int tool_main(int, char**);
extern \"C\" __attribute__((visibility(\"default\"))) int tmaops_tool(int argc, char** argv) { return tool_main(argc, argv); }\n" @ONLY)
endif()
# On x86-64 the three binaries ask for glibc 2.28 alone, whatever the system has.
set(old_glibc "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64 AND NOT TMAOPS_SANITIZE)
  execute_process(COMMAND python3 ${PROJECT_SOURCE_DIR}/cmake/old_glibc.py ${PROJECT_BINARY_DIR}/old_glibc
    OUTPUT_VARIABLE old_glibc OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
function(tmaops_link_old_glibc target)
  if(old_glibc)
    list(POP_FRONT old_glibc source)
    list(JOIN old_glibc "," libraries)
    target_sources(${target} PRIVATE ${source})
    target_link_options(${target} PRIVATE -Wl,--allow-shlib-undefined,--push-state,--no-as-needed,${libraries},--pop-state)
  endif()
endfunction()
add_library(tmaops_shared SHARED ${entry} $<TARGET_OBJECTS:tmaops_objects>)
set_target_properties(tmaops_shared PROPERTIES OUTPUT_NAME tmaops LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/src)
tmaops_library_settings(tmaops_shared)
set(exports ${PROJECT_BINARY_DIR}/generated/wheel.map)
file(CONFIGURE OUTPUT ${exports} CONTENT "{ global: tmaops_*; local: *; };\n" @ONLY)
target_link_options(tmaops_shared PRIVATE -Wl,--version-script=${exports} -static-libstdc++ -Wl,--gc-sections,-s,-z,defs)
tmaops_link_old_glibc(tmaops_shared)
set(whole tmaops)
add_custom_target(tmaops_wheel DEPENDS tmaops_shared)
if(TARGET tmaops_tool)
  set(whole tmaops_with_studies)
  target_link_libraries(tmaops_shared PRIVATE tmaops_cli)
  add_dependencies(tmaops_wheel tmaops_tool)
  target_link_libraries(tmaops_tool PRIVATE tmaops_shared)
  target_link_options(tmaops_tool PRIVATE -static-libstdc++ -Wl,-s)
  tmaops_link_old_glibc(tmaops_tool)
  set_target_properties(tmaops_tool PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS tmaops_tool RUNTIME DESTINATION ${package}/bin COMPONENT python)
  # The tool finds them from its own folder: ../share/tmaops.
  install(FILES scripts/peers/python_peers.py DESTINATION ${package}/share/tmaops COMPONENT python)
  install(DIRECTORY configs DESTINATION ${package}/share/tmaops COMPONENT python)
endif()
target_link_libraries(tmaops_shared PRIVATE ${whole})
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
  tmaops_link_old_glibc(tmaops_torch)
  set_target_properties(tmaops_torch PROPERTIES SKIP_BUILD_RPATH ON)
  add_dependencies(tmaops_shared tmaops_torch)
  install(TARGETS tmaops_torch LIBRARY DESTINATION ${package}/lib COMPONENT python)
endif()

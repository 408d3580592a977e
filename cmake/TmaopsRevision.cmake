# generated/tmaops_revision.hpp, made anew at each build and touched only when it changes. Run as a script it writes it.
# Where there is no repository (a copy of the tree on another machine), the environment's TMAOPS_REVISION is the revision.
if(CMAKE_SCRIPT_MODE_FILE)
  set(revision unknown)
  if(NOT "$ENV{TMAOPS_REVISION}" STREQUAL "")
    set(revision "$ENV{TMAOPS_REVISION}")
  endif()
  execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    set(revision ${head})
    execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no
      OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(changes)
      string(APPEND revision -dirty)
    endif()
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n#define TMAOPS_REVISION \"${revision}\"\n" @ONLY)
  return()
endif()

add_custom_target(tmaops_revision
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${PROJECT_BINARY_DIR}/generated/tmaops_revision.hpp
    -P ${CMAKE_CURRENT_LIST_DIR}/TmaopsRevision.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/tmaops_revision.hpp
  COMMENT "" VERBATIM)

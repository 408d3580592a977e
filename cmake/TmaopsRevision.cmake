# generated/tmaops_revision.hpp, made anew at each build and touched only when it changes. Run as a script it writes it.
# The environment's TMAOPS_REVISION, when set, is the revision: of a copy of the tree on another machine, where there is no
# repository, or one that stands at another commit.
if(CMAKE_SCRIPT_MODE_FILE)
  set(revision unknown)
  execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(NOT "$ENV{TMAOPS_REVISION}" STREQUAL "")
    set(revision "$ENV{TMAOPS_REVISION}")
  elseif(status EQUAL 0)
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

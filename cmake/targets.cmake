# How our own libraries and tests are declared.

add_library(kiln_options INTERFACE)
target_compile_options(kiln_options INTERFACE -Wall -Wextra -Wno-unused-parameter -fno-strict-aliasing -fno-math-errno)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  # The reference has the same bits on every host: products and sums are not fused, as they cannot be on x86-64.
  target_compile_options(kiln_options INTERFACE -ffp-contract=off)
endif()
option(KILN_WERROR "Compiler warnings are errors; for CI" OFF)
if(KILN_WERROR)
  # Clang blames stable_sort of libstdc++ 12 for its own use of a deprecated function.
  target_compile_options(kiln_options INTERFACE -Werror -Wno-error=deprecated-declarations)
endif()
target_include_directories(kiln_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})

# kiln_library(NAME [LLVM] DEPENDS lib...): every .cpp of the calling folder (and below) as one static library.
function(kiln_library name)
  cmake_parse_arguments(arg "LLVM" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    add_library(${name} INTERFACE)
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC kiln_options ${arg_DEPENDS})
  if(arg_LLVM)
    # PRIVATE: LLVM headers are for .cpp files. The libraries still reach whoever links the archive.
    target_link_libraries(${name} PRIVATE kiln_llvm)
  endif()
endfunction()

# kiln_precompile(TARGET HEADER...): parses these headers of the system or of LLVM once for all sources of the target. HEADER is "<name>".
# Three things let ccache use objects from another checkout. The option that names the header has one path, which ccache makes relative.
# The precompiled header holds no times. It does hold absolute paths, so ccache does not hash it but a sum of what it was made from
# (CCACHE_PCH_EXTSUM, set in scripts/build.sh).
function(kiln_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  set(made_of "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${LLVM_PACKAGE_VERSION}\n")
  foreach(header ${ARGN})
    string(REGEX REPLACE "[<>]" "" path ${header})
    string(APPEND made_of "${header}\n")
    if(EXISTS ${PROJECT_SOURCE_DIR}/${path})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path})
      file(READ ${PROJECT_SOURCE_DIR}/${path} text)
      string(APPEND made_of "${text}")
    endif()
  endforeach()
  string(SHA256 sum "${made_of}")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum CONTENT "${sum}\n" @ONLY)
endfunction()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Clang finds HEADER.pch for "-include HEADER".
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include <PCH_HEADER>)
  # A quarter of the time of GNU ld.
  add_link_options(-fuse-ld=lld)
endif()

# kiln_flatbuffers(TARGET SCHEMA...): generated headers appear as "<folder>/<schema>_generated.h".
function(kiln_flatbuffers target)
  foreach(schema ${ARGN})
    get_filename_component(stem ${schema} NAME_WE)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    set(out ${PROJECT_BINARY_DIR}/${folder}/${stem}_generated.h)
    add_custom_command(OUTPUT ${out} DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
      COMMAND ${FLATC} --cpp --scoped-enums -o ${PROJECT_BINARY_DIR}/${folder} ${CMAKE_CURRENT_SOURCE_DIR}/${schema})
    target_sources(${target} PRIVATE ${out})
  endforeach()
endfunction()

# Sanitizers make programs several times as slow, and a few tests cannot pass with one; KILN_SANITIZER tells scripts.
set(kiln_sanitizer "")
set(kiln_patience 1)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=([a-z]+)")
  set(kiln_sanitizer ${CMAKE_MATCH_1})
  set(kiln_patience 5)
endif()
# An emulated processor is slower still.
if(CMAKE_CROSSCOMPILING)
  set(kiln_patience 20)
endif()

# kiln_set_timeout(SECONDS TEST...): the time limit of tests in a build without a sanitizer.
function(kiln_set_timeout seconds)
  math(EXPR seconds "${seconds} * ${kiln_patience}")
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${seconds})
endfunction()

# kiln_test(NAME [LLVM] LABELS label... DEPENDS lib... [SOURCES file...]): one GoogleTest program; SOURCES default to every
# .cpp of the calling folder. ctest runs each test case on its own unless the name says otherwise.
function(kiln_test name)
  cmake_parse_arguments(arg "LLVM" "TIMEOUT" "LABELS;DEPENDS;SOURCES" ${ARGN})
  if(NOT arg_SOURCES)
    file(GLOB arg_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  if(NOT arg_SOURCES)
    message(WARNING "${name} has no sources")
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} kiln_test_support GTest::gtest GTest::gmock GTest::gtest_main)
  if(arg_LLVM)
    target_link_libraries(${name} PRIVATE kiln_llvm)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}")
  kiln_set_timeout(${arg_TIMEOUT} ${name})
endfunction()

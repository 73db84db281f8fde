# Components of `cmake --install`: the command with its manual pages and completions (component "command"); the C
# interface as a library without a compiler (component "runtime"); its header, CMake package and pkg-config file
# (component "dev"); and the library with the compiler, which the first one opens on demand, with the program of its
# workers (component "compiler"). python/ and onnxruntime/ have the components "python" and "onnxruntime".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS kiln RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
# The manual pages and completions that the program makes from its own tables.
set(kiln_pages ${PROJECT_BINARY_DIR}/pages)
set(with_emulator)
if(CMAKE_CROSSCOMPILING)
  set(with_emulator ${PROJECT_SOURCE_DIR}/scripts/with_qemu.sh)
endif()
add_custom_command(OUTPUT ${kiln_pages}/stamp DEPENDS kiln ${CMAKE_CURRENT_LIST_DIR}/pages.sh
  COMMAND ${with_emulator} ${CMAKE_CURRENT_LIST_DIR}/pages.sh $<TARGET_FILE:kiln> ${kiln_pages} COMMAND ${CMAKE_COMMAND} -E touch ${kiln_pages}/stamp)
add_custom_target(kiln_pages ALL DEPENDS ${kiln_pages}/stamp)
install(DIRECTORY ${kiln_pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command OPTIONAL)
install(FILES ${kiln_pages}/kiln DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command OPTIONAL)
install(FILES ${kiln_pages}/_kiln DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT command OPTIONAL)
install(FILES ${kiln_pages}/kiln.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command OPTIONAL)
if(NOT TARGET libkiln_runtime)
  return()  # the build that makes one executable
endif()
install(TARGETS libkiln_runtime EXPORT kiln-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
install(TARGETS libkiln LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler NAMELINK_SKIP)
install(TARGETS kiln_compile_worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler)
install(FILES ${PROJECT_SOURCE_DIR}/runtime/kiln.h ${PROJECT_SOURCE_DIR}/runtime/kiln.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln COMPONENT dev)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
install(EXPORT kiln-targets NAMESPACE kiln:: DESTINATION ${package} COMPONENT dev)
file(RELATIVE_PATH kiln_prefix_from_package /prefix/${package} /prefix)
# kiln::runtime; and the paths of the other components, for those who pack them (python/wheel.cmake). Paths of components
# that are not installed are empty.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kiln-config.cmake @ONLY CONTENT [[include(${CMAKE_CURRENT_LIST_DIR}/kiln-targets.cmake)
get_filename_component(kiln_PREFIX ${CMAKE_CURRENT_LIST_DIR}/@kiln_prefix_from_package@ ABSOLUTE)
function(kiln_path variable file)
  if(EXISTS ${kiln_PREFIX}/${file})
    set(${variable} ${kiln_PREFIX}/${file} PARENT_SCOPE)
  else()
    set(${variable} "" PARENT_SCOPE)
  endif()
endfunction()
kiln_path(kiln_COMMAND @CMAKE_INSTALL_BINDIR@/kiln)
kiln_path(kiln_COMPILER_LIBRARY @CMAKE_INSTALL_LIBDIR@/libkiln.so.0)
kiln_path(kiln_COMPILE_WORKER @CMAKE_INSTALL_LIBDIR@/kiln-compile-worker)
]])
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kiln-config-version.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kiln-config.cmake ${PROJECT_BINARY_DIR}/kiln-config-version.cmake DESTINATION ${package} COMPONENT dev)

# Relative to the file itself, so that an installed tree may be moved.
file(RELATIVE_PATH kiln_prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kiln-runtime.pc @ONLY CONTENT [[prefix=${pcfiledir}/@kiln_prefix_from_pc@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: kiln-runtime
Description: Runs neural networks that Kiln has compiled
Version: @PROJECT_VERSION@
Cflags: -I${includedir} -I${includedir}/kiln
Libs: -L${libdir} -lkiln_runtime
]])
install(FILES ${PROJECT_BINARY_DIR}/kiln-runtime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

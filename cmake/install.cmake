# What `cmake --install` puts where: the command (component "command"), and the C interface as a library without a compiler, with a CMake package
# and a pkg-config file (component "runtime").
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
file(STRINGS ${PROJECT_SOURCE_DIR}/runtime/kiln.h api_version REGEX "^#define KILN_API_VERSION ")
string(REGEX REPLACE "^#define KILN_API_VERSION " "" api_version ${api_version})

# Only kiln_* leaves the library. Its version is that of the interface, which only grows.
add_library(kiln_runtime_shared SHARED ${PROJECT_SOURCE_DIR}/runtime/c_api.cpp)
target_link_libraries(kiln_runtime_shared PRIVATE kiln_runtime)
target_link_options(kiln_runtime_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/runtime/exports.map)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  target_link_options(kiln_runtime_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(kiln_runtime_shared PROPERTIES OUTPUT_NAME kiln_runtime EXPORT_NAME runtime VERSION 0.${api_version} SOVERSION 0
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/exports.map)
target_include_directories(kiln_runtime_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS kiln RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(TARGETS kiln_runtime_shared EXPORT kiln-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(FILES ${PROJECT_SOURCE_DIR}/runtime/kiln.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln COMPONENT runtime)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
install(EXPORT kiln-targets NAMESPACE kiln:: DESTINATION ${package} COMPONENT runtime)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kiln-config.cmake CONTENT "include(\${CMAKE_CURRENT_LIST_DIR}/kiln-targets.cmake)\n" @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kiln-config-version.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kiln-config.cmake ${PROJECT_BINARY_DIR}/kiln-config-version.cmake DESTINATION ${package} COMPONENT runtime)

# Relative to the file itself, so that an installed tree may be moved.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kiln-runtime.pc @ONLY CONTENT [[prefix=${pcfiledir}/../..
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: kiln-runtime
Description: Runs neural networks that Kiln has compiled
Version: @PROJECT_VERSION@
Cflags: -I${includedir}
Libs: -L${libdir} -lkiln_runtime
]])
install(FILES ${PROJECT_BINARY_DIR}/kiln-runtime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)

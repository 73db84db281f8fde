# Debian packages, one for each component of install.cmake: scripts/deb.sh makes and checks them. The build has to be
# configured with -DCMAKE_INSTALL_PREFIX=/usr, so that libraries lie where Debian wants them.
if(KILN_STATIC_LLVM OR NOT TARGET kiln_python_core)
  return()  # one executable, or no Python package
endif()
set(KILN_PACKAGE_MAINTAINER "Kiln maintainers <maintainers@kiln.example>" CACHE STRING "Maintainer of Debian packages")
set(kiln_package_version ${PROJECT_VERSION}-1)
# Python's extension is for the Python of the build.
string(REPLACE "." ";" kiln_python_parts ${kiln_python_version})
list(GET kiln_python_parts 0 kiln_python_major)
list(GET kiln_python_parts 1 kiln_python_minor)
math(EXPR kiln_next_python_minor "${kiln_python_minor} + 1")

# kiln_package(COMPONENT PACKAGE SECTION "SUMMARY" "DESCRIPTION" [DEPENDS packages] [RECOMMENDS packages])
function(kiln_package component package section summary description)
  cmake_parse_arguments(arg "" "DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  string(TOUPPER ${component} upper)
  set(result "set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
set(CPACK_COMPONENT_${upper}_DESCRIPTION [[${summary}\n${description}]])
set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS [[${arg_DEPENDS}]])
set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS [[${arg_RECOMMENDS}]])
set(CPACK_DEBIAN_${upper}_PACKAGE_SUGGESTS [[${arg_SUGGESTS}]])\n")
  set_property(GLOBAL APPEND_STRING PROPERTY kiln_package_settings "${result}")
  set_property(GLOBAL APPEND PROPERTY kiln_package_components ${component})
  set(documents ${CMAKE_INSTALL_DATADIR}/doc/${package})
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/copyright ${PROJECT_BINARY_DIR}/packaging/changelog.gz
    ${PROJECT_BINARY_DIR}/packaging/changelog.Debian.gz DESTINATION ${documents} COMPONENT ${component})
  if(EXISTS ${PROJECT_SOURCE_DIR}/packaging/overrides/${package})
    install(FILES packaging/overrides/${package} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${component})
  endif()
endfunction()

set(same "(= ${kiln_package_version})")
kiln_package(runtime libkiln-runtime0 libs "runtime of the Kiln compiler for neural networks"
  "This library opens files of compiled neural networks and runs them on the\nCPU, or on AMD and NVIDIA GPUs with their drivers. It has no compiler inside."
  RECOMMENDS "libkiln0 ${same}")
kiln_package(compiler libkiln0 libs "Kiln compiler for neural networks as a library"
  "The runtime library opens this one to compile the kernels of portable files\nfor the device that it finds, and to tune them."
  DEPENDS "libkiln-runtime0 ${same}")
kiln_package(command kiln science "compiler of neural networks into one portable file"
  "The command compiles ONNX models without a device, finalizes the files for\nthe CPU or GPU that opens them, measures and tunes them."
  DEPENDS "libllvm22"  # dpkg-shlibdeps finds it in LLVM's own folder only, which belongs to no package
  SUGGESTS "python3-kiln, onnxruntime-ep-kiln")
kiln_package(dev libkiln-dev libdevel "development files of the Kiln runtime"
  "The C header with every function described, a CMake package and a pkg-config\nfile."
  DEPENDS "libkiln-runtime0 ${same}" RECOMMENDS "libkiln0 ${same}")
kiln_package(python python3-kiln python "Kiln compiler for neural networks in Python"
  "Compiles models and runs them on arrays of numpy and other libraries without\ncopies; also a backend of torch.compile."
  DEPENDS "kiln ${same}, libkiln0 ${same}, libkiln-runtime0 ${same}, python3 (>= ${kiln_python_version}), python3 (<< ${kiln_python_major}.${kiln_next_python_minor}), python3-numpy")
kiln_package(onnxruntime onnxruntime-ep-kiln science "Kiln as an execution provider of ONNX Runtime"
  "A plug-in for ONNX Runtime 1.23 and later: sessions run what Kiln can compile\nwith Kiln and the rest as before."
  DEPENDS "kiln ${same}, libkiln0 ${same}, libkiln-runtime0 ${same}")

# Changelogs: ours, and one entry in Debian's form with the date of the sources (SOURCE_DATE_EPOCH, else the last commit).
set(moment $ENV{SOURCE_DATE_EPOCH})
if(NOT moment)
  execute_process(COMMAND git log -1 --format=%ct WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE moment OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT moment)
  set(moment 0)
endif()
execute_process(COMMAND date -uR -d @${moment} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
file(WRITE ${PROJECT_BINARY_DIR}/packaging/changelog.Debian
  "kiln (${kiln_package_version}) unstable; urgency=medium\n\n  * Version ${PROJECT_VERSION}; changelog.gz says what changed.\n\n -- ${KILN_PACKAGE_MAINTAINER}  ${date}\n")
configure_file(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_BINARY_DIR}/packaging/changelog COPYONLY)
execute_process(COMMAND gzip -9nkf changelog changelog.Debian WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/packaging)

get_property(CPACK_COMPONENTS_ALL GLOBAL PROPERTY kiln_package_components)
get_property(kiln_package_settings GLOBAL PROPERTY kiln_package_settings)
file(WRITE ${PROJECT_BINARY_DIR}/packaging/settings.cmake "${kiln_package_settings}
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/triggers)
set(CPACK_DEBIAN_COMPILER_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/triggers)
# Byte code is made when the package is installed and removed with it.
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA \"${PROJECT_SOURCE_DIR}/packaging/python3-kiln/postinst;${PROJECT_SOURCE_DIR}/packaging/python3-kiln/prerm\")
# Our libraries, for dpkg-shlibdeps, which runs before any package is installed.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)\n")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/packaging/settings.cmake)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${KILN_PACKAGE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY =)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)

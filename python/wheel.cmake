# Finds Kiln for a wheel, and installs its libraries and command into the package:
#   an installed package      find_package(kiln): -DCMAKE_PREFIX_PATH or -Dkiln_DIR
#   a finished build folder   -DKILN_BUILD=FOLDER: used as it is
#   neither                   build/release is made, or brought up to date, which takes long the first time
set(KILN_BUILD "" CACHE PATH "A finished build of Kiln to take libraries and command from")
# scikit-build-core names the component of the stable ABI where the wheel is for later Pythons, too.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
find_package(nanobind CONFIG REQUIRED)

function(kiln_step)
  execute_process(COMMAND ${CMAKE_COMMAND} ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(NOT KILN_BUILD)
  find_package(kiln CONFIG QUIET)
endif()
if(NOT kiln_FOUND)
  set(build ${KILN_BUILD})
  if(NOT build)
    set(top ${CMAKE_CURRENT_SOURCE_DIR}/..)
    set(build ${top}/build/release)
    message(STATUS "Kiln: no installed package and no KILN_BUILD; building in ${build}")
    kiln_step(-S ${top} -B ${build} -G Ninja -DCMAKE_BUILD_TYPE=Release)
    kiln_step(--build ${build} --target kiln libkiln libkiln_runtime kiln_compile_worker)
  endif()
  set(prefix ${CMAKE_CURRENT_BINARY_DIR}/kiln-installed)
  foreach(component runtime dev compiler command)
    kiln_step(--install ${build} --component ${component} --prefix ${prefix})
  endforeach()
  find_package(kiln CONFIG REQUIRED PATHS ${prefix} NO_DEFAULT_PATH)
endif()

foreach(part COMMAND COMPILER_LIBRARY COMPILE_WORKER)
  if(NOT kiln_${part})
    message(FATAL_ERROR "${kiln_DIR}: the package lacks a component; install components runtime, dev, compiler and command")
  endif()
endforeach()
# A wheel holds no links: each library has the name that others load it by.
file(REAL_PATH ${kiln_COMPILER_LIBRARY} compiler)
get_target_property(runtime kiln::runtime LOCATION)
install(PROGRAMS ${runtime} DESTINATION kiln/lib RENAME libkiln_runtime.so.0)
install(PROGRAMS ${compiler} DESTINATION kiln/lib RENAME libkiln.so.0)
install(PROGRAMS ${kiln_COMPILE_WORKER} DESTINATION kiln/lib)
install(PROGRAMS ${kiln_COMMAND} DESTINATION kiln/bin)

# Toolchain for 64-bit Arm Linux: clang-22 and lld-22 of this machine, and the sysroot that scripts/aarch64.sh makes. Programs of the build
# run with qemu-user where it is installed (ctest, and rules that call a program of ours).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
set(CMAKE_SYSROOT ${root}/build/aarch64-sysroot)
if(NOT EXISTS ${CMAKE_SYSROOT}/packages)
  message(FATAL_ERROR "${CMAKE_SYSROOT} is missing or not complete: scripts/aarch64.sh makes it")
endif()
foreach(language C CXX ASM)
  set(CMAKE_${language}_COMPILER_TARGET aarch64-linux-gnu)
endforeach()
# Libraries and headers are the sysroot's, programs are this machine's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The processor has every extension that qemu knows. Its cheap form of pointer authentication saves time.
find_program(KILN_QEMU_AARCH64 qemu-aarch64)
if(KILN_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${KILN_QEMU_AARCH64} -cpu max,pauth-impdef=on -L ${CMAKE_SYSROOT})
endif()
# Our program that the build runs (spirv/library), from a native build.
set(KILN_COMPILE_LIBRARY ${root}/build/ci/spirv/library/compile_library CACHE FILEPATH "compile_library of a build for this machine")

# Everything Kiln stands on, all of it from Debian packages (see README.md for the list).

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# One executable that needs nothing but the C library (preset `portable`), or the distribution's shared libraries.
option(KILN_STATIC_LLVM "Link LLVM, MLIR and every other library into the executable" OFF)
set(Protobuf_USE_STATIC_LIBS ${KILN_STATIC_LLVM})
set(ZLIB_USE_STATIC_LIBS ${KILN_STATIC_LLVM})

# LLVM 22 and MLIR: named without a version, since MLIR's version file refuses "22". Their headers are system headers to us.
execute_process(COMMAND llvm-config-22 --prefix OUTPUT_VARIABLE LLVM_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(LLVM_TOOLS_PREFIX ${LLVM_PREFIX})  # programs of this machine
string(PREPEND LLVM_PREFIX "${CMAKE_SYSROOT}")
set(LLVM_DIR ${LLVM_PREFIX}/lib/cmake/llvm)
set(MLIR_DIR ${LLVM_PREFIX}/lib/cmake/mlir)
find_package(MLIR REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
if(CMAKE_CROSSCOMPILING)
  set(MLIR_TABLEGEN_EXE ${LLVM_TOOLS_PREFIX}/bin/mlir-tblgen)
endif()
include(TableGen)
include(AddLLVM)
include(AddMLIR)

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_program(FLATC flatc REQUIRED)

find_path(CURL_INCLUDE curl/curl.h REQUIRED)  # jit/remote loads the library when it is used
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)  # used as a header: jit/cache/checksum.cpp
find_path(ZSTD_INCLUDE zstd.h REQUIRED)
if(KILN_STATIC_LLVM)
  find_library(ZSTD_LIBRARY libzstd.a REQUIRED)
else()
  find_library(ZSTD_LIBRARY zstd REQUIRED)
endif()
add_library(kiln_zstd INTERFACE)
target_link_libraries(kiln_zstd INTERFACE ${ZSTD_LIBRARY})

# Signatures (libsodium) and archives (libarchive: tar and zstd only). Their archives are linked by whoever links kiln_ir and kiln_cache.
find_path(SODIUM_INCLUDE sodium.h REQUIRED)
find_path(ARCHIVE_INCLUDE archive.h REQUIRED)
if(KILN_STATIC_LLVM)
  find_library(SODIUM_LIBRARY libsodium.a REQUIRED)
  find_library(ARCHIVE_LIBRARY libarchive.a REQUIRED)
else()
  find_library(SODIUM_LIBRARY sodium REQUIRED)
  find_library(ARCHIVE_LIBRARY archive REQUIRED)
endif()
add_library(kiln_sodium INTERFACE)
target_link_libraries(kiln_sodium INTERFACE ${SODIUM_LIBRARY})
add_library(kiln_archive INTERFACE)
target_link_libraries(kiln_archive INTERFACE ${ARCHIVE_LIBRARY} kiln_zstd)

# LLVM and MLIR; only folders that may use LLVM (DESIGN.md) link kiln_llvm. kiln_llvm_first names what must stand first on a link line.
# fmt and spdlog have no archives in Debian, nor have ONNX's message classes: the static build makes them (static_dependencies.cmake).
# Sections of their own for functions and data serve the static build's linker; with them in both builds, both share their objects in ccache.
add_compile_options(-ffunction-sections -fdata-sections)
add_library(kiln_llvm INTERFACE)
target_include_directories(kiln_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
add_library(kiln_fmt INTERFACE)
add_library(kiln_spdlog INTERFACE)
add_library(kiln_onnx_messages INTERFACE)
target_compile_definitions(kiln_onnx_messages INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
if(KILN_STATIC_LLVM)
  include(static_dependencies)
else()
  # The shared MLIR and LLVM stand before everything else: a linker that met libLLVMSupport.a first would take LLVM's support code from it, a
  # second copy beside libLLVM.so with the heap objects of one freed by the other. As linker flags they keep their place, where CMake moves
  # library targets to the end.
  set(kiln_llvm_first "-Wl,$<TARGET_FILE:MLIR>,$<TARGET_FILE:LLVM>")
  target_link_libraries(kiln_llvm INTERFACE MLIR LLVM)
  target_link_libraries(kiln_fmt INTERFACE fmt::fmt)
  target_link_libraries(kiln_spdlog INTERFACE spdlog::spdlog)
  find_library(ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
  target_link_libraries(kiln_onnx_messages INTERFACE ${ONNX_PROTO_LIBRARY} protobuf::libprotobuf)
endif()

# Clang as a library, for HIP C++ (spirv/hip): Debian's shared one, or its archives.
add_library(kiln_clang INTERFACE)
target_include_directories(kiln_clang SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
if(KILN_STATIC_LLVM)
  file(GLOB clang_archives ${LLVM_PREFIX}/lib/libclang*.a)
  target_link_libraries(kiln_clang INTERFACE ${clang_archives} kiln_llvm)
else()
  find_library(CLANG_CPP NAMES libclang-cpp.so.22.1 clang-cpp PATHS ${LLVM_PREFIX}/lib NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(kiln_clang INTERFACE ${CLANG_CPP})
endif()

# LLD's ELF linker: Debian has it as static archives only, which use the LLVM beside them.
find_library(LLD_ELF lldELF PATHS ${LLVM_PREFIX}/lib NO_DEFAULT_PATH REQUIRED)
find_library(LLD_COMMON lldCommon PATHS ${LLVM_PREFIX}/lib NO_DEFAULT_PATH REQUIRED)
add_library(kiln_lld INTERFACE)
target_link_libraries(kiln_lld INTERFACE ${LLD_ELF} ${LLD_COMMON} kiln_llvm ZLIB::ZLIB kiln_zstd)

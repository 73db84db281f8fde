# Everything Kiln stands on, all of it from Debian packages (see README.md for the list).

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# LLVM 22 and MLIR: named without a version, since MLIR's version file refuses "22". Their headers are system headers to us.
execute_process(COMMAND llvm-config-22 --prefix OUTPUT_VARIABLE LLVM_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(LLVM_DIR ${LLVM_PREFIX}/lib/cmake/llvm)
set(MLIR_DIR ${LLVM_PREFIX}/lib/cmake/mlir)
find_package(MLIR REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_program(FLATC flatc REQUIRED)

find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
add_library(kiln_zstd INTERFACE)
target_link_libraries(kiln_zstd INTERFACE ${ZSTD_LIBRARY})

# BLAKE3, as a few objects out of LLVM's support archive, in an archive of their own: whoever links it links no LLVM, and
# nobody links a second copy of LLVM's other support code beside libLLVM.so.
set(blake3_archive ${CMAKE_BINARY_DIR}/blake3/libkiln_blake3.a)
if(NOT EXISTS ${blake3_archive})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/blake3)
  execute_process(COMMAND sh -c "ar x '${LLVM_PREFIX}/lib/libLLVMSupport.a' $(ar t '${LLVM_PREFIX}/lib/libLLVMSupport.a' | grep '^blake3') && ar rcs libkiln_blake3.a blake3*.o"
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/blake3 COMMAND_ERROR_IS_FATAL ANY)
endif()
add_library(kiln_blake3 INTERFACE)
target_include_directories(kiln_blake3 SYSTEM INTERFACE ${LLVM_PREFIX}/include)
target_link_libraries(kiln_blake3 INTERFACE ${blake3_archive})

# LLVM and MLIR as shared libraries; only folders that may use LLVM (DESIGN.md) link this.
add_library(kiln_llvm INTERFACE)
target_include_directories(kiln_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_link_libraries(kiln_llvm INTERFACE MLIR LLVM)

# LLD's ELF linker: Debian has it as static archives only, which use the LLVM beside them.
find_package(ZLIB REQUIRED)
find_library(LLD_ELF lldELF PATHS ${LLVM_PREFIX}/lib NO_DEFAULT_PATH REQUIRED)
find_library(LLD_COMMON lldCommon PATHS ${LLVM_PREFIX}/lib NO_DEFAULT_PATH REQUIRED)
add_library(kiln_lld INTERFACE)
target_link_libraries(kiln_lld INTERFACE ${LLD_ELF} ${LLD_COMMON} kiln_llvm ZLIB::ZLIB kiln_zstd)

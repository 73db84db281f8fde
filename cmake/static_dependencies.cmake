# One executable with everything inside: static archives, linked by LLD, collected by section. Included by dependencies.cmake when
# KILN_STATIC_LLVM is on.

# GCC finds LLD under the name ld.lld in a folder given with -B; Debian calls it ld.lld-22.
find_program(LLD NAMES ld.lld-22 REQUIRED)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lld)
file(CREATE_LINK ${LLD} ${CMAKE_BINARY_DIR}/lld/ld.lld SYMBOLIC)
add_link_options(-fuse-ld=lld -B${CMAKE_BINARY_DIR}/lld -static-libstdc++ -static-libgcc -Wl,--gc-sections,-O2)

# Debian has fmt and spdlog as shared libraries and as headers, not as archives. The archives are made here, and used with the shared libraries'
# definitions: every other source is then compiled alike in both builds, and what ccache has from one serves the other.
add_library(kiln_fmt_archive STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt_archive.cpp)
target_compile_definitions(kiln_fmt_archive PUBLIC FMT_SHARED)
target_link_libraries(kiln_fmt INTERFACE kiln_fmt_archive)
add_library(kiln_spdlog_archive STATIC ${CMAKE_CURRENT_LIST_DIR}/spdlog_archive.cpp)
target_compile_definitions(kiln_spdlog_archive PUBLIC SPDLOG_SHARED_LIB SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
target_link_libraries(kiln_spdlog_archive PUBLIC kiln_fmt_archive Threads::Threads)
target_link_libraries(kiln_spdlog INTERFACE kiln_spdlog_archive)

# Debian ships ONNX's messages as a shared library and, for protobuf's lite run time, as a schema.
set(onnx_folder ${CMAKE_BINARY_DIR}/onnx_messages)
find_file(ONNX_SCHEMA onnx/onnx.proto PATHS /usr/include REQUIRED)
add_custom_command(OUTPUT ${onnx_folder}/onnx/onnx-ml.pb.cc ${onnx_folder}/onnx/onnx-ml.pb.h DEPENDS ${ONNX_SCHEMA}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${onnx_folder}/onnx
  COMMAND sed /LITE_RUNTIME/d ${ONNX_SCHEMA} > ${onnx_folder}/onnx/onnx-ml.proto
  COMMAND protobuf::protoc --cpp_out=dllexport_decl=ONNX_API:${onnx_folder} -I${onnx_folder} ${onnx_folder}/onnx/onnx-ml.proto)
add_library(kiln_onnx_generated STATIC ${onnx_folder}/onnx/onnx-ml.pb.cc)
target_include_directories(kiln_onnx_generated SYSTEM PUBLIC ${onnx_folder})
target_compile_definitions(kiln_onnx_generated PRIVATE ONNX_API=)
target_link_libraries(kiln_onnx_generated PUBLIC protobuf::libprotobuf)
target_link_libraries(kiln_onnx_messages INTERFACE kiln_onnx_generated)

# Every archive of MLIR and LLVM except those of back ends that Kiln does not use: the linker takes only what is referred to, and something
# that would drag in another back end is an undefined symbol instead of megabytes.
set(wanted_back_ends X86 AArch64 AMDGPU NVPTX SPIRV)
set(absent_back_ends ${LLVM_TARGETS_TO_BUILD})
list(REMOVE_ITEM absent_back_ends ${wanted_back_ends})
list(JOIN absent_back_ends "|" absent_pattern)
file(GLOB archives ${LLVM_PREFIX}/lib/libMLIR*.a ${LLVM_PREFIX}/lib/libLLVM*.a)
list(FILTER archives EXCLUDE REGEX "/libLLVM(${absent_pattern})(CodeGen|Desc|Info|AsmParser|Disassembler|Utils|Analysis|TargetMCA)\\.a$")

# LLD's driver, and MLIR's libMLIRTargetLLVMIRTransforms, initialize all back ends that LLVM was built with, and LLVM's link-time optimizer asks for
# Polly: the missing ones get initializers that do nothing.
set(source "// Generated: initializers of the LLVM back ends and extensions that are not in this build.\n#include \"llvm/Plugins/PassPlugin.h\"\n")
foreach(back_end ${absent_back_ends})
  foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser Disassembler)
    string(APPEND source "extern \"C\" void LLVMInitialize${back_end}${part}() {}\n")
  endforeach()
endforeach()
string(APPEND source "llvm::PassPluginLibraryInfo getPollyPluginInfo() { return {LLVM_PLUGIN_API_VERSION, \"absent\", \"0\", [](llvm::PassBuilder&) {}, nullptr}; }\n")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/absent_back_ends.cpp CONTENT "${source}")
add_library(kiln_absent_back_ends STATIC ${CMAKE_BINARY_DIR}/absent_back_ends.cpp)
target_include_directories(kiln_absent_back_ends SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_link_libraries(kiln_llvm INTERFACE ${archives} kiln_absent_back_ends ZLIB::ZLIB kiln_zstd Threads::Threads ${CMAKE_DL_LIBS} m)

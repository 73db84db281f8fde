# kiln_add_code_digests(TARGET): a library that holds, for each back end, a digest of everything that its output depends on. Cache keys hold
# these digests (jit/code_digest.hpp), so a change of a code generator never finds entries of the old one; nobody has to raise a number.
#
# The lists below are the sources of the libraries, less what another back end alone uses. A file that matches no pattern counts for all back
# ends: that is safe, it only drops more cache entries than need be. Included headers are found by code_digest.cmake.
set(KILN_ONLY_CPU "^source:mlir_bridge/(.*/)?cpu(/|\\.cpp$)")
set(KILN_ONLY_GPU "^source:mlir_bridge/(.*/)?gpu(/|\\.cpp$)")
set(KILN_ONLY_AMD "/back_ends/amd/")
set(KILN_ONLY_NVIDIA "/back_ends/nvidia/|wgmma")
# Folders that no generated code depends on; a covered source must not include their headers.
set(KILN_OUTSIDE_DIGESTS "ir/(container|trust)|aot|session|tools|jit/(cache|remote|tuning|warm)")

# What else the output depends on. Flags that change neither the meaning of our sources nor the code that they generate are left out, so that
# all presets of one tree agree.
function(kiln_code_facts result)
  get_target_property(flags kiln_options INTERFACE_COMPILE_OPTIONS)
  separate_arguments(given UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  list(APPEND flags ${given})
  list(FILTER flags EXCLUDE REGEX "^(-W|-O|-g|-f(no-)?sanitize|-fno-omit-frame-pointer|-f(function|data)-sections|-D_GLIBCXX_ASSERTIONS|-DNDEBUG)")
  file(STRINGS ${LLVM_PREFIX}/include/llvm/Support/VCSRevision.h llvm_revision REGEX "^#define")
  file(STRINGS ${LLVM_PREFIX}/include/clang/Basic/Version.inc clang_version REGEX "CLANG_VERSION_STRING")
  file(SHA256 ${LLD_ELF} lld)
  file(SHA256 ${SPIRV_TOOLS} spirv_tools)
  # Debian's revision of LLVM names its patches.
  execute_process(COMMAND dpkg-query -W -f "\${Version}" llvm-22-dev OUTPUT_VARIABLE llvm_package ERROR_QUIET)
  set(${result} "compiler ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, C++${CMAKE_CXX_STANDARD}\nflags ${flags}\nLLVM ${LLVM_PACKAGE_VERSION} ${llvm_package} ${llvm_revision}\nClang ${clang_version}\nLLD ${lld}\nSPIRV-Tools ${spirv_tools}\n" PARENT_SCOPE)
endfunction()

# The .cpp files of targets, as source:PATH or build:PATH.
function(kiln_digest_sources result)
  set(list)
  foreach(target ${ARGN})
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
      string(REPLACE "${PROJECT_BINARY_DIR}/" "build:" source ${source})
      string(REPLACE "${PROJECT_SOURCE_DIR}/" "source:" source ${source})
      list(APPEND list ${source})
    endforeach()
  endforeach()
  set(${result} ${list} PARENT_SCOPE)
endfunction()

function(kiln_add_code_digests name)
  kiln_digest_sources(common kiln_ir kiln_mlir_bridge)
  kiln_digest_sources(spirv kiln_spirv)
  list(FILTER common EXCLUDE REGEX "^source:(${KILN_OUTSIDE_DIGESTS})/")
  foreach(back_end cpu amd nvidia)
    set(sources_${back_end} ${common} source:jit/compile_kernel.cpp)
  endforeach()
  list(FILTER sources_cpu EXCLUDE REGEX "${KILN_ONLY_GPU}|${KILN_ONLY_AMD}|${KILN_ONLY_NVIDIA}")
  list(FILTER sources_amd EXCLUDE REGEX "${KILN_ONLY_CPU}|${KILN_ONLY_NVIDIA}")
  list(FILTER sources_nvidia EXCLUDE REGEX "${KILN_ONLY_CPU}|${KILN_ONLY_AMD}")
  list(APPEND sources_nvidia source:jit/ptxas.cpp source:runtime/gpu/module.cpp)  # how ptxas and the driver are asked to compile
  set(sources_spirv ${spirv} source:jit/finalize_spirv.cpp source:jit/spirv_launches.cpp source:jit/rocm_candidate.cpp)

  kiln_code_facts(facts)
  set(folder ${PROJECT_BINARY_DIR}/jit)
  set(text "set(BACK_ENDS cpu amd nvidia spirv)\nset(OUTSIDE [[${KILN_OUTSIDE_DIGESTS}]])\nset(FACTS [[${facts}]])\n")
  set(generated)
  foreach(back_end cpu amd nvidia spirv)
    list(SORT sources_${back_end})
    string(APPEND text "set(SOURCES_${back_end} ${sources_${back_end}})\n")
    list(APPEND generated ${sources_${back_end}})
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/code_digests.manifest CONTENT "${text}" @ONLY)

  # Generated files must be there before they are read; the depfile names everything else.
  list(FILTER generated INCLUDE REGEX "^build:")
  list(REMOVE_DUPLICATES generated)
  list(TRANSFORM generated REPLACE "^build:" "${PROJECT_BINARY_DIR}/")
  add_custom_command(OUTPUT ${folder}/code_digests.cpp DEPFILE ${folder}/code_digests.d COMMENT "Digests of the back ends' sources"
    DEPENDS ${folder}/code_digests.manifest ${PROJECT_SOURCE_DIR}/cmake/code_digest.cmake kiln_dialect_tablegen ${generated}
    COMMAND ${CMAKE_COMMAND} -DMANIFEST=${folder}/code_digests.manifest -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DBINARY_DIR=${PROJECT_BINARY_DIR}
      -DOUTPUT=${folder}/code_digests.cpp -DDEPFILE=${folder}/code_digests.d -P ${PROJECT_SOURCE_DIR}/cmake/code_digest.cmake)
  add_library(${name} STATIC ${folder}/code_digests.cpp)
  target_link_libraries(${name} PUBLIC kiln_options)
endfunction()

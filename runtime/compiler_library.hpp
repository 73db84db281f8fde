// libkiln.so, the library with the compiler, as libkiln_runtime.so opens it when a call needs it. The two are of one
// build and share this library's classes. Any thread; once opened it stays.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "ir/error.hpp"
#include "runtime/model_source.hpp"
#include "runtime/text_decoder.hpp"

namespace kiln {

// The table that libkiln.so exports under the name compiler_entry_name.
struct compiler_entry {
  std::string_view build;  // kiln_build(), which must be the same in both libraries
  // `portable` is the program of request.file, read with consent_of(request).
  std::unique_ptr<model_source> (*open)(program portable, const model_request& request) = nullptr;
};
inline constexpr const char* compiler_entry_name = "kiln_compiler_entry";
using compiler_entry_function = const compiler_entry* (*)();

// Version and C interface of this build.
std::string_view kiln_build();

// Opens `library`, or libkiln.so where it is empty: beside the library that holds this code, else where the loader
// looks. Throws error{not_built_in} that says where it was looked for.
const compiler_entry& load_compiler(const std::filesystem::path& library = {});
// The other entry of the same library.
const decoder_entry& load_decoder_entry();

}  // namespace kiln

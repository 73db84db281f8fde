#include "runtime/compiler_library.hpp"

#include <dlfcn.h>

#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "ir/container/container.hpp"
#include "runtime/kiln.h"

namespace kiln {
namespace {

// The link of a development package, and the name that an installed library or a wheel has without it.
constexpr std::array library_names{"libkiln.so", "libkiln.so.0"};

std::vector<std::string> places(const std::filesystem::path& library) {
  if (!library.empty()) return {library.string()};
  Dl_info here{};
  std::vector<std::string> result;
  if (dladdr(reinterpret_cast<void*>(&load_compiler), &here) && here.dli_fname)
    for (const char* name : library_names)
      result.push_back((std::filesystem::path(here.dli_fname).parent_path() / name).string());
  result.insert(result.end(), library_names.begin(), library_names.end());
  return result;
}

struct opened_library {
  const compiler_entry* compiler = nullptr;
  const decoder_entry* decoder = nullptr;
};

const opened_library& open_library(const std::filesystem::path& library) {
  static std::mutex mutex;
  static opened_library opened;
  std::lock_guard lock(mutex);
  if (opened.compiler) return opened;
  std::string tried;
  for (const std::string& place : places(library)) {
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      tried += std::string(tried.empty() ? "" : "; ") + dlerror();
      continue;
    }
    const auto compiler = reinterpret_cast<compiler_entry_function>(dlsym(handle, compiler_entry_name));
    const auto decoder = reinterpret_cast<decoder_entry_function>(dlsym(handle, decoder_entry_name));
    if (compiler && decoder && compiler()->build == kiln_build()) {
      opened = {compiler(), decoder()};
      return opened;
    }
    tried += (tried.empty() ? "" : "; ") + place + ": it is of another version of Kiln";
    dlclose(handle);
  }
  throw error(error_kind::not_built_in,
              "libkiln.so: the library with the compiler cannot be opened (" + tried +
                  "); install it beside libkiln_runtime.so, or name it to kiln_load_compiler()");
}

}  // namespace

std::string_view kiln_build() {
  static const std::string build = std::string(kiln_version()) + " api " + std::to_string(KILN_API_VERSION);
  return build;
}

const compiler_entry& load_compiler(const std::filesystem::path& library) { return *open_library(library).compiler; }

const decoder_entry& load_decoder_entry() { return *open_library({}).decoder; }

}  // namespace kiln

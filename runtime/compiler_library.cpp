#include "runtime/compiler_library.hpp"

#include <dlfcn.h>

#include <mutex>
#include <string>
#include <vector>

#include "ir/container/container.hpp"
#include "runtime/kiln.h"

namespace kiln {
namespace {

constexpr const char* library_name = "libkiln.so";

std::vector<std::string> places(const std::filesystem::path& library) {
  if (!library.empty()) return {library.string()};
  Dl_info here{};
  std::vector<std::string> result;
  if (dladdr(reinterpret_cast<void*>(&load_compiler), &here) && here.dli_fname)
    result.push_back((std::filesystem::path(here.dli_fname).parent_path() / library_name).string());
  result.push_back(library_name);
  return result;
}

}  // namespace

std::string_view kiln_build() {
  static const std::string build = std::string(kiln_version()) + " api " + std::to_string(KILN_API_VERSION);
  return build;
}

const compiler_entry& load_compiler(const std::filesystem::path& library) {
  static std::mutex mutex;
  static const compiler_entry* opened = nullptr;
  std::lock_guard lock(mutex);
  if (opened) return *opened;
  std::string tried;
  for (const std::string& place : places(library)) {
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      tried += std::string(tried.empty() ? "" : "; ") + dlerror();
      continue;
    }
    const auto entry = reinterpret_cast<compiler_entry_function>(dlsym(handle, compiler_entry_name));
    if (entry && entry()->build == kiln_build()) return *(opened = entry());
    tried += (tried.empty() ? "" : "; ") + place + ": it is of another version of Kiln";
    dlclose(handle);
  }
  throw missing_compiler("libkiln.so: the library with the compiler cannot be opened (" + tried +
                         "); install it beside libkiln_runtime.so, or name it to kiln_load_compiler()");
}

}  // namespace kiln

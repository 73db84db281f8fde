#include "jit/remote/curl_library.hpp"

#include <dlfcn.h>

#include "ir/error.hpp"

namespace kiln {
namespace {

[[noreturn]] void missing() {
  throw error(error_kind::not_built_in,
              "a web server, or a Redis server behind TLS, needs libcurl, which this machine lacks; install it "
              "(Debian: libcurl4)");
}

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) missing();
}

curl_library load() {
  void* library = nullptr;
  // OpenSSL's flavour and GnuTLS's have the same interface.
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if ((library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
  if (library == nullptr) missing();
  decltype(&::curl_global_init) start = nullptr;
  look_up(library, "curl_global_init", start);
  curl_library found{};
  look_up(library, "curl_easy_init", found.init);
  look_up(library, "curl_easy_cleanup", found.cleanup);
  look_up(library, "curl_easy_reset", found.reset);
  look_up(library, "curl_easy_setopt", found.set);
  look_up(library, "curl_easy_getinfo", found.info);
  look_up(library, "curl_easy_perform", found.perform);
  look_up(library, "curl_easy_send", found.send);
  look_up(library, "curl_easy_recv", found.receive);
  look_up(library, "curl_easy_strerror", found.text_of);
  look_up(library, "curl_slist_append", found.append);
  look_up(library, "curl_slist_free_all", found.free_all);
  if (start(CURL_GLOBAL_ALL) != CURLE_OK) missing();
  return found;
}

}  // namespace

const curl_library& curl_library::get() {
  static const curl_library loaded = load();
  return loaded;
}

}  // namespace kiln

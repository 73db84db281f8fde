// libcurl, loaded when a web server or a Redis server behind TLS is first used: a machine without one runs Kiln all the
// same, and Kiln does not load a TLS library for nothing. The loaded library stays until the process ends.
#pragma once

#include <curl/curl.h>

namespace kiln {

struct curl_library {
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_easy_reset) reset;
  decltype(&::curl_easy_setopt) set;
  decltype(&::curl_easy_getinfo) info;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_send) send;
  decltype(&::curl_easy_recv) receive;
  decltype(&::curl_easy_strerror) text_of;
  decltype(&::curl_slist_append) append;
  decltype(&::curl_slist_free_all) free_all;

  // Any thread may call. Throws error{not_built_in} if this machine has no libcurl.
  static const curl_library& get();
};

}  // namespace kiln

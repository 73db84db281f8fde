// Which kernel cache a session uses, and whose native code it runs.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "jit/cache/kernel_cache.hpp"
#include "jit/tuning/tuning_records.hpp"
#include "session/chosen_device.hpp"

namespace kiln {

struct cache_choice {
  std::string folder;           // empty: KILN_CACHE_DIR, $XDG_CACHE_HOME/kiln or ~/.cache/kiln
  std::string sign_key;         // file of the key that signs what is stored; empty: the user's own
  std::string trust;            // file of public keys that may have signed native code; empty: the user's
  std::string remote;           // URL of a Redis or web server behind the folder; empty: none
  bool disabled = false;        // no cache is read or written
  bool allow_unsigned = false;  // native code from outside runs whoever made it
};

// Returns the options that the choice and the environment name. Throws what signing_key::read, trusted_keys::read,
// parse_redis_url, parse_http_url and make_http_layer throw.
cache_options cache_options_of(const cache_choice& choice);

// Returns whose signatures allow native code from outside to run, with and without a cache.
native_consent consent_of(const cache_choice& choice);

// Where warnings of the cache and of the records go, from any thread; null: spdlog.
using warning_sink = std::function<void(const std::string&)>;

// Opens it, with the entries that the file which is run holds; null where the cache is disabled.
std::unique_ptr<kernel_cache> open_cache(const cache_choice& choice,
                                         std::shared_ptr<const embedded_entries> embedded = nullptr,
                                         warning_sink warn = nullptr);

// The tuning records for a device: those in a cache's folder (none where it is empty) and its layers, and `hints` of a
// file.
std::unique_ptr<tuning_records> open_records(const std::filesystem::path& folder,
                                             std::vector<std::filesystem::path> layers, const chosen_device& chosen,
                                             std::string hints = {}, warning_sink warn = nullptr);

}  // namespace kiln

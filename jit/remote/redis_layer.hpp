// The kernel cache's remote layer on a Redis server (`--cache-remote URL`). The value of `kiln:cache:NAME` is the
// entry's file, byte for byte. Entries expire 30 days after they were last read or written. All keys have an expiry, so
// a server with `maxmemory-policy volatile-lru` evicts only them. If the server cannot be used, one call pays for the
// time-out; the layer then does not try again for 30 seconds.
#pragma once

#include <memory>

#include "jit/cache/remote_layer.hpp"
#include "jit/remote/redis_address.hpp"

namespace kiln {

// Connects on first use. Any thread may use the layer. Concurrent calls use separate connections.
std::shared_ptr<remote_layer> make_redis_layer(redis_address address);

}  // namespace kiln

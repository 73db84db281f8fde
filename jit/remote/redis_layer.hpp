// The kernel cache's remote layer on a Redis server (`--cache-remote URL`): an entry is the value of `kiln:cache:NAME`,
// byte for byte the entry's file. Entries expire when nobody has asked for them for a while, so that a server with
// `maxmemory-policy volatile-lru` may drop them and nothing else. A server that is not there costs one connection
// time-out, then nothing for a while.
#pragma once

#include <memory>

#include "jit/cache/remote_layer.hpp"
#include "jit/remote/redis_address.hpp"

namespace kiln {

// Connects on first use. Any thread may use the layer, several at once, each on a connection of its own.
std::shared_ptr<remote_layer> make_redis_layer(redis_address address);

}  // namespace kiln

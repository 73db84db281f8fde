// The kernel cache's remote layer on a web server (`--cache-remote https://...`, `davs://...`). The entry NAME is the
// file FOLDER/NAME there, byte for byte, so a folder that `kiln cache export` wrote can be served as it is. If the
// server cannot be used, one call pays for the time-out; the layer then does not try again for 30 seconds.
#pragma once

#include <memory>

#include "jit/cache/remote_layer.hpp"
#include "jit/remote/http_client.hpp"

namespace kiln {

// Connects on first use. Any thread may use the layer. Concurrent calls use separate connections. Throws
// error{not_built_in} without libcurl.
std::shared_ptr<remote_layer> make_http_layer(const http_address& address, const http_limits& limits = {});

}  // namespace kiln

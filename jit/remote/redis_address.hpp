// Where a Redis server is and how it lets us in, as a URL says it:
//   redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]      unix:///PATH/OF/SOCKET[?database=N]
// with `?password-file=FILE` in place of a password that everybody could read in the list of processes. USER and
// PASSWORD may be percent-encoded.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

struct redis_address {
  std::string host = {}, socket = {};  // one of them
  int port = 6379, database = 0;
  std::string user = {}, password = {};

  std::string str() const;  // without the password, for messages
  friend bool operator==(const redis_address&, const redis_address&) = default;
};

// Throws error{usage} for what is no such URL, error{unsupported} for rediss:// (TLS), error{missing_file} for a
// password file that cannot be read.
redis_address parse_redis_url(std::string_view url);

}  // namespace kiln

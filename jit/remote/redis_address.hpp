// The address and credentials of a Redis server, parsed from a URL:
//   redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]      unix:///PATH/OF/SOCKET[?database=N]
//   rediss://... the same, over TLS: `?ca-file=FILE` names the certificates to trust instead of the system's,
//   `cert-file=FILE` and `key-file=FILE` this client's own certificate (PEM). Several settings are joined by `&`.
// `?password-file=FILE` reads the password from the first line of a file, so that it does not appear in the list of
// processes. USER and PASSWORD may be percent-encoded.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

struct redis_address {
  std::string host = {}, socket = {};  // exactly one of them is set
  int port = 6379, database = 0;
  std::string user = {}, password = {};
  bool tls = false;
  std::string ca_file = {}, cert_file = {}, key_file = {};

  std::string str() const;  // without the password, for messages
  friend bool operator==(const redis_address&, const redis_address&) = default;
};

// Throws error{usage} for a malformed URL, error{missing_file} for a password file that cannot be read.
redis_address parse_redis_url(std::string_view url);

}  // namespace kiln

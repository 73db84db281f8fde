// The address of an HTTP server that holds a shared cache, parsed from a URL:
//   https://HOST[:PORT][/FOLDER]    read only (any web server, a gateway to S3, a CDN);  http:// without TLS
//   davs://HOST[:PORT][/FOLDER]     read and write, over WebDAV;                         dav:// without TLS
// `?ca-file=FILE` names the certificates to trust instead of the system's. Credentials stand in no URL, since a URL
// appears in the list of processes: they come from the environment or ~/.netrc.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

struct http_address {
  std::string folder = {};  // http://HOST:PORT/FOLDER/, ends in a slash
  std::string ca_file = {};
  bool secure = false, writes = false;

  std::string str() const;  // as the user wrote it, for messages
  friend bool operator==(const http_address&, const http_address&) = default;
};

// Whether the URL has one of the four schemes.
bool is_http_url(std::string_view url);

// Throws error{usage} for a malformed URL or one with credentials.
http_address parse_http_url(std::string_view url);

}  // namespace kiln

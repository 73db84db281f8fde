#include "jit/remote/http_address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/error.hpp"

namespace kiln {
namespace {

struct scheme {
  std::string_view prefix, sent;
  bool secure, writes;
};
constexpr std::array schemes{scheme{"https://", "https://", true, false}, scheme{"http://", "http://", false, false},
                             scheme{"davs://", "https://", true, true}, scheme{"dav://", "http://", false, true}};

const scheme* scheme_of(std::string_view url) {
  const auto* found = std::ranges::find_if(schemes, [&](const scheme& s) { return url.starts_with(s.prefix); });
  return found == schemes.end() ? nullptr : found;
}

[[noreturn]] void refuse(std::string_view why) {
  throw error(error_kind::usage, fmt::format("the address of a cache on a web server is https://HOST[:PORT][/FOLDER] "
                                             "to read, davs://HOST[:PORT][/FOLDER] to read and write: {}",
                                             why));
}

}  // namespace

bool is_http_url(std::string_view url) { return scheme_of(url) != nullptr; }

std::string http_address::str() const {
  const auto* s =
      std::ranges::find_if(schemes, [&](const scheme& one) { return one.secure == secure && one.writes == writes; });
  return std::string(s->prefix) + folder.substr(s->sent.size());
}

http_address parse_http_url(std::string_view url) {
  const scheme* s = scheme_of(url);
  if (s == nullptr) refuse("the scheme is missing");
  std::string_view rest = url.substr(s->prefix.size());
  http_address address{.secure = s->secure, .writes = s->writes};
  if (auto query = rest.find('?'); query != std::string_view::npos) {
    constexpr std::string_view setting = "ca-file=";
    if (!rest.substr(query + 1).starts_with(setting)) refuse("the only setting after '?' is ca-file=FILE");
    address.ca_file = rest.substr(query + 1 + setting.size());
    rest = rest.substr(0, query);
  }
  // An '@' may stand in a folder's name only percent-encoded, so that no password passes for a part of one.
  if (rest.find('@') != std::string_view::npos)
    refuse("credentials belong in ~/.netrc or KILN_CACHE_HTTP_TOKEN, not in the address");
  if (!std::ranges::all_of(rest, [](char c) { return c > ' ' && c < 127 && c != '#' && c != '\\' && c != '"'; }))
    refuse("it has a character that must be percent-encoded");
  if (rest.empty() || rest[0] == '/' || rest[0] == ':') refuse("the host is missing");
  address.folder = std::string(s->sent) + std::string(rest);
  if (!address.folder.ends_with('/')) address.folder += '/';
  return address;
}

}  // namespace kiln

#include "jit/remote/redis_address.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "ir/error.hpp"

namespace kiln {
namespace {

constexpr int max_port = 65535, max_database = 1 << 20;

[[noreturn]] void refuse(std::string_view why) {
  throw error(
      error_kind::usage,
      fmt::format("the address of a Redis server is redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], rediss:// for TLS, "
                  "or unix:///PATH: {}",
                  why));
}

int number(std::string_view digits, int max, std::string_view what) {
  int value = 0;
  auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size() || value < 0 || value > max)
    refuse(fmt::format("'{}' is not a valid {}", digits, what));
  return value;
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    int code = 0;
    auto digits = text.substr(i + 1, 2);
    if (digits.size() < 2 || std::from_chars(digits.data(), digits.data() + 2, code, 16).ptr != digits.data() + 2)
      refuse("a '%' is not followed by two hexadecimal digits");
    result += static_cast<char>(code);
    i += 2;
  }
  return result;
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line))
    throw error(error_kind::missing_file, fmt::format("{}: the password file is empty or cannot be read", file));
  return line;
}

// Cuts `text` at the first `separator` and returns the part after it, or "" if there is no separator.
std::string_view cut(std::string_view& text, std::string_view separator) {
  auto at = text.find(separator);
  if (at == std::string_view::npos) return {};
  auto rest = text.substr(at + separator.size());
  text = text.substr(0, at);
  return rest;
}

void apply_query(std::string_view query, redis_address& address) {
  while (!query.empty()) {
    std::string_view setting = query;
    query = cut(setting, "&");
    std::string_view value = cut(setting, "=");
    if (setting == "password-file") address.password = first_line(percent_decoded(value));
    else if (setting == "database") address.database = number(value, max_database, "database");
    else if (setting == "ca-file" && address.tls) address.ca_file = percent_decoded(value);
    else if (setting == "cert-file" && address.tls) address.cert_file = percent_decoded(value);
    else if (setting == "key-file" && address.tls) address.key_file = percent_decoded(value);
    else
      refuse(fmt::format(
          "'{}' is not a known setting (password-file, database; ca-file, cert-file, key-file for rediss://)",
          setting));
  }
}

}  // namespace

std::string redis_address::str() const {
  if (!socket.empty()) return fmt::format("unix://{}?database={}", socket, database);
  return fmt::format("{}://{}:{}/{}", tls ? "rediss" : "redis",
                     host.find(':') == std::string::npos ? host : "[" + host + "]", port, database);
}

redis_address parse_redis_url(std::string_view url) {
  redis_address address;
  std::string_view query = url;
  query = cut(url, "?");
  if (url.starts_with("unix://")) {
    address.socket = percent_decoded(url.substr(7));
    if (!address.socket.starts_with('/')) refuse("the path of a socket must be absolute");
    apply_query(query, address);
    return address;
  }
  address.tls = url.starts_with("rediss://");
  if (!address.tls && !url.starts_with("redis://"))
    refuse(fmt::format("'{}' has none of these schemes", url.substr(0, url.find('@'))));
  std::string_view rest = url.substr(url.find("://") + 3), database = cut(rest, "/");
  if (!database.empty()) address.database = number(database, max_database, "database");
  if (auto at = rest.rfind('@'); at != std::string_view::npos) {
    std::string_view user = rest.substr(0, at), password = cut(user, ":");
    address.user = percent_decoded(user);
    address.password = percent_decoded(password);
    rest = rest.substr(at + 1);
  }
  if (rest.starts_with('[')) {  // an IPv6 address
    if (rest.find(']') == std::string_view::npos) refuse("a '[' is not closed");
    std::string_view port = cut(rest, "]");
    address.host = rest.substr(1);
    rest = port;
    if (!rest.empty() && rest[0] != ':') refuse("only ':PORT' may follow ']'");
    if (!rest.empty()) address.port = number(rest.substr(1), max_port, "port");
  } else {
    std::string_view port = cut(rest, ":");
    address.host = rest;
    if (!port.empty()) address.port = number(port, max_port, "port");
  }
  if (address.host.empty()) refuse("the host is missing");
  apply_query(query, address);
  return address;
}

}  // namespace kiln

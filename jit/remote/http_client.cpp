#include "jit/remote/http_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ir/error.hpp"
#include "jit/remote/curl_library.hpp"

namespace kiln {
namespace {

constexpr std::size_t most_header_bytes = std::size_t{64} << 10;
constexpr std::size_t most_ignored_bytes = std::size_t{64} << 10;  // of the body of an answer that is not an entry

struct exchange {
  const curl_library& curl;
  CURL* handle;
  std::size_t most_bytes;
  std::span<const std::byte> sending = {};
  std::vector<std::byte> received = {};
  std::size_t header_bytes = 0, ignored_bytes = 0;
  bool too_large = false;

  std::size_t bounded(std::size_t& count, std::size_t size, std::size_t most) {
    count += size;
    too_large |= count > most;
    return too_large ? 0 : size;  // 0 ends the transfer
  }
};

std::size_t on_header(char*, std::size_t size, std::size_t count, void* self) {
  auto& e = *static_cast<exchange*>(self);
  return e.bounded(e.header_bytes, size * count, most_header_bytes);
}

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& e = *static_cast<exchange*>(self);
  size *= count;
  long status = 0;
  e.curl.info(e.handle, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return e.bounded(e.ignored_bytes, size, most_ignored_bytes);
  if (e.received.size() + size > e.most_bytes) {
    e.too_large = true;
    return 0;
  }
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  e.received.insert(e.received.end(), begin, begin + size);
  return size;
}

std::size_t on_read(char* into, std::size_t size, std::size_t count, void* self) {
  auto& e = *static_cast<exchange*>(self);
  const std::size_t part = std::min(size * count, e.sending.size());
  std::memcpy(into, e.sending.data(), part);
  e.sending = e.sending.subspan(part);
  return part;
}

}  // namespace

struct http_client::state {
  const curl_library& curl = curl_library::get();
  CURL* handle = curl.init();
  ~state() {
    if (handle != nullptr) curl.cleanup(handle);
  }
};

http_client::http_client(const http_address& address, const http_limits& limits)
    : address_(address), limits_(limits), state_(std::make_unique<state>()) {
  if (state_->handle == nullptr) throw error(error_kind::out_of_memory, "libcurl makes no handle");
}

http_client::~http_client() = default;

http_answer http_client::call(const std::string& method, const std::string& name, std::span<const std::byte> body) {
  const curl_library& curl = state_->curl;
  CURL* handle = state_->handle;
  curl.reset(handle);  // keeps the connection
  exchange e{.curl = curl, .handle = handle, .most_bytes = limits_.bytes, .sending = body};
  const std::string url = address_.folder + name;
  curl.set(handle, CURLOPT_URL, url.c_str());
  curl.set(handle, CURLOPT_NOSIGNAL, 1L);
  curl.set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits_.connect.count()));
  curl.set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(limits_.call.count()));
  curl.set(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl.set(handle, CURLOPT_SSL_VERIFYPEER, 1L);
  curl.set(handle, CURLOPT_SSL_VERIFYHOST, 2L);
  curl.set(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!address_.ca_file.empty()) curl.set(handle, CURLOPT_CAINFO, address_.ca_file.c_str());
  curl.set(handle, CURLOPT_USERAGENT, "kiln");
  curl.set(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl.set(handle, CURLOPT_HEADERDATA, &e);
  curl.set(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl.set(handle, CURLOPT_WRITEDATA, &e);
  // Credentials travel inside TLS alone.
  if (address_.secure) {
    if (const char* token = std::getenv("KILN_CACHE_HTTP_TOKEN"); token != nullptr && *token != 0) {
      curl.set(handle, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
      curl.set(handle, CURLOPT_XOAUTH2_BEARER, token);
    } else {
      curl.set(handle, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
      if (const char* file = std::getenv("NETRC"); file != nullptr && *file != 0)
        curl.set(handle, CURLOPT_NETRC_FILE, file);
    }
  }
  const std::unique_ptr<curl_slist, decltype(curl.free_all)> headers(curl.append(nullptr, "Expect:"), curl.free_all);
  if (method == "PUT") {
    curl.set(handle, CURLOPT_UPLOAD, 1L);
    curl.set(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl.set(handle, CURLOPT_READFUNCTION, on_read);
    curl.set(handle, CURLOPT_READDATA, &e);
    curl.set(handle, CURLOPT_HTTPHEADER, headers.get());  // sends the entry at once, without asking first
  } else if (method != "GET") {
    curl.set(handle, CURLOPT_CUSTOMREQUEST, method.c_str());
  }
  const CURLcode code = curl.perform(handle);
  if (e.too_large)
    throw error(error_kind::corrupted,
                fmt::format("{}: its answer has more bytes than were asked for", address_.str()));
  if (code != CURLE_OK)
    throw error(error_kind::unreachable,
                fmt::format("the web server at {} cannot be used: {}", address_.str(), curl.text_of(code)));
  http_answer answer;
  curl.info(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  if (answer.status == 200) answer.body = std::move(e.received);
  return answer;
}

}  // namespace kiln

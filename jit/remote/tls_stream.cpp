#include "jit/remote/tls_stream.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <string>

#include "ir/error.hpp"
#include "jit/remote/curl_library.hpp"

namespace kiln {
namespace {

// Writing to a connection that the server has closed raises SIGPIPE in some versions of libcurl and its TLS libraries.
// While an object of this class lives, the signal does not reach this thread.
class without_sigpipe {
 public:
  without_sigpipe() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~without_sigpipe() {
    const timespec now{};
    if (!was_pending_)
      while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {}
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

constexpr std::array refusals{CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
                              CURLE_SSL_ISSUER_ERROR};

[[noreturn]] void throw_failure(CURLcode code, const char* text, const redis_address& address) {
  if (std::ranges::find(refusals, code) != refusals.end())
    throw error(error_kind::usage, fmt::format("the TLS connection to the Redis server at {} is refused: {}; ca-file=, "
                                               "cert-file= and key-file= name the certificates",
                                               address.str(), text));
  throw error(error_kind::unreachable, text);
}

}  // namespace

struct tls_stream::state {
  const curl_library& curl = curl_library::get();
  CURL* handle = curl.init();
  ~state() {
    const without_sigpipe guard;
    if (handle != nullptr) curl.cleanup(handle);
  }
};

tls_stream::tls_stream(const redis_address& address, std::chrono::steady_clock::time_point deadline)
    : state_(std::make_unique<state>()) {
  const curl_library& curl = state_->curl;
  CURL* handle = state_->handle;
  if (handle == nullptr) throw error(error_kind::out_of_memory, "libcurl makes no handle");
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  if (left <= 0) throw error(error_kind::unreachable, "it takes longer than it may");
  const bool literal = address.host.find(':') != std::string::npos;
  const std::string url =
      fmt::format(fmt::runtime(literal ? "https://[{}]:{}/" : "https://{}:{}/"), address.host, address.port);
  std::array<char, CURL_ERROR_SIZE> text{};
  curl.set(handle, CURLOPT_ERRORBUFFER, text.data());
  curl.set(handle, CURLOPT_URL, url.c_str());
  curl.set(handle, CURLOPT_CONNECT_ONLY, 1L);
  curl.set(handle, CURLOPT_NOSIGNAL, 1L);
  curl.set(handle, CURLOPT_PROXY, "");
  curl.set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(left));
  curl.set(handle, CURLOPT_SSL_VERIFYPEER, 1L);
  curl.set(handle, CURLOPT_SSL_VERIFYHOST, 2L);
  curl.set(handle, CURLOPT_SSL_ENABLE_ALPN, 0L);
  curl.set(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl.set(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  if (!address.ca_file.empty()) {
    curl.set(handle, CURLOPT_CAINFO, address.ca_file.c_str());
    curl.set(handle, CURLOPT_CAPATH, nullptr);
  }
  if (!address.cert_file.empty()) curl.set(handle, CURLOPT_SSLCERT, address.cert_file.c_str());
  if (!address.key_file.empty()) curl.set(handle, CURLOPT_SSLKEY, address.key_file.c_str());
  const without_sigpipe guard;
  const CURLcode code = curl.perform(handle);
  curl.set(handle, CURLOPT_ERRORBUFFER, nullptr);
  if (code != CURLE_OK) throw_failure(code, text[0] != 0 ? text.data() : curl.text_of(code), address);
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl.info(handle, CURLINFO_ACTIVESOCKET, &socket);
  if (socket == CURL_SOCKET_BAD) throw error(error_kind::unreachable, "it closes the connection");
  descriptor_ = socket;
}

tls_stream::~tls_stream() = default;

std::optional<std::size_t> tls_stream::send(std::string_view bytes) {
  const without_sigpipe guard;
  std::size_t sent = 0;
  const CURLcode code = state_->curl.send(state_->handle, bytes.data(), bytes.size(), &sent);
  if (code == CURLE_AGAIN) return std::nullopt;
  if (code != CURLE_OK) throw error(error_kind::unreachable, state_->curl.text_of(code));
  return sent;
}

std::optional<std::size_t> tls_stream::receive(std::span<char> into) {
  const without_sigpipe guard;
  std::size_t arrived = 0;
  const CURLcode code = state_->curl.receive(state_->handle, into.data(), into.size(), &arrived);
  if (code == CURLE_AGAIN) return std::nullopt;
  if (code != CURLE_OK) throw error(error_kind::unreachable, state_->curl.text_of(code));
  return arrived;
}

}  // namespace kiln

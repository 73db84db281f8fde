#include "jit/remote/http_layer.hpp"

#include <fmt/format.h>

#include <mutex>

#include "ir/error.hpp"
#include "jit/remote/curl_library.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::seconds silence{30};  // the server is not tried again for this long after a failure

bool is_success(long status) { return status >= 200 && status < 300; }

class http_layer final : public remote_layer {
 public:
  http_layer(const http_address& address, const http_limits& limits) : address_(address), limits_(limits) {}

  std::string name() const override { return address_.str(); }

  std::optional<std::vector<std::byte>> get(const std::string& entry_name) override {
    http_answer answer = call("GET", entry_name);
    if (answer.status == 200) return std::move(answer.body);
    if (answer.status == 404 || answer.status == 410) return std::nullopt;
    refused(answer.status);
  }

  void put(const std::string& entry_name, std::span<const std::byte> entry) override {
    // Sending more takes too long on a slow network. Each machine compiles such a kernel itself.
    if (!address_.writes || entry.size() > limits_.bytes) return;
    http_answer answer = call("PUT", entry_name, entry);
    // 409 Conflict: there is no such folder (RFC 4918, 9.7.1). The second PUT tells whether there is one now.
    if (answer.status == 409) {
      call("MKCOL", "");
      answer = call("PUT", entry_name, entry);
    }
    if (!is_success(answer.status)) refused(answer.status);
  }

 private:
  [[noreturn]] void refused(long status) const {
    constexpr std::string_view redirect = ", a redirect, which is not followed", access = ", access denied";
    const bool denied = status == 401 || status == 403;
    throw error(error_kind::io, fmt::format("the web server at {} answers {}{}", address_.str(), status,
                                            status >= 300 && status < 400 ? redirect
                                            : denied                      ? access
                                                                          : ""));
  }

  http_answer call(const std::string& method, const std::string& entry_name, std::span<const std::byte> body = {}) {
    std::unique_ptr<http_client> client = take();
    try {
      http_answer answer = client->call(method, entry_name, body);
      std::lock_guard lock(mutex_);
      idle_.push_back(std::move(client));
      return answer;
    } catch (const error&) {
      std::lock_guard lock(mutex_);
      quiet_until_ = clock::now() + silence;
      idle_.clear();
      throw;
    }
  }

  std::unique_ptr<http_client> take() {
    std::lock_guard lock(mutex_);
    if (clock::now() < quiet_until_)
      throw error(error_kind::unreachable,
                  fmt::format("the web server at {} could not be used a moment ago", address_.str()));
    if (idle_.empty()) return std::make_unique<http_client>(address_, limits_);
    auto client = std::move(idle_.back());
    idle_.pop_back();
    return client;
  }

  const http_address address_;
  const http_limits limits_;
  std::mutex mutex_;  // guards idle_ and quiet_until_
  std::vector<std::unique_ptr<http_client>> idle_;
  clock::time_point quiet_until_{};
};

}  // namespace

std::shared_ptr<remote_layer> make_http_layer(const http_address& address, const http_limits& limits) {
  curl_library::get();  // says at once if it is missing
  return std::make_shared<http_layer>(address, limits);
}

}  // namespace kiln

#include "jit/remote/redis_layer.hpp"

#include <fmt/format.h>

#include <mutex>

#include "ir/error.hpp"
#include "jit/remote/redis_client.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds connect_limit{200}, call_limit{1000};  // call_limit includes connecting
constexpr std::chrono::seconds silence{30};  // the server is not tried again for this long after a failure
constexpr std::size_t max_entry_bytes = std::size_t{64} << 20;
constexpr const char* keep_seconds = "2592000";  // 30 days

std::string key_of(const std::string& entry_name) { return "kiln:cache:" + entry_name; }

class redis_layer final : public remote_layer {
 public:
  explicit redis_layer(redis_address address) : address_(std::move(address)) {}

  std::string name() const override { return address_.str(); }

  std::optional<std::vector<std::byte>> get(const std::string& entry_name) override {
    std::string key = key_of(entry_name);
    redis_value answer =
        call({"GETEX", key, "EX", keep_seconds}, {.bytes = max_entry_bytes + reply_bounds().bytes, .elements = 0});
    if (answer.kind != redis_value::type::text) return std::nullopt;
    auto bytes = std::as_bytes(std::span(answer.text));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }

  void put(const std::string& entry_name, std::span<const std::byte> entry) override {
    // Sending more takes longer than a second on a slow network. Each machine compiles such a kernel itself.
    if (entry.size() > max_entry_bytes) return;
    std::string key = key_of(entry_name);
    call({"SET", key, {reinterpret_cast<const char*>(entry.data()), entry.size()}, "EX", keep_seconds});
  }

 private:
  redis_value call(const redis_client::command& words, const reply_bounds& bounds = {}) {
    std::unique_ptr<redis_client> client = take();
    try {
      redis_value answer = client->call(words, bounds);
      give_back(std::move(client));
      return answer;
    } catch (const error& e) {
      if (e.kind() == error_kind::io) throw;  // the server refuses this command, but may accept the next one
      std::lock_guard lock(mutex_);
      quiet_until_ = clock::now() + silence;
      idle_.clear();
      throw;
    }
  }

  std::unique_ptr<redis_client> take() {
    std::lock_guard lock(mutex_);
    if (clock::now() < quiet_until_)
      throw error(error_kind::unreachable,
                  fmt::format("the Redis server at {} could not be used a moment ago", address_.str()));
    if (idle_.empty())
      return std::make_unique<redis_client>(address_, redis_limits{.connect = connect_limit, .call = call_limit});
    auto client = std::move(idle_.back());
    idle_.pop_back();
    return client;
  }

  void give_back(std::unique_ptr<redis_client> client) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(client));
  }

  redis_address address_;
  std::mutex mutex_;  // guards idle_ and quiet_until_
  std::vector<std::unique_ptr<redis_client>> idle_;
  clock::time_point quiet_until_{};
};

}  // namespace

std::shared_ptr<remote_layer> make_redis_layer(redis_address address) {
  return std::make_shared<redis_layer>(std::move(address));
}

}  // namespace kiln

#include "jit/remote/redis_client.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <random>

#include "ir/error.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds first_pause{50}, longest_pause{2000};

// Replies that say "not now": of a server that loads its data, has lost its master or changes roles.
constexpr std::array<std::string_view, 6> passing{"LOADING", "MASTERDOWN", "READONLY", "TRYAGAIN", "CLUSTERDOWN", "BUSY "};
constexpr std::array<std::string_view, 3> no_entry{"NOAUTH", "WRONGPASS", "NOPERM"};

template <class List>
bool begins_with_one_of(std::string_view text, const List& list) {
  return std::ranges::any_of(list, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

timeval as_timeval(std::chrono::milliseconds t) { return {t.count() / 1000, static_cast<suseconds_t>(t.count() % 1000 * 1000)}; }

struct reply_freer {
  void operator()(void* reply) const { freeReplyObject(reply); }
};

redis_value value_of(const redisReply& r) {
  using enum redis_value::type;
  switch (r.type) {
    case REDIS_REPLY_INTEGER: return {number, r.integer, {}, {}};
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS: return {text, 0, {r.str, r.len}, {}};
    case REDIS_REPLY_ERROR: return {error, 0, {r.str, r.len}, {}};
    case REDIS_REPLY_ARRAY: {
      redis_value result{list, 0, {}, {}};
      for (std::size_t i = 0; i < r.elements; ++i) result.items.push_back(value_of(*r.element[i]));
      return result;
    }
    default: return {};
  }
}

// Sleeps, unless `stop` is asked for meanwhile.
void pause_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

std::int64_t redis_value::as_number() const {
  if (kind != type::text) return number;
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void redis_client::closer::operator()(redisContext* c) const { redisFree(c); }

redis_client::redis_client(redis_address address, redis_limits limits) : address_(std::move(address)), limits_(std::move(limits)) {}
redis_client::~redis_client() = default;

void redis_client::fail(std::string_view what) {
  std::string why = context_ && context_->err ? context_->errstr : "the answer makes no sense";
  context_.reset();
  throw error(error_kind::absent, fmt::format("the Redis server at {} {}: {}", address_.str(), what, why));
}

void redis_client::connect() {
  timeval limit = as_timeval(limits_.connect);
  context_.reset(address_.socket.empty() ? redisConnectWithTimeout(address_.host.c_str(), address_.port, limit) : redisConnectUnixWithTimeout(address_.socket.c_str(), limit));
  if (!context_) throw std::bad_alloc();
  if (context_->err || redisSetTimeout(context_.get(), as_timeval(limits_.call)) != REDIS_OK) fail("cannot be reached");
  redisEnableKeepAlive(context_.get());
  std::string database = std::to_string(address_.database);
  std::vector<command> greeting;
  if (!address_.user.empty()) greeting.push_back({"AUTH", address_.user, address_.password});
  else if (!address_.password.empty()) greeting.push_back({"AUTH", address_.password});
  greeting.push_back({"SELECT", database});
  for (const redis_value& answer : exchange_once(greeting))
    if (answer.kind == redis_value::type::error) {
      context_.reset();
      throw error(error_kind::usage, fmt::format("the Redis server at {} does not let us in: {}", address_.str(), answer.text));
    }
}

std::vector<redis_value> redis_client::exchange_once(const std::vector<command>& commands) {
  if (!context_) connect();
  for (const command& words : commands) {
    std::vector<const char*> starts;
    std::vector<std::size_t> sizes;
    for (std::string_view w : words) starts.push_back(w.data() ? w.data() : ""), sizes.push_back(w.size());
    if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), starts.data(), sizes.data()) != REDIS_OK) fail("cannot be asked");
  }
  std::vector<redis_value> answers;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK || !reply) fail("does not answer");
    std::unique_ptr<void, reply_freer> owner(reply);
    answers.push_back(value_of(*static_cast<redisReply*>(reply)));
    if (answers.back().kind != redis_value::type::error || !begins_with_one_of(answers.back().text, passing)) continue;
    context_.reset();  // with the answers that are still to come
    throw error(error_kind::absent, fmt::format("the Redis server at {} cannot answer yet: {}", address_.str(), answers.back().text));
  }
  return answers;
}

std::vector<redis_value> redis_client::exchange(const std::vector<command>& commands) {
  auto end = clock::now() + limits_.patience;
  thread_local std::minstd_rand spread{std::random_device{}()};  // so that a thousand workers do not come back in the same instant
  for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    bool reused = context_ != nullptr;
    try {
      return exchange_once(commands);
    } catch (const error& e) {
      if (e.kind() == error_kind::absent && reused) continue;  // the server may have been restarted since: that is no news worth a pause
      if (e.kind() != error_kind::absent || clock::now() + pause > end || limits_.stop.stop_requested()) throw;
      spdlog::debug("{}; trying again", e.what());
      pause_for(pause / 2 + pause * std::uniform_int_distribution<int>(0, 100)(spread) / 100, limits_.stop);
    }
  }
}

redis_value redis_client::ask(const command& words) { return std::move(exchange({words}).front()); }

std::vector<redis_value> redis_client::call_all(const std::vector<command>& commands) {
  auto answers = exchange(commands);
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (const redis_value& a = answers[i]; a.kind == redis_value::type::error)
      throw error(begins_with_one_of(a.text, no_entry) ? error_kind::usage : error_kind::io, fmt::format("the Redis server at {} refuses {}: {}", address_.str(), commands[i].front(), a.text));
  return answers;
}

redis_value redis_client::call(const command& words) { return std::move(call_all({words}).front()); }

redis_value redis_client::evaluate(std::string_view script, const std::vector<std::string>& keys, const std::vector<std::string>& arguments) {
  std::string count = std::to_string(keys.size());
  command words{"EVAL", script, count};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return call(words);
}

}  // namespace kiln

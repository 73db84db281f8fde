#include "jit/remote/redis_client.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <random>

#include "jit/remote/redis_socket.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds first_pause{50}, longest_pause{2000};

// Error replies that are temporary: the server loads its data, has lost its master or is changing roles.
constexpr std::array<std::string_view, 6> passing{"LOADING",  "MASTERDOWN",  "READONLY",
                                                  "TRYAGAIN", "CLUSTERDOWN", "BUSY "};
constexpr std::array<std::string_view, 3> no_entry{"NOAUTH", "WRONGPASS", "NOPERM"};

template <class List>
bool begins_with_one_of(std::string_view text, const List& list) {
  return std::ranges::any_of(list, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// Words of at least this size are sent without copying them into the pending buffer.
constexpr std::size_t large_word = std::size_t{1} << 16;

void send_command(redis_socket& socket, std::string& pending, const redis_client::command& words,
                  const wait_limit& limit) {
  pending += fmt::format("*{}\r\n", words.size());
  for (std::string_view w : words) {
    pending += fmt::format("${}\r\n", w.size());
    if (w.size() < large_word) {
      pending += w;
    } else {
      socket.send(pending, limit);
      socket.send(w, limit);
      pending.clear();
    }
    pending += "\r\n";
  }
}

// Sleeps for `time`, or until `stop` is requested.
void pause_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

struct redis_client::connection {
  redis_socket socket;
  wait_limit limit;
  reply_reader reader{[this](std::span<char> into) { return socket.receive(into, limit); }};
};

redis_client::redis_client(redis_address address, redis_limits limits)
    : address_(std::move(address)), limits_(std::move(limits)) {}
redis_client::~redis_client() = default;

void redis_client::connect(time_point deadline) {
  redis_socket socket =
      redis_socket::connect(address_, {std::min(deadline, clock::now() + limits_.connect), limits_.stop});
  connection_.reset(new connection{std::move(socket), {deadline, limits_.stop}});
  std::string database = std::to_string(address_.database);
  std::vector<command> greeting;
  if (!address_.user.empty()) greeting.push_back({"AUTH", address_.user, address_.password});
  else if (!address_.password.empty()) greeting.push_back({"AUTH", address_.password});
  greeting.push_back({"SELECT", database});
  for (const redis_value& answer : talk(greeting, {}))
    if (answer.kind == redis_value::type::error)
      throw error(error_kind::usage,
                  fmt::format("the Redis server at {} rejects the login: {}", address_.str(), answer.text));
}

std::vector<redis_value> redis_client::talk(const std::vector<command>& commands, const reply_bounds& bounds) {
  std::string pending;
  for (const command& words : commands) send_command(connection_->socket, pending, words, connection_->limit);
  connection_->socket.send(pending, connection_->limit);
  std::vector<redis_value> answers;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    answers.push_back(connection_->reader.read(bounds));
    if (answers.back().kind == redis_value::type::error && begins_with_one_of(answers.back().text, passing))
      throw error(error_kind::unreachable, fmt::format("it cannot answer yet: {}", answers.back().text));
  }
  // Surplus bytes would be taken for the answer to the next command.
  if (!connection_->reader.empty()) throw reply_error("it sends more than was asked for", false);
  return answers;
}

std::vector<redis_value> redis_client::exchange_by(time_point deadline, const std::vector<command>& commands,
                                                   const reply_bounds& bounds) {
  try {
    if (connection_ && !connection_->socket.idle())
      connection_.reset();  // closed, or has surplus bytes that would be taken for the next answer
    if (!connection_) connect(deadline);
    connection_->limit.deadline = deadline;
    return talk(commands, bounds);
  } catch (const reply_error& e) {
    connection_.reset();
    std::string message = fmt::format("the Redis server at {} cannot be used: {}", address_.str(), e.what());
    if (e.too_large()) throw oversized_reply(message);
    throw error(error_kind::corrupted, message);
  } catch (const error& e) {
    const bool connected = connection_ != nullptr;
    connection_.reset();
    if (e.kind() != error_kind::unreachable) throw;
    throw error(error_kind::unreachable, fmt::format("the Redis server at {} {}: {}", address_.str(),
                                                     connected ? "does not answer" : "cannot be reached", e.what()));
  } catch (...) {
    connection_.reset();
    throw;
  }
}

std::vector<redis_value> redis_client::exchange(const std::vector<command>& commands, const reply_bounds& bounds) {
  auto call_deadline = [&] { return std::min(clock::now() + limits_.call, limits_.end); };
  auto deadline = call_deadline(), end = clock::now() + limits_.patience;
  // Random pauses, so that a thousand workers do not retry at the same moment.
  thread_local std::minstd_rand spread{std::random_device{}()};
  for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    bool reused = connection_ != nullptr;
    try {
      return exchange_by(deadline, commands, bounds);
    } catch (const error& e) {
      if (e.kind() == error_kind::unreachable && reused && clock::now() < deadline)
        continue;  // the server may have restarted since the last call: reconnect at once
      if (e.kind() != error_kind::unreachable || clock::now() + pause > end || limits_.stop.stop_requested()) throw;
      spdlog::debug("{}; trying again", e.what());
      pause_for(pause / 2 + pause * std::uniform_int_distribution<int>(0, 100)(spread) / 100, limits_.stop);
      deadline = call_deadline();
    }
  }
}

redis_value redis_client::ask(const command& words, const reply_bounds& bounds) {
  return std::move(exchange({words}, bounds).front());
}

std::vector<redis_value> redis_client::call_all(const std::vector<command>& commands, const reply_bounds& bounds) {
  auto answers = exchange(commands, bounds);
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (const redis_value& a = answers[i]; a.kind == redis_value::type::error)
      throw error(begins_with_one_of(a.text, no_entry) ? error_kind::usage : error_kind::io,
                  fmt::format("the Redis server at {} refuses {}: {}", address_.str(), commands[i].front(), a.text));
  return answers;
}

redis_value redis_client::call(const command& words, const reply_bounds& bounds) {
  return std::move(call_all({words}, bounds).front());
}

redis_value redis_client::evaluate(std::string_view script, const std::vector<std::string>& keys,
                                   const std::vector<std::string>& arguments, const reply_bounds& bounds) {
  std::string count = std::to_string(keys.size());
  command words{"EVAL", script, count};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return call(words, bounds);
}

}  // namespace kiln

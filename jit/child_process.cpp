#include "jit/child_process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include "ir/error.hpp"
#include "jit/spawned_process.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

// The child starts by reading its request. Limits that are set before the request is written apply to all of its work.
void limit(pid_t child, const child_limits& limits) {
  auto set = [&](__rlimit_resource what, rlim_t value) {
    rlimit both{value, value};
    prlimit(child, what, &both, nullptr);
  };
  set(RLIMIT_CORE, 0);
  // Also limit the CPU time: if this process is killed, nobody else would stop a child that hangs.
  set(RLIMIT_CPU,
      static_cast<rlim_t>(limits.time.count() / 1000 + 5) * std::max(1u, std::thread::hardware_concurrency()));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (limits.memory_bytes > 0) set(RLIMIT_AS, static_cast<rlim_t>(limits.memory_bytes));
#endif
}

// Moves bytes between this process and the child's three streams.
class conversation {
 public:
  conversation(channel& input, channel& output, channel& errors, std::span<const std::byte> request,
               std::int64_t output_limit)
      : input_(input.ours), output_(output.ours), errors_(errors.ours), request_(request), output_limit_(output_limit) {
    if (request_.empty()) input_.reset();
  }

  enum class state { open, finished, too_much };

  // Waits at most until `deadline` for one event and handles it.
  state step(clock::time_point deadline) {
    std::array<pollfd, 3> wanted{pollfd{input_.number(), POLLOUT, 0}, pollfd{output_.number(), POLLIN, 0},
                                 pollfd{errors_.number(), POLLIN, 0}};  // poll() ignores negative descriptors
    if (!output_.open() && !errors_.open()) return state::finished;
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (poll(wanted.data(), wanted.size(), static_cast<int>(std::clamp<long>(left + 1, 0, 1000))) <= 0)
      return state::open;
    if (wanted[0].revents) send_request();
    if (wanted[1].revents) {
      receive(output_, [&](std::span<const std::byte> part) { result.insert(result.end(), part.begin(), part.end()); });
      if (static_cast<std::int64_t>(result.size()) > output_limit_) return state::too_much;
    }
    if (wanted[2].revents)
      receive(errors_, [&](std::span<const std::byte> part) {
        words_.append(reinterpret_cast<const char*>(part.data()), part.size());
        if (words_.size() > 2 * kept_words) words_.erase(0, words_.size() - kept_words);
      });
    return state::open;
  }

  // The last line on standard error, or "".
  std::string last_words() const { return last_line(words_); }

  std::vector<std::byte> result;

 private:
  static constexpr std::size_t kept_words = 8192;

  void send_request() {
    ssize_t n = send(input_.number(), request_.data(), request_.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    request_ = n < 0 ? std::span<const std::byte>() : request_.subspan(static_cast<std::size_t>(n));
    if (request_.empty()) input_.reset();  // signals end of file to the child; or the child has stopped reading
  }

  template <class Sink>
  void receive(descriptor& from, Sink sink) {
    std::array<std::byte, 1 << 16> part;
    ssize_t n = recv(from.number(), part.data(), part.size(), 0);
    if (n > 0) sink(std::span<const std::byte>(part).first(static_cast<std::size_t>(n)));
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) from.reset();
  }

  descriptor &input_, &output_, &errors_;
  std::span<const std::byte> request_;
  std::int64_t output_limit_;
  std::string words_;
};

}  // namespace

std::vector<std::byte> run_in_child(const std::vector<std::string>& arguments, std::span<const std::byte> input,
                                    const child_limits& limits) {
  auto deadline = clock::now() + limits.time;
  channel in = make_channel(SOCK_STREAM), out = make_channel(SOCK_STREAM), errors = make_channel(SOCK_STREAM);
  spawned_process process(arguments, in.theirs.number(), out.theirs.number(), errors.theirs.number());
  for (channel* c : {&in, &out, &errors}) c->theirs.reset();
  limit(process.id(), limits);

  auto said = [](const std::string& words) { return words.empty() ? "" : ": " + words; };
  conversation talk(in, out, errors, input, limits.output_bytes);
  auto state = conversation::state::open;
  while (state == conversation::state::open) {
    if (clock::now() >= deadline)
      throw error(error_kind::timed_out, fmt::format("the compiler's process took longer than {} ms{}",
                                                     limits.time.count(), said(talk.last_words())));
    state = talk.step(deadline);
  }
  if (state == conversation::state::too_much)
    throw error(error_kind::compile_failed,
                fmt::format("the compiler's process wrote more than {} bytes", limits.output_bytes));
  // The child has closed its streams, so it should end very soon.
  while (!process.wait(WNOHANG)) {
    if (clock::now() >= deadline)
      throw error(error_kind::timed_out,
                  fmt::format("the compiler's process took longer than {} ms to end", limits.time.count()));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (int status = *process.wait(WNOHANG); !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw error(error_kind::compile_failed,
                fmt::format("the compiler's process {}{}", describe_end(status), said(talk.last_words())));
  return std::move(talk.result);
}

}  // namespace kiln

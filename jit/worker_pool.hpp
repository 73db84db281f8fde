// Processes that do what may crash, loop or exhaust memory: reading and compiling payloads that this process did not
// make. `kiln --compile-worker` is their executable (compile_worker.hpp); worker_host.hpp says what runs in them.
//
// Any thread may call ask(), several at once: each call has a worker to itself, so as many workers run as there are
// callers. Nothing is started before the first call or start(). Workers stay and keep what they learned; one that
// crashed, ran past its limit or answered nonsense is replaced. The destructor ends all processes. What a worker
// answers is data: its size is bounded here, its content is for the caller to verify.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/spawned_process.hpp"
#include "jit/worker_host.hpp"
#include "jit/worker_protocol.hpp"

namespace kiln {

struct worker_options {
  std::vector<std::string> arguments = {};        // the executable, which runs run_worker_host(), and its arguments
  std::shared_ptr<forked_host> forked = nullptr;  // the first host, which runs already
  std::int64_t memory_bytes =
      std::int64_t(4)
      << 30;  // of address space, beyond that of the loaded executable; sanitizers need more, so there it is not set
  std::size_t answer_bytes = std::size_t(256) << 20;
  int requests_per_worker = 500;  // then it is replaced: what a process keeps grows with what it did
  std::chrono::milliseconds start_limit{
      30000};  // for the host to be ready, without waits for a processor; it takes 50 ms on an idle machine
};

struct worker_limits {
  std::chrono::milliseconds time{60000};  // for an answer, without waits for a processor (process_deadline.hpp)
  std::chrono::milliseconds reading{
      300};  // of processor time, until the input is accepted (worker_host.hpp); milliseconds for any sound one
};

class worker_pool {
 public:
  explicit worker_pool(worker_options options);
  worker_pool(const worker_pool&) = delete;
  ~worker_pool();

  // Begins to start the host, without waiting: for callers who will need a worker soon. Never throws; ask() says what
  // is wrong.
  void start();

  // The answer to `request`. Throws error{corrupted} where the worker crashed or looped before it accepted the input,
  // error{unsupported} where it crashed later or wrote too much, error{timed_out}, and error{io} where no process can
  // be started. A worker that had answered other requests before it crashed may have been damaged by them: a fresh one
  // gets the request then.
  std::vector<std::byte> ask(std::span<const std::byte> request, const worker_limits& limits);

 private:
  struct host;
  struct worker;
  struct failure;
  worker take(bool fresh);
  void keep(worker w);
  std::optional<int> stop(worker& w);
  void start_host();
  worker start_worker(int nice);
  worker_protocol::control_answer exchange(const worker_protocol::control_request& request,
                                           std::span<const int> passed);
  std::vector<std::byte> converse(worker& w, std::span<const std::byte> request, const worker_limits& limits);

  worker_options options_;
  std::mutex host_mutex_;  // guards the host and its socket
  std::unique_ptr<host> host_;
  std::mutex idle_mutex_;
  std::list<worker> idle_;
};

}  // namespace kiln

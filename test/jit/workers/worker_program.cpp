// The executable of the worker pools in these tests. With --compile-worker it behaves like `kiln --compile-worker`;
// otherwise its workers do what each request asks for.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <thread>

#include "jit/compile_worker.hpp"
#include "jit/worker_host.hpp"

namespace {

int served = 0;
bool poisoned = false;

std::string behave(const std::string& request, const std::function<void()>& accepted) {
  ++served;
  if (poisoned) std::abort();
  const std::string word = request.substr(0, request.find(' ')),
                    rest = request.substr(std::min(request.size(), word.size() + 1));
  if (word == "late") {
    accepted();
    return behave(rest, [] {});
  }
  if (word == "twice") accepted(), accepted();
  if (word == "crash") {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would exit with a status instead
    raise(SIGSEGV);
  }
  if (word == "abort") {
    std::fputs("first line\nLLVM ERROR: Cannot select\n", stderr);
    std::abort();
  }
  if (word == "exit") std::exit(7);
  if (word == "loop")
    for (volatile bool forever = true; forever;) {}
  if (word == "sleep") std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(rest)));
  if (word == "poison") poisoned = true;
  if (word == "large") return std::string(std::stoul(rest), 'x');
  if (word == "served") return std::to_string(served);
  if (word == "nice") return std::to_string(getpriority(PRIO_PROCESS, 0));
  if (word == "host") return std::to_string(getppid());
  if (word == "allocate") {
    void* memory = std::malloc(std::stoul(rest));
    std::free(memory);
    return memory ? "there was enough" : "there was too little";
  }
  if (word == "nonsense")
    for (int stream = 3; stream < 10; ++stream)
      if (write(stream, "this is no frame of the protocol", 32) < 0) continue;
  return word == "echo" ? rest : std::to_string(getpid());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string(kiln::compile_worker_argument)) return kiln::run_compile_worker();
  return kiln::run_worker_host([] {
    return kiln::worker_function([](std::span<const std::byte> request, const std::function<void()>& accepted) {
      std::string answer = behave({reinterpret_cast<const char*>(request.data()), request.size()}, accepted);
      const auto* bytes = reinterpret_cast<const std::byte*>(answer.data());
      return std::vector<std::byte>(bytes, bytes + answer.size());
    });
  });
}

// The executable of the worker pools in these tests. With --compile-worker it behaves like `kiln --compile-worker`;
// otherwise its workers do what each request asks for.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <new>
#include <string>
#include <thread>

#include "jit/compile_worker.hpp"
#include "jit/worker_host.hpp"

namespace {

int served = 0;
bool poisoned = false;

std::string outcome(long result) { return result >= 0 ? "allowed" : std::strerror(errno); }

// What a worker that somebody else has taken over would try.
std::string attempt(const std::string& what, const std::string& path) {
  if (what == "read") return outcome(open(path.c_str(), O_RDONLY));
  if (what == "list") return outcome(open(path.c_str(), O_RDONLY | O_DIRECTORY));
  if (what == "write") return outcome(open(path.c_str(), O_WRONLY | O_CREAT, 0600));
  if (what == "remove") return outcome(unlink(path.c_str()));
  if (what == "socket") return outcome(socket(AF_INET, SOCK_STREAM, 0));
  if (what == "execute") return outcome(execl("/bin/sh", "sh", "-c", "exit 9", nullptr));
  if (what == "fork") {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    return outcome(child);
  }
  if (what == "code")
    return outcome(
        reinterpret_cast<long>(mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
  if (what == "signal") return outcome(kill(getppid(), 0));
  if (what == "memory") return outcome(syscall(SYS_process_vm_readv, getppid(), nullptr, 0, nullptr, 0, 0));
  if (what == "thread") {
    bool ran = false;
    std::thread([&] { ran = true; }).join();
    return ran ? "allowed" : "not run";
  }
  if (what == "descriptor") {
    const int file = memfd_create("test", MFD_CLOEXEC);
    return outcome(open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDWR));
  }
  return "nothing";
}

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
  if (word == "compute")  // for so many milliseconds of processor time
    for (const std::clock_t end = std::clock() + std::stol(rest) * CLOCKS_PER_SEC / 1000; std::clock() < end;) {}
  if (word == "poison") poisoned = true;
  if (word == "large") return std::string(std::stoul(rest), 'x');
  if (word == "served") return std::to_string(served);
  if (word == "try")
    return attempt(rest.substr(0, rest.find(' ')), rest.substr(std::min(rest.size(), rest.find(' ') + 1)));
  if (word == "processor") {
    rlimit limit{};
    return getrlimit(RLIMIT_CPU, &limit) == 0 ? std::to_string(limit.rlim_cur) : "";
  }
  if (word == "nice") return std::to_string(getpriority(PRIO_PROCESS, 0));
  if (word == "host") return std::to_string(getppid());
  if (word == "allocate") {
    void* volatile memory = std::malloc(std::stoul(rest));  // volatile: compilers leave out what nobody reads
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

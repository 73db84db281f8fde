// Confines a compile worker (worker_host.hpp), which parses untrusted bytes with large libraries. The operating system
// enforces both parts, and a process cannot leave them again:
//
//   seccomp    a list of the system calls that MLIR, LLVM and LLD need. All others fail with EPERM: no network, no new
//              programs, no processes, no memory that is made executable, no signals for others
//   Landlock   no file can be opened except descriptors that are open already, by their names in /proc/self/fd (LLD
//              reads and writes so). Names and sizes of files can be seen
//
// If the system lacks one, the other is still used, and sandbox_state says so. Under AddressSanitizer and
// ThreadSanitizer, which need more system calls, neither is used.
#pragma once

#include <string>

namespace kiln {

struct sandbox_state {
  bool seccomp = false;
  int landlock = 0;     // version of its interface; 0: not available
  std::string missing;  // why something is missing, for people; empty where both are there

  bool complete() const { return seccomp && landlock > 0; }
  // "seccomp and Landlock 7", "seccomp only: ..."
  std::string describe() const;
};

// Returns which of the two parts the system has. Cheap; confines nothing.
sandbox_state available_sandbox();

// Confines the calling thread, and the threads that it starts, for good. Call it while the process has one thread.
// Never throws: what cannot be applied is left out. Allocates no memory and takes no locks, so that it may follow a
// fork.
void enter_sandbox();

// Confines the calling thread, and the threads and processes that it starts, for good: it can read what it could
// before, but create, change and remove files below `folder` only, and it has no TCP and no signals for processes
// outside. For a job of the build farm, which needs more than a compile worker may do. Call it while the process has
// one thread. Never throws: without Landlock nothing is confined, and network and signals need its versions 4 and 6.
void enter_folder_sandbox(const char* folder);

}  // namespace kiln

#include "jit/sandbox.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace kiln {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr const char* switched_off = "this build has AddressSanitizer, which a sandbox would end";
#elif defined(__SANITIZE_THREAD__)
constexpr const char* switched_off = "this build has ThreadSanitizer, which a sandbox would end";
#elif !defined(__x86_64__) && !defined(__aarch64__)
constexpr const char* switched_off = "there is no list of system calls for this processor";
#else
constexpr const char* switched_off = nullptr;
#endif

#if defined(__aarch64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t this_architecture = AUDIT_ARCH_X86_64;
#endif

// The kernel's interface of Landlock, declared here because headers are often older than the kernel.
constexpr long create_ruleset_call = 444, add_rule_call = 445, restrict_self_call = 446;
constexpr std::uint32_t ask_for_version = 1, path_beneath = 1;
// To execute, read, list, and send requests to devices.
constexpr std::uint64_t reading = 1u << 0 | 1u << 2 | 1u << 3 | 1u << 15, writing_a_file = 1u << 1 | 1u << 14;
struct landlock_rules {
  std::uint64_t files, network, scopes;
};
constexpr std::uint64_t first_bits(int count) { return (std::uint64_t{1} << count) - 1; }

int landlock_version() {
  const long version = syscall(create_ruleset_call, nullptr, 0, ask_for_version);
  return version > 0 ? static_cast<int>(version) : 0;
}

// Everything that a version of Landlock can forbid.
landlock_rules all_rules(int version) {
  return {first_bits(version >= 5   ? 16
                     : version >= 3 ? 15
                     : version == 2 ? 14
                                    : 13),
          version >= 4 ? first_bits(2) : 0, version >= 6 ? first_bits(2) : 0};
}

// The descriptor of a set that forbids what `rules` names; negative if there is none.
int make_rule_set(int version, const landlock_rules& rules) {
  const std::size_t known = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  return static_cast<int>(syscall(create_ruleset_call, &rules, known, 0));
}

void enter_rule_set(int set) {
  syscall(restrict_self_call, set, 0);
  close(set);
}

// A rule set without rules.
void enter_landlock() {
  const int version = landlock_version();
  if (version == 0) return;
  if (const int set = make_rule_set(version, all_rules(version)); set >= 0) enter_rule_set(set);
}

// An exception from a rule set: what may be done with a file, or below a folder.
struct [[gnu::packed]] landlock_path {
  std::uint64_t allowed;
  std::int32_t descriptor;
};

void allow_path(int set, const char* path, std::uint64_t what) {
  const landlock_path rule{what, open(path, O_PATH | O_CLOEXEC)};
  if (rule.descriptor < 0) return;
  syscall(add_rule_call, set, path_beneath, &rule, 0);
  close(rule.descriptor);
}

// System calls that are allowed whatever their arguments.
constexpr std::uint32_t allowed[] = {
    // The requests, and LLD's descriptors in memory.
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_sendto,
    SYS_recvfrom,
    SYS_ppoll,
    SYS_close,
    SYS_lseek,
    SYS_fcntl,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_eventfd2,
    SYS_memfd_create,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fadvise64,
    SYS_shutdown,
    // Files: Landlock decides what can be opened.
    SYS_openat,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getcwd,
    // Memory; mmap and mprotect are below.
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_membarrier,
    // Threads; clone is below.
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_set_tid_address,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getcpu,
    SYS_exit,
    SYS_exit_group,
    // Signal handlers of the process itself.
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    // Identity of the process, and time.
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrusage,
    SYS_times,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_getrandom,
    SYS_getpriority,
#if defined(__x86_64__)
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_poll,
    SYS_dup2,
    SYS_pipe,
    SYS_time,
    SYS_arch_prctl,
#endif
};

constexpr std::uint32_t thread_flags = CLONE_VM | CLONE_THREAD;

// Offsets into struct seccomp_data, the filter's input. Arguments are compared by their lower halves, which hold all of
// their known bits.
constexpr std::uint32_t at_call = offsetof(seccomp_data, nr), at_architecture = offsetof(seccomp_data, arch);
constexpr std::uint32_t at_argument(unsigned index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * index);
}

constexpr std::uint32_t refused = SECCOMP_RET_ERRNO | EPERM;
// x86-64 has a second numbering of system calls (x32).
#if defined(__x86_64__)
constexpr std::uint32_t first_x32_call = 0x40000000;
#else
constexpr std::uint32_t first_x32_call = ~0U;
#endif

// A filter is a program for a machine with one register, built here without allocating memory.
class filter {
 public:
  void load(std::uint32_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void answer(std::uint32_t action) { add(BPF_STMT(BPF_RET | BPF_K, action)); }
  void answer_if(std::uint32_t value, std::uint32_t action) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    answer(action);
  }
  void answer_unless(std::uint32_t value, std::uint32_t action) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    answer(action);
  }
  void answer_from(std::uint32_t least, std::uint32_t action) {
    add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 1));
    answer(action);
  }
  // The call `number` is allowed if these bits of an argument have this value, and refused otherwise.
  void allow_call_if(std::uint32_t number, unsigned argument, std::uint32_t bits, std::uint32_t value) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5));
    load(at_argument(argument));
    add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    answer(SECCOMP_RET_ALLOW);
    answer(refused);
  }

  void install() {
    const sock_fprog program{size_, code_.data()};
    // Without this flag, older kernels slow the whole process down (speculative stores are switched off).
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) != 0)
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  }

 private:
  void add(sock_filter step) { code_[size_++] = step; }
  std::array<sock_filter, 2 * std::size(allowed) + 60> code_{};
  unsigned short size_ = 0;
};

void enter_seccomp() {
  constexpr std::uint32_t all_bits = ~0U;
  const auto self = static_cast<std::uint32_t>(getpid());
  filter f;
  f.load(at_architecture);
  f.answer_unless(this_architecture, SECCOMP_RET_KILL_PROCESS);
  f.load(at_call);
  f.answer_from(first_x32_call, refused);
  for (std::uint32_t call : allowed) f.answer_if(call, SECCOMP_RET_ALLOW);
  f.allow_call_if(SYS_mmap, 2, PROT_EXEC, 0);
  f.allow_call_if(SYS_mprotect, 2, PROT_EXEC, 0);
  f.allow_call_if(SYS_clone, 0, thread_flags, thread_flags);
  f.allow_call_if(SYS_kill, 0, all_bits, self);  // abort() and its kind
  f.allow_call_if(SYS_tgkill, 0, all_bits, self);
  f.allow_call_if(SYS_prlimit64, 0, all_bits, 0);       // its own limits, which it can only lower
  f.answer_if(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);  // its flags cannot be seen; the C library uses clone then
  f.answer(refused);
  f.install();
}

bool knows_seccomp() {
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

}  // namespace

std::string sandbox_state::describe() const {
  std::string walls = seccomp ? "seccomp" : "";
  if (landlock) walls += fmt::format("{}Landlock {}", walls.empty() ? "" : " and ", landlock);
  if (walls.empty()) walls = "none";
  return missing.empty() ? walls : fmt::format("{} ({})", walls, missing);
}

sandbox_state available_sandbox() {
  if (switched_off) return {.missing = switched_off};
  sandbox_state state{.seccomp = knows_seccomp(), .landlock = landlock_version(), .missing = {}};
  if (!state.seccomp) state.missing = "this system has no seccomp filters: workers can make any system call";
  if (!state.landlock)
    state.missing +=
        fmt::format("{}this system has no Landlock: workers can open files", state.missing.empty() ? "" : "; ");
  return state;
}

void enter_sandbox() {
  if (switched_off) return;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  enter_landlock();
  enter_seccomp();
}

void enter_folder_sandbox(const char* folder) {
  const int version = switched_off ? 0 : landlock_version();
  if (version == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  landlock_rules rules = all_rules(version);
  rules.files &= ~reading;
  const int set = make_rule_set(version, rules);
  if (set < 0) return;
  allow_path(set, folder, rules.files);
  allow_path(set, "/dev/null", rules.files & writing_a_file);
  enter_rule_set(set);
}

}  // namespace kiln

#include "runtime/thread_pool.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <fstream>

#include "ir/error.hpp"

namespace kiln {
namespace {

constexpr std::uint32_t open_bit = 1u << 31, caller_sleeps_bit = 1u << 30, inside_mask = caller_sleeps_bit - 1;
// How long a member spins for work before it sleeps: longer than the gap between two kernels, but short enough not to
// waste CPU time.
constexpr std::chrono::microseconds spin_time{50};
// The same while stay_awake is active: longer than most single-threaded steps, but short enough not to block other
// processes.
constexpr std::chrono::microseconds awake_time{2000};
// Chunks per slice: few enough that the calls cost nothing, and enough that others can take over most of a late
// member's slice.
constexpr std::int64_t chunks_per_slice = 4;

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the futex word is the atomic itself");

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `done()` is true and returns true; returns false after spin_time.
template <class Done>
bool spin_until(Done done) {
  auto deadline = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return done();
}

}  // namespace

namespace {

// Binds `thread` to processor number `place` of those that this process may use.
void pin(std::thread& thread, unsigned place) {
  cpu_set_t mask, one;
  CPU_ZERO(&one);
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (unsigned cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mask) && seen++ == place) CPU_SET(cpu, &one);
  }
  if (CPU_COUNT(&one) == 0 || ::pthread_setaffinity_np(thread.native_handle(), sizeof one, &one) != 0)
    throw error(error_kind::unsupported,
                "thread " + std::to_string(place + 1) +
                    " cannot have a processor of its own: use fewer threads, or do not pin them");
}

}  // namespace

unsigned usable_processors() {
  cpu_set_t mask;
  unsigned count = std::max(1u, std::thread::hardware_concurrency());
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) count = static_cast<unsigned>(std::max(1, CPU_COUNT(&mask)));
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");  // "max 100000" or "200000 100000"
  double quota = 0, period = 0;
  if (quota_file >> quota >> period && quota > 0 && period > 0)
    count = std::min(count, std::max(1u, static_cast<unsigned>(quota / period + 0.5)));
  return count;
}

thread_pool::thread_pool(unsigned threads, bool pinned)
    : members_(threads ? threads : usable_processors()), slices_(new slice[members_]) {
  threads_.reserve(members_ - 1);
  try {
    for (unsigned i = 1; i < members_; ++i) {
      threads_.emplace_back([this, i] { worker(i); });
      if (pinned) pin(threads_.back(), i);
    }
  } catch (...) {  // no thread is available: end those that started
    stop();
    throw;
  }
}

thread_pool::~thread_pool() { stop(); }

void thread_pool::stop() noexcept {
  stop_.store(true, std::memory_order_seq_cst);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(epoch_, INT_MAX);
  for (std::thread& t : threads_) t.join();
}

void thread_pool::run(std::int64_t grid, range_function f, void* context) noexcept {
  if (grid <= 0) return;
  if (grid == 1 || members_ == 1 || taken_.exchange(true, std::memory_order_acquire)) return f(context, 0, grid);
  job_ = {f, context};
  std::int64_t base = grid / members_, rest = grid % members_, begin = 0;
  for (unsigned i = 0; i < members_; ++i) {
    std::int64_t size = base + (i < rest);
    slices_[i].end = begin + size;
    slices_[i].chunk = std::max<std::int64_t>(1, (size + chunks_per_slice - 1) / chunks_per_slice);
    slices_[i].next.store(begin, std::memory_order_relaxed);
    begin += size;
  }
  gate_.store(open_bit, std::memory_order_release);
  // seq_cst on both sides: either we see the sleeper, or the sleeper sees the new epoch.
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst)) futex_wake(epoch_, INT_MAX);
  work(0);
  wait_until_empty();
  taken_.store(false, std::memory_order_release);
}

void thread_pool::work(unsigned member) noexcept {
  job mine = job_;
  for (unsigned i = 0; i < members_; ++i) {
    slice& s = slices_[member + i < members_ ? member + i : member + i - members_];
    while (s.next.load(std::memory_order_relaxed) < s.end) {
      std::int64_t begin = s.next.fetch_add(s.chunk, std::memory_order_relaxed);
      if (begin >= s.end) break;
      mine.f(mine.context, begin, std::min(begin + s.chunk, s.end));
    }
  }
}

bool thread_pool::enter() noexcept {
  std::uint32_t gate = gate_.load(std::memory_order_relaxed);
  while (gate & open_bit)
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  return false;
}

void thread_pool::leave() noexcept {
  std::uint32_t before = gate_.fetch_sub(1, std::memory_order_release);
  if ((before & caller_sleeps_bit) && (before & inside_mask) == 1) futex_wake(gate_, 1);
}

// Closes the gate, so that a worker that wakes late does not enter, and waits for the workers inside.
void thread_pool::wait_until_empty() noexcept {
  gate_.fetch_and(~open_bit, std::memory_order_acq_rel);
  auto empty = [this] { return (gate_.load(std::memory_order_acquire) & inside_mask) == 0; };
  if (!spin_until(empty)) {
    std::uint32_t gate = gate_.fetch_or(caller_sleeps_bit, std::memory_order_acq_rel) | caller_sleeps_bit;
    while (gate & inside_mask) {
      futex_wait(gate_, gate);
      gate = gate_.load(std::memory_order_acquire);
    }
  }
  gate_.store(0, std::memory_order_relaxed);
}

bool thread_pool::wait_for_job(std::uint32_t seen) noexcept {
  auto changed = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
  for (auto spun = std::chrono::microseconds(0); spun < awake_time; spun += spin_time) {
    if (spin_until(changed)) return true;
    if (awake_.load(std::memory_order_relaxed) == 0) return false;
  }
  return false;
}

void thread_pool::worker(unsigned member) noexcept {
  std::uint32_t seen = 0;
  for (;;) {
    if (!wait_for_job(seen)) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      while (epoch_.load(std::memory_order_seq_cst) == seen) futex_wait(epoch_, seen);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    if (enter()) {
      work(member);
      leave();
    }
  }
}

}  // namespace kiln

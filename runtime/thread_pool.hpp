// A persistent thread pool that runs grids: the caller and size() - 1 workers. A grid is cut into one slice per member.
// The same member gets the same slice on every run, so its cache stays warm. A member takes chunks of its own slice
// first and then of the others' slices, so uneven chunks and members that wake late cost little. A run does not
// allocate.
//
// Idle members spin for a while and then sleep. While grids follow one another (stay_awake), a step that only one
// member works on does not put the others to sleep. Any thread may call run(), also concurrently and from inside a run:
// one caller gets the pool, the others execute their whole grid themselves. Nothing throws after construction, and the
// grid function must not throw.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace kiln {

// The number of processors that this process may use (affinity mask and cgroup quota), at least 1.
unsigned usable_processors();

class thread_pool {
 public:
  using range_function = void (*)(void* context, std::int64_t begin, std::int64_t end);

  // `threads` includes the caller; 0 means usable_processors(). If pinned, each worker is bound to one of the
  // processors that this process may use, starting with the second; the caller's thread is not bound. Throws
  // error{unsupported} for a pinned pool with more threads than processors.
  explicit thread_pool(unsigned threads = 0, bool pinned = false);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  unsigned size() const { return members_; }

  // Adds (1) or removes (-1) a caller whose grids follow one another. While there are any, workers stay awake between
  // grids, but not for longer than a few milliseconds.
  void stay_awake(int more) noexcept { awake_.fetch_add(more, std::memory_order_relaxed); }

  // Calls f(context, begin, end) for disjoint ranges that cover [0, grid), and returns when all calls have returned. A
  // grid of one item runs on the calling thread.
  void run(std::int64_t grid, range_function f, void* context) noexcept;

  template <class F>
  void run(std::int64_t grid, F&& f) noexcept {
    run(
        grid,
        [](void* context, std::int64_t begin, std::int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(context))(begin, end);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  // One member's part of the grid: its next unclaimed item, on a cache line of its own.
  struct alignas(64) slice {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0, chunk = 1;
  };
  struct job {
    range_function f = nullptr;
    void* context = nullptr;
  };

  void work(unsigned member) noexcept;    // takes chunks until the grid is exhausted
  void worker(unsigned member) noexcept;  // main function of a worker thread
  bool enter() noexcept;                  // joins the current job; false if there is none
  void leave() noexcept;
  void wait_until_empty() noexcept;
  bool wait_for_job(std::uint32_t seen) noexcept;  // spins; false when it is time to sleep
  void stop() noexcept;

  const unsigned members_;
  std::unique_ptr<slice[]> slices_;
  job job_;                         // written while the gate is closed and no worker is inside
  std::atomic<bool> taken_{false};  // whether a caller owns the pool
  std::atomic<bool> stop_{false};
  std::atomic<int> awake_{0};                        // number of callers of stay_awake
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // counts jobs; workers sleep on it
  std::atomic<std::uint32_t> sleepers_{0};
  alignas(64) std::atomic<std::uint32_t> gate_{0};  // open bit | caller-sleeps bit | workers inside
  std::vector<std::thread> threads_;
};

}  // namespace kiln

// A persistent team of threads that runs grids: the caller and size() - 1 workers. A grid is cut into one slice per
// member (the same member gets the same slice on every run, so its cache stays warm); a member takes chunks of its own
// slice and then helps the others, so uneven chunks and members that wake late cost little. A run allocates nothing.
// Members without work spin for a while and then sleep; while grids follow each other (stay_awake), they are not sent
// to sleep by a step that only one of them works on. Any thread may call run(), also at the same time and from inside a
// run: one caller gets the team, the others do their whole grid themselves. Never throws after construction; the
// function must not throw either.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace kiln {

// The processors that this process may use (affinity mask and cgroup quota), at least 1.
unsigned usable_processors();

class thread_team {
 public:
  using range_function = void (*)(void* context, std::int64_t begin, std::int64_t end);

  // `threads` includes the caller; 0 means usable_processors(). Pinned workers have a processor each, of those that
  // this process may use, from the second one on; the caller's thread stays as it is. Throws error{unsupported} for a
  // pinned team of more threads than processors.
  explicit thread_team(unsigned threads = 0, bool pinned = false);
  ~thread_team();
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  unsigned size() const { return members_; }

  // One more (or, with -1, one less) caller whose grids follow each other: while there are any, workers stay awake
  // between grids, though not for longer than a few milliseconds.
  void stay_awake(int more) noexcept { awake_.fetch_add(more, std::memory_order_relaxed); }

  // Calls f(context, begin, end) for disjoint ranges that cover [0, grid), and returns when all are done. A grid of one
  // item runs on the calling thread.
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
  // One member's part of the grid: the next item nobody has taken, on a cache line of its own.
  struct alignas(64) slice {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0, chunk = 1;
  };
  struct job {
    range_function f = nullptr;
    void* context = nullptr;
  };

  void work(unsigned member) noexcept;    // takes chunks until the grid is empty
  void worker(unsigned member) noexcept;  // a worker thread's life
  bool enter() noexcept;                  // joins the open job; false when there is none
  void leave() noexcept;
  void wait_until_empty() noexcept;
  bool wait_for_job(std::uint32_t seen) noexcept;  // spinning; false when it is time to sleep
  void stop() noexcept;

  const unsigned members_;
  std::unique_ptr<slice[]> slices_;
  job job_;                         // written while the gate is shut and nobody is inside
  std::atomic<bool> taken_{false};  // a caller has the team
  std::atomic<bool> stop_{false};
  std::atomic<int> awake_{0};                        // callers of stay_awake
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // counts jobs; workers sleep on it
  std::atomic<std::uint32_t> sleepers_{0};
  alignas(64) std::atomic<std::uint32_t> gate_{0};  // open bit | caller-sleeps bit | workers inside
  std::vector<std::thread> threads_;
};

}  // namespace kiln

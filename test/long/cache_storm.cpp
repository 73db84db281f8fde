// Writers and readers of one cache folder, of which one after the other is killed with -9 at a random moment and
// replaced:
//
//   cache_storm [--kills N] [--writers N] [--readers N] [--seed N]
//
// Every key is stored with one of two payloads (two writers may disagree), entries are evicted all the while, and
// packed weights are mapped. Whatever is found must be one of the two, whole. Afterwards no entry is damaged, and no
// temporary or lock file is left once they are old enough to be swept. Prints counts; exit code 1 where anything was
// wrong.
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "jit/cache/maintenance.hpp"
#include "test/jit/cache/fixtures.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

constexpr int keys = 24;

// In memory that all processes share.
struct tally {
  std::atomic<std::uint64_t> finds, hits, stores, mapped, waits, wrong, damaged;
  std::atomic<bool> stop;
};

std::vector<std::byte> payload_of(int n, int variant) {
  return payload_number(n + 1000 * variant, 600 + 900 * static_cast<std::size_t>(n % 3));
}

template <class Bytes>
void check(tally& t, const Bytes& found, int n) {
  ++t.hits;
  bool right = std::ranges::equal(found, payload_of(n, 0)) || std::ranges::equal(found, payload_of(n, 1));
  if (!right) ++t.wrong;
}

void work(tally& t, const std::filesystem::path& folder, bool writes, unsigned seed) {
  std::mt19937 random(seed);
  cache_options options{.warn = [](const std::string&) {}};
  (writes ? options.folder = folder : options.read_only_layers.emplace_back(folder));
  options.max_bytes = 24'000;
  auto cache = kernel_cache::open(options);
  while (!t.stop) {
    int n = static_cast<int>(random() % keys);
    ++t.finds;
    if (auto found = cache->find(key_number(n))) {
      check(t, *found, n);
    } else if (writes) {
      work_claim claim = cache->claim(key_number(n));
      for (int turn = 0; claim.busy() && turn < 20; ++turn, ++t.waits) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        claim = cache->claim(key_number(n));
      }
      if (auto made = cache->find_made(key_number(n))) check(t, *made, n);
      else cache->store(key_number(n), payload_of(n, static_cast<int>(random() % 2))), ++t.stores;
    }
    if (random() % 4 != 0) continue;
    n %= 4;
    if (auto found = cache->find_mapped(key_number(n))) check(t, found->bytes, n), ++t.mapped;
    else if (writes) cache->store_raw(key_number(n), payload_of(n, 0));
  }
  t.damaged += cache->counters().repaired + cache->counters().errors;
}

std::size_t count_leftovers(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder)) {
    std::string name = e.path().filename().string();
    count += name.starts_with(temporary_prefix) || name.starts_with(lock_prefix);
  }
  return count;
}

int number_after(int argc, char** argv, const char* name, int otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return std::atoi(argv[i + 1]);
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const int kills = number_after(argc, argv, "--kills", 30), writers = number_after(argc, argv, "--writers", 8),
            readers = number_after(argc, argv, "--readers", 8);
  std::mt19937 random(static_cast<unsigned>(number_after(argc, argv, "--seed", 1)));
  scratch_folder scratch;
  const auto folder = scratch / "c";
  kernel_cache::open({folder});
  auto* t = new (::mmap(nullptr, sizeof(tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) tally{};

  auto start = [&](int i) {
    unsigned seed = random();
    pid_t child = ::fork();
    if (child == 0) {
      work(*t, folder, i < writers, seed);
      ::_exit(0);
    }
    return child;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < writers + readers; ++i) children.push_back(start(i));
  int killed = 0, failed = 0;
  auto reap = [&](pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ++killed;
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
  };
  for (int k = 0; k < kills; ++k) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    std::size_t i = random() % children.size();
    ::kill(children[i], SIGKILL);
    reap(children[i]);
    children[i] = start(static_cast<int>(i));
  }
  t->stop = true;
  for (pid_t child : children) reap(child);

  std::size_t left = count_leftovers(folder);
  auto verified = verify_cache(folder, false);
  for (const auto& e : std::filesystem::directory_iterator(folder))
    std::filesystem::last_write_time(e.path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  kernel_cache::open({folder});
  std::size_t swept = left - count_leftovers(folder);
  std::printf(
      "%d of %d + %d processes killed, %d ended badly; %lu finds, %lu hits (%lu mapped), %lu stores, %lu waits; %lu "
      "wrong, %lu damaged or failing; %lu entries at the end, %zu damaged; %zu temporaries and locks left, %zu swept\n",
      killed, writers, readers, failed, static_cast<unsigned long>(t->finds), static_cast<unsigned long>(t->hits),
      static_cast<unsigned long>(t->mapped), static_cast<unsigned long>(t->stores),
      static_cast<unsigned long>(t->waits), static_cast<unsigned long>(t->wrong),
      static_cast<unsigned long>(t->damaged), static_cast<unsigned long>(verified.checked), verified.damaged.size(),
      left, swept);
  bool good = killed == kills && failed == 0 && t->wrong == 0 && t->damaged == 0 && verified.damaged.empty() &&
              swept == left && t->hits > 0 && t->stores > 0 && t->mapped > 0;
  return good ? 0 : 1;
}

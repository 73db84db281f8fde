// The remote layer as the cache uses it, on top of a map in memory.
#include <gmock/gmock.h>

#include "fixtures.hpp"
#include "ir/error.hpp"

using namespace kiln;
using namespace kiln::testing;
using ::testing::HasSubstr;

namespace {

std::string name_of(int n) { return entry_file_name(key_number(n).hash(), entry_kind::kernel); }

}  // namespace

TEST(remote_layer, serves_other_machines_and_fills_their_folders) {
  scratch_folder scratch;
  auto shared = std::make_shared<memory_layer>();
  auto first = kernel_cache::open({.folder = scratch / "first", .remote = shared, .consent = {.allow_unsigned = true}});
  first->store(key_number(1), payload_number(1));
  ASSERT_TRUE(shared->entries.contains(name_of(1)));
  EXPECT_EQ(shared->entries[name_of(1)], read_bytes(scratch / "first" / name_of(1))) << "byte for byte";
  auto second =
      kernel_cache::open({.folder = scratch / "second", .remote = shared, .consent = {.allow_unsigned = true}});
  EXPECT_EQ(second->find(key_number(1)), payload_number(1));
  EXPECT_EQ(second->counters().remote_hits, 1u);
  EXPECT_EQ(read_bytes(scratch / "second" / name_of(1)), shared->entries[name_of(1)]);
  int asked = shared->gets;
  EXPECT_EQ(second->find(key_number(1)), payload_number(1)) << "from the folder now";
  EXPECT_EQ(shared->gets, asked);
  EXPECT_EQ(second->counters().hits, 2u);
  auto without_folder = kernel_cache::open({.remote = shared, .consent = {.allow_unsigned = true}});
  EXPECT_EQ(without_folder->find(key_number(1)), payload_number(1));
  without_folder->store(key_number(2), payload_number(2));
  EXPECT_TRUE(shared->entries.contains(name_of(2)));
  second->store_raw(key_number(3), payload_number(3));
  EXPECT_EQ(shared->entries.size(), 2u) << "packed weights stay on their machine";
}

TEST(remote_layer, damage_is_a_miss_and_replaced) {
  scratch_folder scratch;
  auto shared = std::make_shared<memory_layer>();
  auto entry = encode_kernel_entry(key_number(1).fields(), payload_number(1, 40));
  warnings said;
  for (std::size_t bit = 0; bit < entry.size() * 8; bit += 13) {
    auto damaged = entry;
    damaged[bit / 8] ^= std::byte(1u << (bit % 8));
    shared->entries[name_of(1)] = damaged;
    auto cache = kernel_cache::open(
        {.folder = scratch / "c", .warn = said.sink(), .remote = shared, .consent = {.allow_unsigned = true}});
    ASSERT_FALSE(cache->find(key_number(1))) << bit;
    ASSERT_TRUE(std::filesystem::is_empty(scratch / "c")) << "nothing damaged is kept";
    cache->store(key_number(1), payload_number(1, 40));
    ASSERT_EQ(shared->entries[name_of(1)], entry);
    std::filesystem::remove(scratch / "c" / name_of(1));
    said.lines.resize(1);
  }
  shared->entries[name_of(1)] = encode_kernel_entry(key_number(2).fields(), payload_number(2));
  EXPECT_FALSE(kernel_cache::open({.warn = said.sink(), .remote = shared, .consent = {.allow_unsigned = true}})
                   ->find(key_number(1)))
      << "a sound entry of another key";
  EXPECT_THAT(said.lines.back(), HasSubstr("memory://here"));
}

TEST(remote_layer, failures_are_misses_and_stop_the_asking_for_a_while) {
  scratch_folder scratch;
  auto shared = std::make_shared<memory_layer>();
  shared->down = true;
  warnings said;
  auto cache = kernel_cache::open(
      {.folder = scratch / "c", .warn = said.sink(), .remote = shared, .consent = {.allow_unsigned = true}});
  for (int n = 0; n < 10; ++n) {
    EXPECT_FALSE(cache->find(key_number(n)));
    cache->store(key_number(n), payload_number(n));
    EXPECT_EQ(cache->find(key_number(n)), payload_number(n));
  }
  EXPECT_EQ(shared->gets + shared->puts, remote_guard::failures_before_pause);
  ASSERT_EQ(said.lines.size(), 1u);
  EXPECT_THAT(said.lines[0], HasSubstr("no route to host"));
  EXPECT_EQ(cache->counters().errors, std::uint64_t{remote_guard::failures_before_pause});
}

TEST(remote_layer, asking_resumes_after_the_pause) {
  auto shared = std::make_shared<memory_layer>();
  remote_guard::clock::time_point now{};
  int failures = 0;
  remote_guard guard(shared, [&](const std::string&) { ++failures; }, [&] { return now; });
  auto ask = [&] { guard.get("x", [](const auto&) { return true; }); };
  shared->down = true;
  for (int n = 0; n < 5; ++n) ask();
  EXPECT_EQ(failures, 3);
  now += remote_guard::pause;
  ask();
  ask();
  EXPECT_EQ(failures, 4) << "one failure begins the next pause";
  now += remote_guard::pause;
  shared->down = false;
  EXPECT_TRUE(guard.put("x", {}));
  shared->down = true;
  ask();
  ask();
  EXPECT_EQ(failures, 6) << "counted from zero again";
}

// A server that answers slowly, or with unusable entries, may cost a run at most two seconds in half a minute.
TEST(remote_layer, a_server_that_wastes_time_is_left_alone) {
  using namespace std::chrono_literals;
  remote_guard::clock::time_point now{};
  struct slow_layer final : remote_layer {
    explicit slow_layer(remote_guard::clock::time_point& now) : now(now) {}
    std::string name() const override { return "slow://"; }
    std::optional<std::vector<std::byte>> get(const std::string&) override {
      now += time;
      return entry;
    }
    void put(const std::string&, std::span<const std::byte>) override { now += time; }
    remote_guard::clock::time_point& now;
    remote_guard::clock::duration time = 900ms;
    std::optional<std::vector<std::byte>> entry;
  };
  auto layer = std::make_shared<slow_layer>(now);
  bool useful = false;
  auto seconds_of = [&](int calls, bool puts) {
    std::vector<std::string> said;
    now += 10 * remote_guard::pause;
    remote_guard guard(layer, [&](const std::string& why) { said.push_back(why); }, [&] { return now; });
    auto begin = now;
    for (int n = 0; n < calls; ++n)
      if (puts) guard.put("x", {});
      else guard.get("x", [&](const auto&) { return useful; });
    const double seconds = std::chrono::duration<double>(now - begin).count();
    EXPECT_EQ(said.size(), seconds < 0.9 * calls - 0.1 ? 1u : 0u);
    return seconds;
  };
  EXPECT_LT(seconds_of(20, false), 3) << "misses";
  EXPECT_LT(seconds_of(20, true), 3) << "stores";
  layer->entry.emplace(std::size_t{20} << 20);
  EXPECT_LT(seconds_of(20, false), 3) << "entries that cannot be used";
  useful = true;
  EXPECT_NEAR(seconds_of(20, false), 18, 0.1) << "large entries over a slow network are worth their time";
}

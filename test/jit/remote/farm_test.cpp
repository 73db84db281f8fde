// The queue's state transitions one by one, and workers with jobs that are lost, fail, crash, give different results or
// are repeated.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <set>

#include "jit/remote/blob_store.hpp"
#include "jit/remote/farm_queue.hpp"
#include "jit/remote/farm_worker.hpp"
#include "jit/remote/job_folder.hpp"
#include "test/jit/remote/redis_server.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto lease = 300ms;
constexpr int max_lost = 3;

farm_job job_for(std::string_view input, std::vector<std::string> options = {}) {
  return {farm_kind::compile,
          {{"model.onnx", blake3(input), input.size(), ""}},
          std::move(options),
          "kiln test",
          "a label"};
}

TEST(farm_job, identity_is_what_the_result_depends_on) {
  farm_job a = job_for("bytes");
  auto differs = [&](auto change) {
    farm_job b = a;
    change(b);
    EXPECT_EQ(read_job(write_job(b)), b);
    return b.id() != a.id();
  };
  EXPECT_TRUE(differs([](farm_job& j) { j.kind = farm_kind::warm; }));
  EXPECT_TRUE(differs([](farm_job& j) { j.version = "other"; }));
  EXPECT_TRUE(differs([](farm_job& j) { j.options = {"--fp16"}; }));
  EXPECT_TRUE(differs([](farm_job& j) { j.inputs[0].hash = blake3(std::string_view("others")); }));
  EXPECT_TRUE(differs([](farm_job& j) { j.inputs.push_back({"weights", blake3(std::string_view("w")), 1, ""}); }));
  EXPECT_FALSE(differs([](farm_job& j) { j.label = "another"; }));
  EXPECT_FALSE(differs([](farm_job& j) { j.inputs[0].path = "/elsewhere"; }));
}

TEST(farm_job, what_is_no_job_is_refused) {
  std::string good = write_job(job_for("bytes"));
  for (const char* bad : {"", "{}", "[]", "null"}) EXPECT_THROW(read_job(bad), error) << bad;
  for (const char* name : {"../x", "/etc/passwd", "a/../../b", "", "."}) {
    farm_job j = job_for("bytes");
    j.inputs[0].name = name;
    EXPECT_THROW(read_job(write_job(j)), error) << name;
  }
}

class farm : public testing::with_redis {
 protected:
  void SetUp() override {
    with_redis::SetUp();
    if (IsSkipped()) return;
    client.emplace(server->address(), redis_limits{.patience = 20s});
    queue.emplace(*client, "kiln test");
    blobs.emplace(*client, 1h);
  }
  std::string submit(const farm_job& j, bool revive = false) { return queue->submit(j, 1h, revive).before; }
  // Returns the result of take() within a second or two; the first call creates the group.
  std::optional<farm_lease> take(const std::string& worker) {
    for (int i = 0; i < 10; ++i)
      if (auto l = queue->take(worker, lease, max_lost, 50ms)) return l;
    return std::nullopt;
  }
  farm_record record(const farm_job& j) { return queue->records({j.id()}).front(); }

  farm_worker_options options() {
    farm_worker_options w;
    w.address = server->address();
    w.version = "kiln test";
    w.lease = lease;
    w.scratch = folder.path();
    w.drain = true;
    w.perform = [](const farm_job& j, const std::filesystem::path& at) {
      auto bytes = testing::read_bytes(at / "model.onnx");
      std::reverse(bytes.begin(), bytes.end());
      testing::write_bytes(at / "result", bytes);
      return at / "result";
    };
    return w;
  }
  farm_job submit_text(std::string_view text) {
    farm_job j = job_for(text);
    blobs->put(blake3(text), std::as_bytes(std::span(text)));
    submit(j);
    return j;
  }

  std::optional<redis_client> client;
  std::optional<farm_queue> queue;
  std::optional<blob_store> blobs;
  testing::scratch_folder folder;
};

TEST_F(farm, the_same_job_is_queued_and_done_once) {
  farm_job j = job_for("a");
  EXPECT_EQ(record(j).state, "unknown");
  EXPECT_EQ(submit(j), "new");
  EXPECT_EQ(submit(j), "queued");
  auto l = take("w");
  ASSERT_TRUE(l);
  EXPECT_EQ(read_job(l->spec), j);
  EXPECT_EQ(submit(j), "running");
  EXPECT_FALSE(queue->take("other", lease, max_lost, 1ms));
  content_hash result = blake3(std::string_view("result"));
  blobs->put(result, std::as_bytes(std::span(std::string_view("result"))));
  EXPECT_EQ(queue->finish(*l, result, 6, 1), "done");
  EXPECT_EQ(submit(j), "done");
  EXPECT_TRUE(queue->empty());
  EXPECT_EQ(record(j).result, result.hex());
  blobs->remove(result, 6);
  // Its result has been deleted, so it is queued again.
  EXPECT_EQ(submit(j), "done");
  EXPECT_EQ(record(j).state, "queued");
}

TEST_F(farm, a_lease_that_is_renewed_stays_and_one_that_is_not_goes) {
  farm_job j = job_for("a");
  submit(j);
  auto l = take("slow");
  ASSERT_TRUE(l);
  for (int i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(lease / 3);
    EXPECT_TRUE(queue->renew("slow", l->entry));
    EXPECT_FALSE(queue->take("fast", lease, max_lost, 1ms));
  }
  std::this_thread::sleep_for(lease + 100ms);
  auto again = take("fast");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->entry, l->entry);
  EXPECT_FALSE(queue->renew("slow", l->entry));
  EXPECT_EQ(record(j).lost, 1);
  EXPECT_EQ(record(j).worker, "fast");
  // The failure of the slow worker is ignored by now; its result is as good as the other's.
  EXPECT_EQ(queue->fail(*l, "slow", error_kind::compile_failed, "late", false, 3), "ignored");
  EXPECT_EQ(queue->finish(*l, blake3(std::string_view("r")), 1, 1), "done");
  EXPECT_EQ(queue->finish(*again, blake3(std::string_view("r")), 1, 1), "repeated");
  EXPECT_TRUE(queue->empty());
  EXPECT_TRUE(queue->status().flaky.empty());
}

TEST_F(farm, other_bytes_from_a_second_worker_are_reported) {
  farm_job j = job_for("a");
  submit(j);
  auto l = take("one");
  std::this_thread::sleep_for(lease + 50ms);
  auto again = take("two");
  ASSERT_TRUE(l && again);
  EXPECT_EQ(queue->finish(*l, blake3(std::string_view("r")), 1, 1), "done");
  EXPECT_EQ(queue->finish(*again, blake3(std::string_view("other")), 5, 1), "differs");
  auto flaky = queue->status().flaky;
  ASSERT_EQ(flaky.size(), 1u);
  EXPECT_EQ(flaky[0].result, blake3(std::string_view("r")).hex());
  EXPECT_EQ(flaky[0].differing, blake3(std::string_view("other")).hex());
}

TEST_F(farm, a_job_that_takes_its_workers_with_it_is_dead_in_the_end) {
  farm_job j = job_for("a");
  submit(j);
  for (int i = 0; i < max_lost; ++i) {
    ASSERT_TRUE(take("w" + std::to_string(i))) << i;
    std::this_thread::sleep_for(lease + 50ms);
  }
  EXPECT_FALSE(take("last"));
  EXPECT_EQ(record(j).state, "dead");
  EXPECT_TRUE(queue->empty());
  EXPECT_EQ(submit(j), "dead");
  EXPECT_EQ(record(j).state, "dead");
  EXPECT_EQ(submit(j, true), "dead");
  EXPECT_EQ(record(j).state, "queued");
  EXPECT_TRUE(take("brave"));
}

TEST_F(farm, failures_are_counted_to_the_end_unless_they_are_final) {
  farm_job j = job_for("a"), k = job_for("b");
  submit(j);
  submit(k);
  for (const char* outcome : {"retry", "retry", "dead"}) {
    auto l = take("w");
    ASSERT_TRUE(l);
    if (l->id == k.id()) {
      EXPECT_EQ(queue->fail(*l, "w", error_kind::invalid_model, "never", true, 3), "dead");
      l = take("w");
      ASSERT_TRUE(l);
    }
    EXPECT_EQ(queue->fail(*l, "w", error_kind::compile_failed, "boom", false, 3), outcome);
  }
  EXPECT_EQ(record(j).attempts, 3);
  EXPECT_EQ(record(k).attempts, 1);
  auto s = queue->status();
  EXPECT_EQ(s.dead.size(), 2u);
  EXPECT_EQ(s.waiting + s.running, 0);
  EXPECT_EQ(s.counts["failed"], 4);
}

TEST_F(farm, workers_share_the_jobs_and_store_what_they_make) {
  std::vector<farm_job> jobs;
  for (int i = 0; i < 40; ++i) jobs.push_back(submit_text("job " + std::to_string(i)));
  farm_worker_options w = options();
  w.jobs = 4;
  w.lease = 30s;  // on a busy machine a shorter one may end before its job is done, which is repeated then
  worker_totals t = run_farm_worker(w, {});
  EXPECT_EQ(t.done, 40u);
  EXPECT_EQ(t.failed + t.repeated, 0u);
  for (int i = 0; i < 40; ++i) {
    farm_record r = record(jobs[static_cast<std::size_t>(i)]);
    ASSERT_EQ(r.state, "done");
    blobs->fetch(content_hash::from_hex(r.result), r.result_bytes, folder / "out");
    auto bytes = testing::read_bytes(folder / "out");
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size()), want = "job " + std::to_string(i);
    std::reverse(want.begin(), want.end());
    EXPECT_EQ(text, want);
  }
  std::filesystem::remove(folder / "out");
  // No job's folder is left.
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  // No worker's name is left.
  EXPECT_TRUE(queue->status().workers.empty());
}

TEST_F(farm, flaky_poisoned_and_refused_jobs_are_told_apart) {
  farm_job flaky = submit_text("flaky"), poisoned = submit_text("poisoned"), refused = submit_text("refused"),
           big = submit_text("big"), good = submit_text("good"), gone = job_for("gone");
  submit(gone);
  std::atomic<int> tries = 0;
  farm_worker_options w = options();
  w.max_bytes = 100;
  w.perform = [&, plain = w.perform](const farm_job& j, const std::filesystem::path& at) {
    if (j.id() == flaky.id() && ++tries == 1)
      throw error(error_kind::compile_failed, "the compiler's process ended by signal 11");
    if (j.id() == poisoned.id()) throw std::runtime_error("always");
    if (j.id() == refused.id()) throw error(error_kind::unsupported, "operator Foo");
    if (j.id() == big.id()) testing::write_bytes(at / "model.onnx", std::vector<std::byte>(200));
    return plain(j, at);
  };
  run_farm_worker(w, {});
  EXPECT_EQ(record(good).state, "done");
  EXPECT_EQ(record(flaky).state, "done");
  EXPECT_EQ(record(flaky).attempts, 1);
  EXPECT_EQ(record(poisoned).attempts, 3);
  EXPECT_EQ(record(refused).attempts, 1);
  EXPECT_EQ(record(refused).error_kind, "unsupported");
  EXPECT_THAT(record(big).error, HasSubstr("--max-bytes"));
  EXPECT_EQ(record(gone).error_kind, "missing_file");
  std::set<std::string> dead;
  for (const farm_record& r : queue->status().dead) dead.insert(r.id);
  EXPECT_EQ(dead, (std::set<std::string>{poisoned.id(), refused.id(), big.id(), gone.id()}));
  ASSERT_EQ(queue->status().flaky.size(), 1u);
  EXPECT_EQ(queue->status().flaky[0].id, flaky.id());
  // A missing input can be supplied later; that does not require --retry.
  submit_text("gone");
  run_farm_worker(options(), {});
  EXPECT_EQ(record(gone).state, "done");
}

TEST_F(farm, a_long_job_keeps_its_lease) {
  farm_job j = submit_text("long");
  farm_worker_options w = options();
  w.jobs = 2;
  w.perform = [plain = w.perform](const farm_job& j, const std::filesystem::path& at) {
    std::this_thread::sleep_for(4 * lease);
    return plain(j, at);
  };
  worker_totals t = run_farm_worker(w, {});
  EXPECT_EQ(t.done, 1u);
  EXPECT_EQ(record(j).lost, 0);
}

TEST_F(farm, a_restarted_server_loses_nothing) {
  std::vector<farm_job> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(submit_text("job " + std::to_string(i)));
  farm_worker_options w = options();
  w.jobs = 2;
  w.perform = [plain = w.perform](const farm_job& j, const std::filesystem::path& at) {
    std::this_thread::sleep_for(50ms);
    return plain(j, at);
  };
  std::jthread restart([&] {
    std::this_thread::sleep_for(200ms);
    server->stop(SIGKILL);
    std::this_thread::sleep_for(300ms);
    server->start();
  });
  run_farm_worker(w, {});
  for (const farm_job& j : jobs) EXPECT_EQ(record(j).state, "done");
  EXPECT_EQ(queue->status().counts["done"], 20);
}

TEST_F(farm, stopping_finishes_what_is_in_hand) {
  for (int i = 0; i < 5; ++i) submit_text("job " + std::to_string(i));
  std::stop_source stop;
  farm_worker_options w = options();
  w.perform = [&, plain = w.perform](const farm_job& j, const std::filesystem::path& at) {
    stop.request_stop();
    return plain(j, at);
  };
  EXPECT_EQ(run_farm_worker(w, stop.get_token()).done, 1u);
  auto s = queue->status();
  EXPECT_EQ(s.waiting, 4);
  EXPECT_EQ(s.running, 0);
}

TEST_F(farm, versions_do_not_mix) {
  farm_job j = submit_text("a");
  farm_worker_options w = options();
  w.version = "another";
  EXPECT_EQ(run_farm_worker(w, {}).done, 0u);
  EXPECT_EQ(record(j).state, "queued");
  EXPECT_THAT(farm_versions(*client), ElementsAre("another", "kiln test"));
}

TEST(job_folder, of_dead_processes_are_swept) {
  testing::scratch_folder scratch;
  std::filesystem::path left;
  {
    job_folder live(scratch.path());
    std::string name = live.path().filename().string(), mine = "-" + std::to_string(::getpid()) + "-";
    pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    name.replace(name.find(mine), mine.size(), "-" + std::to_string(child) + "-");
    left = scratch / name;
    std::filesystem::create_directory(left);
    std::filesystem::create_directory(scratch / "kiln-farm-otherhost-1-abcdef");
    sweep_job_folders(scratch.path());
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_TRUE(std::filesystem::exists(live.path()));
    EXPECT_TRUE(std::filesystem::exists(scratch / "kiln-farm-otherhost-1-abcdef"));
  }
}

}  // namespace
}  // namespace kiln::test

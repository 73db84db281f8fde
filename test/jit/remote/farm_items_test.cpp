// Malicious queue items from anyone who can write to the server: each item is marked dead with its reason and skipped,
// and the job behind it is completed.
#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "jit/remote/blob_store.hpp"
#include "jit/remote/farm_queue.hpp"
#include "jit/remote/farm_worker.hpp"
#include "jit/remote/shared_file.hpp"
#include "test/jit/remote/lying_server.hpp"
#include "test/jit/remote/redis_server.hpp"
#include "test/support/patience.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using words = std::vector<std::string>;

constexpr std::string_view version = "kiln test", text = "the model";

farm_job good_job(std::vector<farm_input> more = {}) {
  farm_job job{
      farm_kind::compile, {{"model.onnx", blake3(text), text.size(), ""}}, {}, std::string(version), "a label"};
  job.inputs.insert(job.inputs.end(), more.begin(), more.end());
  return job;
}

class farm_items : public testing::with_redis {
 protected:
  void SetUp() override {
    with_redis::SetUp();
    if (IsSkipped()) return;
    client.emplace(server->address(), redis_limits{.patience = 20s});
    queue.emplace(*client, std::string(version));
    blobs.emplace(*client, 1h);
    prefix = "kiln:farm:" + blake3(version).hex().substr(0, 16) + ":";
    blobs->put(blake3(text), std::as_bytes(std::span(text)));
    command({"XGROUP", "CREATE", prefix + "jobs", "workers", "0", "MKSTREAM"});
  }
  redis_value command(const words& w) { return client->ask({w.begin(), w.end()}); }
  std::string append(const words& fields) {
    words w{"XADD", prefix + "jobs", "*"};
    w.insert(w.end(), fields.begin(), fields.end());
    return command(w).text;
  }
  // An entry and its record as `submit` would write them, with another spec.
  void item(const std::string& id, const std::string& spec, const words& more = {}) {
    words w{
        "HSET",  prefix + "job:" + id, "state", "queued", "label", "evil", "attempts", "0", "lost", "0", "keep", "1000",
        "entry", append({"job", id}),  "spec",  spec};
    w.insert(w.end(), more.begin(), more.end());
    command(w);
  }
  worker_totals work(std::function<void(farm_worker_options&)> change = {}) {
    farm_worker_options w;
    w.address = server->address();
    w.version = version;
    w.lease = 2s;
    w.max_failures = 1;
    w.scratch = folder.path();
    w.drain = true;
    w.perform = [](const farm_job&, const std::filesystem::path& at) { return at / "model.onnx"; };
    w.report = [this](const worker_event& e) { events.push_back(e); };
    if (change) change(w);
    return run_farm_worker(w, {});
  }
  farm_record record(const std::string& id) { return queue->records({id}).front(); }
  // Runs a worker on the items followed by one valid job, which must be completed. Returns the queue's reasons for the
  // dead items.
  std::multiset<std::string> reasons(std::function<void(farm_worker_options&)> change = {}, std::uint64_t done = 1) {
    item("good", write_job(good_job()));
    worker_totals totals = work(std::move(change));
    EXPECT_EQ(totals.done, done);
    EXPECT_EQ(record("good").state, "done");
    EXPECT_TRUE(queue->empty());
    std::multiset<std::string> result;
    for (const farm_record& r : queue->status().dead) result.insert(r.error);
    return result;
  }

  std::optional<redis_client> client;
  std::optional<farm_queue> queue;
  std::optional<blob_store> blobs;
  std::string prefix;
  std::vector<worker_event> events;
  testing::scratch_folder folder;
};

TEST_F(farm_items, entries_that_name_no_job) {
  const std::string binary("\xff\xfe\0\x1b", 4);
  append({"foo", "bar"});
  append({"job", ""});
  append({"job", binary});
  append({"job", "../../x"});
  append({"job", std::string(1000, 'a')});
  append({binary, binary});
  auto dead = reasons();
  EXPECT_EQ(dead.size(), 6u);
  for (const std::string& why : dead) EXPECT_THAT(why, HasSubstr("entry "));
  EXPECT_EQ(events.size(), 7u);
}

TEST_F(farm_items, entries_that_are_too_large_to_read) {
  append({"job", std::string(3 << 20, 'x')});
  words many;
  for (int i = 0; i < 5000; ++i) many.insert(many.end(), {"f" + std::to_string(i), "v"});
  append(many);
  for (const std::string& why : reasons()) EXPECT_THAT(why, HasSubstr("too large"));
  EXPECT_EQ(queue->status().dead.size(), 2u);
}

TEST_F(farm_items, records_that_are_none) {
  append({"job", "nowhere"});  // expired: not an error
  command({"SET", prefix + "job:text", "x"});
  append({"job", "text"});
  command({"LPUSH", prefix + "job:list", "x"});
  append({"job", "list"});
  command({"HSET", prefix + "job:stateless", "label", "x"});
  append({"job", "stateless"});
  command({"HSET", prefix + "job:unknown", "state", "melted", "entry", append({"job", "unknown"})});
  command({"HSET", prefix + "job:placeless", "state", "queued", "spec", "{}"});
  append({"job", "placeless"});
  command({"HSET", prefix + "job:specless", "state", "queued", "entry", append({"job", "specless"})});
  item("huge", std::string(largest_job_bytes + 1, ' '));
  auto dead = reasons();
  EXPECT_EQ(dead.size(), 7u);
  EXPECT_EQ(record("nowhere").state, "unknown");
  EXPECT_EQ(record("text").error, "its record in the queue is not a hash");
  EXPECT_THAT(record("specless").error, HasSubstr("no specification"));
  EXPECT_THAT(record("huge").error, HasSubstr("bytes"));
}

TEST_F(farm_items, specifications_that_are_no_jobs) {
  std::string good = write_job(good_job());
  auto with = [&](const std::string& from, const std::string& to) {
    std::string spec = good;
    auto at = spec.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return spec.replace(at, from.size(), to);
  };
  const words specs{"[",
                    "{}",
                    "null",
                    "\"text\"",
                    std::string(200'000, '['),
                    "\xff\xfe",
                    with("\"kind\":\"compile\"", "\"kind\":7"),
                    with("\"kind\":\"compile\"", "\"kind\":\"destroy\""),
                    with("\"options\":[]", "\"options\":{}"),
                    with("\"options\":[]", "\"options\":[1]"),
                    with("\"options\":[]", "\"options\":[\"" + std::string(longest_word + 1, 'x') + "\"]"),
                    with("\"bytes\":9", "\"bytes\":-1"),
                    with("\"bytes\":9", "\"bytes\":9.5"),
                    with("\"bytes\":9", "\"bytes\":1e300"),
                    with("\"bytes\":9", "\"bytes\":\"9\""),
                    with("\"hash\":\"", "\"hash\":\"zz"),
                    with("model.onnx", "../model.onnx"),
                    with("model.onnx", "a\\u0000b"),
                    with("model.onnx", "a\\u001b[2J"),
                    with("model.onnx", std::string(300, 'n')),
                    with("kiln test", "another version"),
                    with("a label", std::string(longest_word + 1, 'l')),
                    with("\"inputs\":[{", "\"inputs\":[],\"x\":[{")};
  for (std::size_t i = 0; i < specs.size(); ++i) item("bad" + std::to_string(i), specs[i]);
  item("empty", "");
  reasons();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    farm_record r = record("bad" + std::to_string(i));
    EXPECT_EQ(r.state, "dead") << specs[i].substr(0, 100);
    EXPECT_FALSE(r.error.empty());
    EXPECT_LT(r.error.size(), 1000u);
  }
  EXPECT_EQ(record("empty").state, "dead");
}

TEST_F(farm_items, two_inputs_of_one_name) {
  EXPECT_THROW(read_job(write_job(good_job({{"model.onnx", blake3(text), 1, ""}}))), error);
}

TEST_F(farm_items, blobs_that_lie) {
  auto lying = [&](const std::string& id, std::uint64_t bytes, std::string_view seed) {
    farm_job j = good_job();
    j.inputs[0].hash = blake3(seed);
    j.inputs[0].bytes = bytes;
    item(id, write_job(j));
    return blob_store::head_key(blake3(seed).hex());
  };
  std::string head = lying("chunks", 1, "a");
  command({"SET", head, "1000000000000"});
  command({"SET", head + ":0", "x"});
  head = lying("large", 10, "b");
  command({"SET", head, "1"});
  command({"SET", head + ":0", std::string(3 << 20, 'x')});
  head = lying("list", 10, "c");
  command({"RPUSH", head, "x"});
  head = lying("chunk-list", 10, "d");
  command({"SET", head, "1"});
  command({"RPUSH", head + ":0", "x"});
  lying("beyond", std::uint64_t{1} << 60, "e");
  head = lying("huge-head", 1, "f");
  command({"SET", head, std::string(3 << 20, '1')});
  auto begin = std::chrono::steady_clock::now();
  reasons();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::patient(5s));
  for (const char* id : {"chunks", "large", "list", "chunk-list", "huge-head"})
    EXPECT_EQ(record(id).error_kind, "corrupted") << id << record(id).error;
  EXPECT_THAT(record("beyond").error, HasSubstr("--max-bytes"));
}

// The bytes of a valid job's blob stay, even if another item states a different size.
TEST_F(farm_items, a_lie_about_a_blob_s_size_does_not_harm_the_blob) {
  for (std::uint64_t bytes : {text.size() + 1, text.size() - 1, std::size_t{0}, 3 * blob_store::chunk_bytes}) {
    farm_job j = good_job();
    j.inputs[0].bytes = bytes;
    item("lie" + std::to_string(bytes), write_job(j));
  }
  reasons();
  EXPECT_EQ(queue->status().dead.size(), 4u);
}

// The result's blob already exists, with a header that announces 10^11 bytes, or with another type.
TEST_F(farm_items, a_lying_blob_in_the_place_of_the_result) {
  const std::string head = blob_store::head_key(blake3(text).hex());
  for (const words& damage : {words{"SET", head, "100000000000"}, words{"SET", head, std::string(3 << 20, '1')}}) {
    command({"FLUSHALL"});
    command({"XGROUP", "CREATE", prefix + "jobs", "workers", "0", "MKSTREAM"});
    blobs->put(blake3(text), std::as_bytes(std::span(text)));
    item("good", write_job(good_job()));
    work([&](farm_worker_options& w) {
      w.perform = [&](const farm_job&, const std::filesystem::path& at) {
        redis_client(server->address(), {}).ask({damage.begin(), damage.end()});
        return at / "model.onnx";
      };
    });
    EXPECT_EQ(record("good").state, "done");
    EXPECT_TRUE(blobs->renew(blake3(text), text.size()));
  }
}

TEST_F(farm_items, keys_of_other_types_and_fields_that_are_no_numbers) {
  for (const char* key : {"running", "dead", "flaky", "counts"}) command({"SET", prefix + key, "x"});
  item("text", write_job(good_job()), {"attempts", "many", "lost", "inf", "keep", "-1"});
  item("failing", "{}", {"attempts", "9999999999999999999999", "keep", "never"});
  reasons({}, 2);
  EXPECT_EQ(record("text").state, "done");
  EXPECT_EQ(record("failing").state, "dead");
  EXPECT_EQ(queue->status().counts["done"], 2);
}

TEST_F(farm_items, a_queue_that_is_none_ends_a_draining_worker_only) {
  command({"DEL", prefix + "jobs"});
  command({"SET", prefix + "jobs", "x"});
  auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(work(), error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::patient(9s));
  std::stop_source stop;
  std::jthread repair([&] {
    std::this_thread::sleep_for(500ms);
    redis_client other(server->address(), {});
    std::string jobs = prefix + "jobs";
    other.call({"DEL", jobs});
    farm_queue(other, std::string(version)).submit(good_job(), 1h, false);
    for (int i = 0;
         i < 200 && farm_queue(other, std::string(version)).records({good_job().id()}).front().state != "done"; ++i)
      std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  farm_worker_options w;
  w.address = server->address();
  w.version = version;
  w.lease = 2s;
  w.scratch = folder.path();
  w.perform = [](const farm_job&, const std::filesystem::path& at) { return at / "model.onnx"; };
  EXPECT_EQ(run_farm_worker(w, stop.get_token()).done, 1u);
}

TEST_F(farm_items, jobs_that_the_check_refuses_are_dead_before_anything_is_fetched) {
  farm_job j = good_job();
  j.options = {"--dump-ir", "/tmp/x"};
  j.inputs[0].hash = blake3(std::string_view("nowhere"));
  item("evil", write_job(j));
  reasons([](farm_worker_options& w) {
    w.check = [](const farm_job& job) {
      if (!job.options.empty()) throw error(error_kind::unsupported, "does not travel");
    };
  });
  EXPECT_EQ(record("evil").error, "does not travel");
}

TEST_F(farm_items, a_result_that_is_a_link_is_none) {
  testing::write_bytes(folder / "secret", std::as_bytes(std::span(text)));
  item("link", write_job(good_job({{"extra", blake3(text), text.size(), ""}})));
  reasons([this](farm_worker_options& w) {
    w.perform = [this](const farm_job& j, const std::filesystem::path& at) {
      if (j.inputs.size() == 1) return at / "model.onnx";
      std::filesystem::create_symlink(folder / "secret", at / "result");
      return at / "result";
    };
  });
  EXPECT_EQ(record("link").state, "dead");
}

TEST_F(farm_items, what_people_read_is_bounded) {
  item("long", write_job(good_job()),
       {"state", "dead", "error", std::string(1 << 20, 'e'), "label", std::string(1 << 20, 'l')});
  command({"ZADD", prefix + "dead", "1", "long", "2", std::string(1 << 20, 'x'), "3", "a b"});
  command({"SADD", "kiln:farms", std::string(3 << 20, 'v'), "mine"});
  EXPECT_EQ(record("long").error.size(), 4096u);
  EXPECT_EQ(queue->status().dead.size(), 1u);
  EXPECT_EQ(farm_versions(*client), std::vector<std::string>{"mine"});
}

TEST(shared_file, is_read_below_a_root_only) {
  testing::scratch_folder scratch;
  std::filesystem::create_directories(scratch / "shared/deep");
  std::filesystem::create_directory(scratch / "shared2");
  testing::write_bytes(scratch / "shared/deep/file", std::as_bytes(std::span(text)));
  testing::write_bytes(scratch / "secret", std::as_bytes(std::span(text)));
  testing::write_bytes(scratch / "shared2/file", std::as_bytes(std::span(text)));
  std::filesystem::create_symlink(scratch / "secret", scratch / "shared/link");
  std::filesystem::create_symlink(scratch / "shared/deep/file", scratch / "shared/inner");
  std::filesystem::create_directory_symlink(scratch.path(), scratch / "shared/up");
  const std::vector<std::filesystem::path> roots{scratch / "none", scratch / "shared"};
  auto outcome = [&](const std::filesystem::path& path, std::string_view content,
                     const std::vector<std::filesystem::path>& roots) -> std::string {
    std::filesystem::remove(scratch / "to");
    try {
      link_shared_file({"in", blake3(content), content.size(), path.string()}, scratch / "to", roots, "w");
    } catch (const error& e) {
      EXPECT_EQ(std::string(e.what()).find(path.string()), std::string::npos);
      return e.kind() == error_kind::io ? "not read" : std::string(e.what());
    }
    return "linked";
  };
  EXPECT_EQ(outcome(scratch / "shared/deep/file", text, roots), "linked");
  EXPECT_EQ(outcome(scratch / "shared/inner", text, roots), "linked");
  EXPECT_THAT(outcome(scratch / "shared/deep/file", "other", roots), HasSubstr("not the file"));
  EXPECT_EQ(outcome(scratch / "shared/deep/file", text, {}), "not read");
  for (const char* path : {"secret", "shared/link", "shared/up/secret", "shared/../secret", "shared/deep/../../secret",
                           "shared2/file", "shared", "shared/none", "none", "shared/link/x"})
    EXPECT_EQ(outcome(scratch / path, text, roots), "not read") << path;
  EXPECT_EQ(outcome("/etc/passwd", text, roots), "not read");
  EXPECT_EQ(outcome("shared/deep/file", text, roots), "not read");
  EXPECT_EQ(outcome("/proc/self/environ", text, {"/"}), "the job's input 'in' is not the file that was submitted");
}

// A server that hands out a job and then sends bytes very slowly. A draining worker gives up in time with an error.
TEST(farm_server, lies_do_not_hold_a_draining_worker) {
  using peer = testing::lying_server::peer;
  testing::scratch_folder folder;
  auto worker = [&](const redis_address& address) {
    farm_worker_options w;
    w.address = address;
    w.version = version;
    w.lease = 1s;
    w.scratch = folder.path();
    w.drain = true;
    w.perform = [](const farm_job&, const std::filesystem::path& at) { return at / "model.onnx"; };
    auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(run_farm_worker(w, {}), error);
    return std::chrono::steady_clock::now() - begin;
  };
  auto bulk = [](const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; };
  // Malicious replies: a short XREADGROUP; an integer for every command; a list for every command; a job and then
  // silence.
  testing::lying_server short_entry(testing::after_greeting([](peer& p, const words& w) {
    return p.say(w[0] == "XAUTOCLAIM"   ? "*2\r\n$3\r\n0-0\r\n*0\r\n"
                 : w[0] == "XREADGROUP" ? "*1\r\n*1\r\n$1\r\na\r\n"
                 : w[0] == "XLEN"       ? ":1\r\n"
                                        : "+OK\r\n");
  }));
  testing::lying_server integers(testing::after_greeting([](peer& p, const words&) { return p.say(":5\r\n"); }));
  testing::lying_server silent_later(testing::after_greeting([&](peer& p, const words& w) {
    if (w[0] == "XAUTOCLAIM")
      return p.say("*2\r\n$3\r\n0-0\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$3\r\njob\r\n$1\r\na\r\n");
    if (w[0] == "EVAL") return p.say("*2\r\n$3\r\nrun\r\n" + bulk(write_job(good_job())));
    p.sleep(30s);
    return false;
  }));
  for (auto* s : {&short_entry, &integers, &silent_later}) EXPECT_LT(worker(s->address()), testing::patient(10s));
}

}  // namespace
}  // namespace kiln::test

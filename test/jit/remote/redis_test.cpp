// Addresses, the client, blobs and the cache's remote layer, with a real server that is stopped and restarted.
#include <gmock/gmock.h>

#include "ir/container/files.hpp"
#include "jit/remote/blob_store.hpp"
#include "jit/remote/redis_layer.hpp"
#include "test/jit/remote/redis_server.hpp"
#include "test/support/patience.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using clock = std::chrono::steady_clock;

error_kind kind_of(const auto& call) {
  try {
    call();
  } catch (const error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return error_kind::internal;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(redis_address, urls) {
  EXPECT_EQ(parse_redis_url("redis://host"), (redis_address{.host = "host"}));
  EXPECT_EQ(parse_redis_url("redis://host:1234/5"), (redis_address{.host = "host", .port = 1234, .database = 5}));
  EXPECT_EQ(parse_redis_url("redis://me:a%40b@[::1]:7/2"),
            (redis_address{.host = "::1", .port = 7, .database = 2, .user = "me", .password = "a@b"}));
  EXPECT_EQ(parse_redis_url("redis://:secret@host"), (redis_address{.host = "host", .password = "secret"}));
  EXPECT_EQ(parse_redis_url("unix:///run/redis.sock?database=3"),
            (redis_address{.socket = "/run/redis.sock", .database = 3}));
  EXPECT_EQ(parse_redis_url("redis://me:secret@host").str().find("secret"), std::string::npos);
  for (const char* bad : {"", "host", "http://host", "redis://", "redis://host:port", "redis://host:70000",
                          "redis://host/-1", "redis://host/x", "redis://host?ca-file=x", "rediss://",
                          "redis://a%4@host", "redis://[::1", "unix://relative", "redis://host?color=red"})
    EXPECT_EQ(kind_of([&] { parse_redis_url(bad); }), error_kind::usage) << bad;
  EXPECT_EQ(
      parse_redis_url("rediss://host:7?ca-file=%2Fa&cert-file=b&key-file=c"),
      (redis_address{.host = "host", .port = 7, .tls = true, .ca_file = "/a", .cert_file = "b", .key_file = "c"}));
  EXPECT_EQ(parse_redis_url("rediss://host/2").str(), "rediss://host:6379/2");
  EXPECT_EQ(kind_of([] { parse_redis_url("redis://host?password-file=/no/such/file"); }), error_kind::missing_file);
  testing::scratch_folder folder;
  testing::write_bytes(folder / "password", bytes_of("from the file\n"));
  EXPECT_EQ(parse_redis_url("redis://host?password-file=" + (folder / "password").string()).password, "from the file");
}

using redis = testing::with_redis;

TEST_F(redis, values_and_errors) {
  redis_client client(server->address(), {});
  std::string binary("a\0b\r\n", 5);
  EXPECT_EQ(client.call({"SET", "k", binary}).text, "OK");
  EXPECT_EQ(client.call({"GET", "k"}).text, binary);
  EXPECT_TRUE(client.call({"GET", "none"}).is_null());
  EXPECT_EQ(client.call({"INCR", "n"}).number, 1);
  EXPECT_EQ(client.call({"GET", "n"}).as_number(), 1);
  auto answers = client.call_all({{"RPUSH", "l", "x", "y"}, {"LRANGE", "l", "0", "-1"}});
  ASSERT_EQ(answers.size(), 2u);
  ASSERT_EQ(answers[1].items.size(), 2u);
  EXPECT_EQ(answers[1].items[1].text, "y");
  EXPECT_EQ(client.evaluate("return {KEYS[1], ARGV[1]}", {"key"}, {""}).items[1].text, "");
  EXPECT_EQ(kind_of([&] { client.call({"NONSENSE"}); }), error_kind::io);
  EXPECT_EQ(client.ask({"NONSENSE"}).kind, redis_value::type::error);
  // An error reply does not close the connection.
  EXPECT_EQ(client.call({"PING"}).text, "PONG");
}

TEST_F(redis, a_restart_is_noticed_once_it_lasts) {
  redis_client client(server->address(), {.connect = 200ms, .call = 1000ms});
  client.call({"SET", "k", "v"});
  server->stop(SIGKILL);
  auto begin = clock::now();
  EXPECT_EQ(kind_of([&] { client.call({"GET", "k"}); }), error_kind::unreachable);
  EXPECT_LT(clock::now() - begin, testing::patient(1s));
  server->start();
  // The append-only file has kept it.
  EXPECT_EQ(client.call({"GET", "k"}).text, "v");

  redis_client patient(server->address(), {.patience = 20s});
  patient.call({"PING"});
  server->stop(SIGTERM);
  std::jthread later([&] {
    std::this_thread::sleep_for(500ms);
    server->start();
  });
  EXPECT_EQ(patient.call({"GET", "k"}).text, "v");
}

TEST_F(redis, patience_ends_when_asked_to) {
  server->stop(SIGKILL);
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(200ms);
    stop.request_stop();
  });
  auto begin = clock::now();
  redis_client client(server->address(), {.patience = 1h, .stop = stop.get_token()});
  EXPECT_EQ(kind_of([&] { client.call({"PING"}); }), error_kind::unreachable);
  EXPECT_LT(clock::now() - begin, testing::patient(5s));
}

TEST(redis_password, is_needed_and_is_not_shown) {
  if (!testing::redis_server::installed()) GTEST_SKIP() << "skipped: no " << testing::redis_server::executable;
  testing::redis_server server({"--requirepass", "hush"});
  EXPECT_EQ(kind_of([&] { redis_client(server.address(), {}).call({"PING"}); }), error_kind::usage);
  redis_address address = server.address();
  address.password = "wrong";
  try {
    redis_client(address, {}).call({"PING"});
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::usage);
    EXPECT_EQ(std::string(e.what()).find("wrong"), std::string::npos) << e.what();
  }
  address.password = "hush";
  EXPECT_EQ(redis_client(address, {}).call({"PING"}).text, "PONG");
}

class blobs : public testing::with_redis {
 protected:
  void SetUp() override {
    with_redis::SetUp();
    if (IsSkipped()) return;
    client.emplace(server->address(), redis_limits{.call = testing::patient(10s)});
    store.emplace(*client, 1h);
  }
  std::optional<redis_client> client;
  std::optional<blob_store> store;
  testing::scratch_folder folder;
};

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(i * 31 + (i >> 13));
  return result;
}

TEST_F(blobs, come_back_whatever_their_size) {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, blob_store::chunk_bytes, 2 * blob_store::chunk_bytes + 7}) {
    auto data = pattern(bytes);
    content_hash hash = blake3(data);
    EXPECT_FALSE(store->renew(hash, data.size()));
    store->put(hash, data);
    EXPECT_TRUE(store->renew(hash, data.size()));
    store->fetch(hash, bytes, folder / "out");
    EXPECT_EQ(testing::read_bytes(folder / "out"), data);
    EXPECT_GT(client->call({"TTL", blob_store::head_key(hash.hex())}).number, 3000);
  }
}

TEST_F(blobs, what_is_incomplete_is_missing_and_is_stored_again) {
  auto data = pattern(blob_store::chunk_bytes + 5);
  content_hash hash = blake3(data);
  store->put(hash, data);
  std::string second = blob_store::head_key(hash.hex()) + ":1";
  client->call({"DEL", second});
  EXPECT_FALSE(store->renew(hash, data.size()));
  EXPECT_EQ(kind_of([&] { store->fetch(hash, data.size(), folder / "out"); }), error_kind::missing_file);
  store->put(hash, data);
  store->fetch(hash, data.size(), folder / "out");
  store->remove(hash, data.size());
  EXPECT_FALSE(store->renew(hash, data.size()));
  EXPECT_EQ(client->call({"DBSIZE"}).number, 0);
}

TEST_F(blobs, what_is_damaged_is_refused_and_removed) {
  auto data = pattern(1000);
  content_hash hash = blake3(data);
  std::string chunk = blob_store::head_key(hash.hex()) + ":0";
  for (const std::string& value : {std::string("short"), std::string(), std::string(1000, 'x')}) {
    store->put(hash, data);
    client->call({"SET", chunk, value});
    EXPECT_EQ(kind_of([&] { store->fetch(hash, data.size(), folder / "out"); }), error_kind::corrupted);
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    EXPECT_FALSE(store->renew(hash, data.size()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(redis, layer_keeps_entries) {
  auto layer = make_redis_layer(server->address());
  EXPECT_EQ(layer->get("one.kernel"), std::nullopt);
  auto entry = pattern(100000);
  layer->put("one.kernel", entry);
  EXPECT_EQ(layer->get("one.kernel"), entry);
  EXPECT_GT(redis_client(server->address(), {}).call({"TTL", "kiln:cache:one.kernel"}).number, 86400);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto mine = pattern(static_cast<std::size_t>(1000 + t));
      for (int i = 0; i < 50; ++i) {
        std::string name = std::to_string(t) + "-" + std::to_string(i);
        layer->put(name, mine);
        EXPECT_EQ(layer->get(name), mine);
      }
    });
}

TEST_F(redis, layer_without_a_server_costs_little_and_once) {
  auto layer = make_redis_layer(server->address());
  layer->get("x");
  server->stop(SIGKILL);
  auto begin = clock::now();
  EXPECT_EQ(kind_of([&] { layer->get("x"); }), error_kind::unreachable);
  EXPECT_LT(clock::now() - begin, testing::patient(1500ms));
  begin = clock::now();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(kind_of([&] { layer->put("x", bytes_of("v")); }), error_kind::unreachable);
  EXPECT_LT(clock::now() - begin, testing::patient(200ms));
}

TEST(redis_layer, a_server_that_hangs_is_left_alone) {
  // Listens but never accepts: the operating system completes connections for it.
  int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(s, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(s, 8), 0);
  ::getsockname(s, reinterpret_cast<sockaddr*>(&address), &size);
  auto layer = make_redis_layer({.host = "127.0.0.1", .port = ntohs(address.sin_port)});
  auto begin = clock::now();
  EXPECT_EQ(kind_of([&] { layer->get("x"); }), error_kind::unreachable);
  EXPECT_LT(clock::now() - begin, testing::patient(3s));
  begin = clock::now();
  EXPECT_EQ(kind_of([&] { layer->get("x"); }), error_kind::unreachable);
  EXPECT_LT(clock::now() - begin, testing::patient(100ms));
  ::close(s);
}

}  // namespace
}  // namespace kiln::test

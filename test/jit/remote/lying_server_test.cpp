// The client and the cache's remote layer against servers that send slowly, send too much or send invalid replies.
// Every call ends in time with an error and uses little memory.
#include <gmock/gmock.h>

#include "jit/remote/redis_client.hpp"
#include "jit/remote/redis_layer.hpp"
#include "test/jit/remote/lying_server.hpp"
#include "test/support/patience.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using testing::after_greeting;
using testing::lying_server;
using clock = std::chrono::steady_clock;
using peer = lying_server::peer;
using words = std::vector<std::string>;

// Returns the kind of the error that `call` throws, and how long that takes.
struct ending {
  std::optional<error_kind> kind;
  clock::duration time;
};
ending end_of(const auto& call) {
  auto begin = clock::now();
  try {
    call();
    return {std::nullopt, clock::now() - begin};
  } catch (const error& e) {
    return {e.kind(), clock::now() - begin};
  }
}

auto drip(std::string head, std::string part) {
  return after_greeting([=](peer& p, const words&) {
    for (bool open = p.say(head); open; open = p.say(part)) p.sleep(20ms);
    return false;
  });
}

TEST(lying_server, drips_and_silence_end_at_the_deadline) {
  const std::vector<std::function<void(peer&)>> servers{drip("$100000\r\n", "A"),
                                                        drip("*1000\r\n", ":1\r\n"),
                                                        drip("+", "A"),
                                                        drip("", ""),
                                                        drip("*8\r\n*8\r\n*8\r\n", ":1\r\n"),
                                                        [](peer& p) { p.sleep(5s); },
                                                        [](peer& p) {
                                                          // Sends the greeting slowly.
                                                          while (p.say("+")) p.sleep(20ms);
                                                        }};
  for (std::size_t i = 0; i < servers.size(); ++i) {
    lying_server server(servers[i]);
    redis_client client(server.address(), {.call = 300ms});
    ending e = end_of([&] { client.call({"GET", "k"}); });
    EXPECT_EQ(e.kind, error_kind::unreachable) << i;
    EXPECT_GT(e.time, 250ms) << i;
    EXPECT_LT(e.time, testing::patient(900ms)) << i;
  }
}

TEST(lying_server, a_client_that_is_connected_tries_again_within_the_same_deadline) {
  std::atomic<int> calls = 0;
  lying_server server(after_greeting([&](peer& p, const words&) {
    if (++calls == 1) return p.say("+OK\r\n");
    p.sleep(200ms);
    // Each connection is closed in the middle of a reply.
    return false;
  }));
  redis_client client(server.address(), {.call = 300ms});
  client.call({"PING"});
  ending e = end_of([&] { client.call({"GET", "k"}); });
  EXPECT_EQ(e.kind, error_kind::unreachable);
  EXPECT_LT(e.time, testing::patient(700ms));
}

TEST(lying_server, a_server_that_does_not_read_ends_at_the_deadline) {
  lying_server server([](peer& p) { p.sleep(5s); });
  const std::string large(64 << 20, 'x');
  redis_client client(server.address(), {.call = 300ms});
  ending e = end_of([&] { client.call({"SET", "k", large}); });
  EXPECT_EQ(e.kind, error_kind::unreachable);
  EXPECT_LT(e.time, testing::patient(1500ms));
}

TEST(lying_server, floods_and_lies_end_at_once) {
  auto flood = [](std::string head, std::string part) {
    return after_greeting([=](peer& p, const words&) {
      std::string block;
      while (block.size() < (1 << 18)) block += part;
      for (bool open = p.say(head); open;) open = p.say(block);
      return false;
    });
  };
  for (auto [head, part] :
       {std::pair{"$9000000000000\r\n", "A"},
        {"*100000000\r\n", ":1\r\n"},
        {"+", "A"},
        {"$1000\r\n", "A"},
        {"", "*1\r\n"},
        {"*16000\r\n", "$70\r\n0123456789012345678901234567890123456789012345678901234567890123456789\r\n"}}) {
    lying_server server(flood(head, part));
    redis_client client(server.address(), {.call = testing::patient(5s)});
    ending e = end_of([&] { client.call({"GET", "k"}); });
    EXPECT_EQ(e.kind, error_kind::corrupted) << head;
    EXPECT_LT(e.time, testing::patient(2s)) << head;
  }
}

TEST(lying_server, a_reply_beyond_its_bounds_is_told_apart_and_the_client_goes_on) {
  lying_server server(
      after_greeting([](peer& p, const words& w) { return p.say(w[0] == "GET" ? "$5\r\nhello\r\n" : "+OK\r\n"); }));
  redis_client client(server.address(), {});
  EXPECT_THROW(client.call({"GET", "k"}, {.bytes = 10}), oversized_reply);
  EXPECT_EQ(client.call({"GET", "k"}).text, "hello");
  EXPECT_EQ(server.connections(), 2);
}

// A second reply to one command would be taken for the reply to the next command.
TEST(lying_server, what_nobody_asked_for_is_never_an_answer) {
  std::atomic<bool> later = false;
  lying_server server(after_greeting([&](peer& p, const words& w) {
    if (w[0] == "PING" && later) {
      bool open = p.say("+PONG\r\n");
      p.sleep(50ms);
      return open && p.say("$6\r\npoison\r\n");
    }
    return p.say(w[0] == "PING" ? "+PONG\r\n$6\r\npoison\r\n" : "$4\r\nreal\r\n");
  }));
  redis_client client(server.address(), {});
  EXPECT_EQ(end_of([&] { client.call({"PING"}); }).kind, error_kind::corrupted);
  later = true;
  EXPECT_EQ(client.call({"PING"}).text, "PONG");
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(client.call({"GET", "k"}).text, "real");
}

TEST(lying_server, all_calls_together_have_an_end) {
  lying_server server(after_greeting([](peer& p, const words&) {
    p.sleep(100ms);
    return p.say("+OK\r\n");
  }));
  auto begin = clock::now();
  redis_client client(server.address(), {.end = begin + 500ms});
  EXPECT_THROW(for (int i = 0; i < 100; ++i) client.call({"PING"}), error);
  EXPECT_LT(clock::now() - begin, testing::patient(1500ms));
}

TEST(lying_server, a_request_to_stop_ends_the_wait) {
  lying_server server([](peer& p) { p.sleep(30s); });
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(100ms);
    stop.request_stop();
  });
  redis_client client(server.address(), {.call = 20s, .patience = 1h, .stop = stop.get_token()});
  ending e = end_of([&] { client.call({"PING"}); });
  EXPECT_EQ(e.kind, error_kind::unreachable);
  EXPECT_LT(e.time, testing::patient(5s));
}

TEST(lying_server, the_cache_layer_gives_up_within_a_second_and_then_asks_no_more) {
  auto endless = after_greeting([](peer& p, const words&) {
    std::string block(1 << 18, 'A');
    for (bool open = p.say("$60000000\r\n"); open; open = p.say(block)) p.sleep(20ms);
    return false;
  });
  for (auto& talk : {drip("$100000\r\n", "A"), std::function<void(peer&)>(endless),
                     after_greeting([](peer& p, const words&) { return p.say("$68000000000\r\n"); }),
                     after_greeting([](peer& p, const words&) { return p.say("*1\r\n"); })}) {
    lying_server server(talk);
    auto layer = make_redis_layer(server.address());
    ending first = end_of([&] { layer->get("x"); });
    EXPECT_TRUE(first.kind == error_kind::unreachable || first.kind == error_kind::corrupted);
    EXPECT_LT(first.time, testing::patient(1800ms));
    const int connections = server.connections();
    ending second = end_of([&] { layer->get("x"); });
    EXPECT_EQ(second.kind, error_kind::unreachable);
    EXPECT_LT(second.time, testing::patient(50ms));
    EXPECT_EQ(server.connections(), connections);
  }
}

TEST(lying_server, answers_of_the_wrong_type_are_no_entries) {
  for (const char* answer : {":5\r\n", "*0\r\n", "$-1\r\n"}) {
    lying_server server(after_greeting([=](peer& p, const words&) { return p.say(answer); }));
    EXPECT_EQ(make_redis_layer(server.address())->get("x"), std::nullopt) << answer;
  }
}

}  // namespace
}  // namespace kiln::test

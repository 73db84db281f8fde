// The cache layer on a web server: addresses, and servers that lie, drip, break off or never end.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/error.hpp"
#include "jit/remote/http_address.hpp"
#include "jit/remote/http_layer.hpp"
#include "test/jit/remote/lying_server.hpp"
#include "test/support/patience.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using kiln::testing::lying_server;
using peer = lying_server::peer;

std::string answer(std::string_view status, std::string_view body, std::string_view more = "") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(), more, body);
}

// Answers every request with `text`.
std::function<void(peer&)> always(std::string text) {
  return [text = std::move(text)](peer& p) {
    while (!p.request().empty() && p.say(text)) {}
  };
}

http_address address_of(const lying_server& server, bool writes = false) {
  return parse_http_url(fmt::format("{}://127.0.0.1:{}/kernels", writes ? "dav" : "http", server.port()));
}

struct failure {
  std::optional<error_kind> kind;
  std::string text;
  std::chrono::steady_clock::duration time;
};

template <class Act>
failure failure_of(Act act) {
  const auto begin = std::chrono::steady_clock::now();
  failure f;
  try {
    act();
  } catch (const error& e) {
    f.kind = e.kind();
    f.text = e.what();
  }
  f.time = std::chrono::steady_clock::now() - begin;
  return f;
}

std::string text_of(const std::optional<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "nothing";
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(http_address, has_four_schemes) {
  EXPECT_EQ(parse_http_url("https://cache.example:8443/a/b"),
            (http_address{.folder = "https://cache.example:8443/a/b/", .secure = true}));
  EXPECT_EQ(parse_http_url("davs://h/"), (http_address{.folder = "https://h/", .secure = true, .writes = true}));
  EXPECT_EQ(parse_http_url("dav://[::1]:80"), (http_address{.folder = "http://[::1]:80/", .writes = true}));
  EXPECT_EQ(parse_http_url("https://h/x?ca-file=/etc/ca.pem").ca_file, "/etc/ca.pem");
  EXPECT_EQ(parse_http_url("davs://h/x").str(), "davs://h/x/");
  EXPECT_TRUE(is_http_url("http://h"));
  EXPECT_FALSE(is_http_url("redis://h"));
}

TEST(http_address, refuses_what_it_cannot_mean_and_prints_no_password) {
  for (const char* url : {"https://", "https:///a", "https://:80/", "https://me:hush@h/", "https://h/a@b",
                          "https://h/a b", "https://h/?x=1", "https://h/a#b", "ftp://h/", "https://h/a\r\nX: y"}) {
    const failure f = failure_of([&] { parse_http_url(url); });
    EXPECT_EQ(f.kind, error_kind::usage) << url;
    EXPECT_EQ(f.text.find("hush"), std::string::npos) << f.text;
  }
}

TEST(http_layer, reads_what_a_server_has_over_one_connection) {
  lying_server server([](peer& p) {
    for (std::string head = p.request(); !head.empty(); head = p.request())
      p.say(head.starts_with("GET /kernels/here HTTP/1.1\r\n") ? answer("200 OK", "entry") : answer("404 No", "page"));
  });
  auto layer = make_http_layer(address_of(server));
  EXPECT_EQ(text_of(layer->get("here")), "entry");
  EXPECT_EQ(layer->get("absent"), std::nullopt);
  EXPECT_EQ(text_of(layer->get("here")), "entry");
  layer->put("new", bytes_of("x"));  // only reads: nothing is sent
  EXPECT_EQ(server.connections(), 1);
}

TEST(http_layer, makes_the_folder_that_a_put_misses) {
  std::vector<std::string> methods;
  lying_server server([&](peer& p) {
    for (std::string head = p.request(); !head.empty(); head = p.request()) {
      methods.push_back(head.substr(0, head.find(" HTTP")));
      if (head.starts_with("PUT")) p.body(5);
      p.say(answer(methods.size() == 1 ? "409 Conflict" : "201 Created", ""));
    }
  });
  make_http_layer(address_of(server, true))->put("new", bytes_of("12345"));
  EXPECT_EQ(methods, (std::vector<std::string>{"PUT /kernels/new", "MKCOL /kernels/", "PUT /kernels/new"}));
}

TEST(http_layer, refusals_are_errors_and_redirects_are_not_followed) {
  lying_server other(always(answer("200 OK", "stolen")));
  const std::string there = fmt::format("Location: http://127.0.0.1:{}/kernels/x\r\n", other.port());
  for (const std::string& text :
       {answer("403 Forbidden", ""), answer("401 Who", ""), answer("500 Oh", "no"), answer("204 Empty", ""),
        answer("206 Partial Content", "part"), answer("302 Found", "", there), answer("301 Moved", "", there)}) {
    lying_server server(always(text));
    auto layer = make_http_layer(address_of(server, true));
    EXPECT_EQ(failure_of([&] { layer->get("x"); }).kind, error_kind::io) << text;
  }
  EXPECT_EQ(other.connections(), 0);
}

// Each of these must end soon, and the layer then leaves the server alone.
TEST(http_layer, gives_up_in_time_on_servers_that_drip_break_off_or_never_end) {
  const std::string endless_body = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const auto repeat = [](std::string begin, std::string again, std::chrono::milliseconds pause) {
    return [=](peer& p) {
      p.request();
      for (bool open = p.say(begin); open; open = p.say(again)) p.sleep(pause);
    };
  };
  const std::string block(1 << 16, 'A');
  const std::vector<std::pair<const char*, std::function<void(peer&)>>> faults{
      {"silent", [](peer& p) { p.sleep(30s); }},
      {"one byte per half second",
       repeat(answer("200 OK", "").substr(0, 17) + "Content-Length: 1000\r\n\r\n", "A", 500ms)},
      {"endless body", repeat(endless_body, "10000\r\n" + block + "\r\n", 0ms)},
      {"endless header", repeat("HTTP/1.1 200 OK\r\n", "X: " + std::string(900, 'A') + "\r\n", 0ms)},
      {"endless page for 404", repeat("HTTP/1.1 404 No\r\n\r\n", block, 0ms)},
      {"endless 100 Continue", repeat("", "HTTP/1.1 100 Continue\r\n\r\n", 0ms)},
      {"announces 68 GB", repeat("HTTP/1.1 200 OK\r\nContent-Length: 68000000000\r\n\r\n", block, 0ms)},
      {"truncated", [](peer& p) { p.request(), p.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"); }},
      {"truncated chunks",
       [](peer& p) { p.request(), p.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"); }},
      {"closes at once", [](peer&) {}},
      {"no HTTP", always("$5\r\nhello\r\n")},
      {"HTTP 0.9", [](peer& p) { p.request(), p.say("kernel"); }},
  };
  for (const auto& [name, talk] : faults) {
    lying_server server(talk);
    auto layer = make_http_layer(address_of(server), {.connect = 400ms, .call = 800ms, .bytes = 1 << 20});
    const failure first = failure_of([&] { layer->get("x"); });
    EXPECT_TRUE(first.kind == error_kind::unreachable || first.kind == error_kind::corrupted) << name << first.text;
    EXPECT_LT(first.time, testing::patient(1600ms)) << name;
    const int connections = server.connections();
    const failure second = failure_of([&] { layer->get("x"); });
    EXPECT_EQ(second.kind, error_kind::unreachable) << name;
    EXPECT_LT(second.time, testing::patient(50ms)) << name;
    EXPECT_EQ(server.connections(), connections) << name;
  }
}

TEST(http_layer, sends_a_token_inside_tls_alone) {
  ::setenv("KILN_CACHE_HTTP_TOKEN", "hush", 1);
  std::string seen;
  lying_server server([&](peer& p) { seen = p.request(), p.say(answer("404 No", "")); });
  EXPECT_EQ(make_http_layer(address_of(server))->get("x"), std::nullopt);
  ::unsetenv("KILN_CACHE_HTTP_TOKEN");
  EXPECT_FALSE(seen.empty());
  EXPECT_EQ(seen.find("hush"), std::string::npos) << seen;
}

}  // namespace
}  // namespace kiln::test

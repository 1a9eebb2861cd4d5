// One question to servers that behave, misbehave and are not there.
#include "tasks/common/chat_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <thread>

#include "eval/core/error.h"
#include "eval/core/json.h"

namespace asdbench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKey = "sk-secret-0123456789";

std::string body_of(const Json& content) {
  return Json{
      {"model", "judge-1"},
      {"system_fingerprint", "fp"},
      {"choices",
       {{{"message", {{"role", "assistant"}, {"content", content}}}, {"finish_reason", "stop"}}}},
      {"usage", {{"prompt_tokens", 12}, {"completion_tokens", 3}}}}
      .dump(-1, ' ', true);
}

class ChatClientTest : public ::testing::Test {
 protected:
  ChatClientTest() {
    server_.Post("/v1/chat/completions",
                 [this](const httplib::Request& request, httplib::Response& response) {
                   request_ = request;
                   answer_(request, response);
                 });
    server_.Post("/elsewhere", [this](const httplib::Request&, httplib::Response&) { ++strayed_; });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~ChatClientTest() override {
    server_.stop();
    thread_.join();
  }
  ChatServer options(std::chrono::milliseconds timeout) const {
    return {.url = "http://127.0.0.1:" + std::to_string(port_) + "/v1",
            .model = "judge",
            .key = kKey,
            .max_tokens = 100,
            .seed = 7,
            .timeout = timeout};
  }
  ChatOutcome ask() {
    ChatClient client(options(timeout_));
    return client.ask({{Role::kSystem, "Be fair."}, {Role::kUser, "Rate \"this\"\n\xff."}});
  }
  ChatOutcome ask_for(int status, const std::string& body) {
    answer_ = [=](const httplib::Request&, httplib::Response& response) {
      response.status = status;
      response.set_content(body, "application/json");
    };
    return ask();
  }

  std::function<void(const httplib::Request&, httplib::Response&)> answer_;
  httplib::Request request_;
  std::atomic<int> strayed_{0};
  std::chrono::milliseconds timeout_ = std::chrono::seconds(20);
  int port_ = 0;

 private:
  httplib::Server server_;
  std::thread thread_;
};

TEST_F(ChatClientTest, SendsWhatIsAskedAndReadsTheMessage) {
  const ChatOutcome outcome = ask_for(200, body_of("Rating: [[7]] \u00e9"));
  ASSERT_EQ(outcome.fault, ChatFault::kNone) << outcome.error;
  EXPECT_EQ(outcome.reply.text, "Rating: [[7]] \u00e9");
  EXPECT_EQ(outcome.reply.version, "judge-1 fp");
  EXPECT_EQ(outcome.reply.finish, "stop");
  EXPECT_EQ(outcome.reply.prompt_tokens, 12);
  EXPECT_EQ(outcome.reply.reply_tokens, 3);
  const Json sent = parse_json(request_.body);
  EXPECT_EQ(sent["model"], "judge");
  EXPECT_EQ(sent["temperature"], 0);
  EXPECT_EQ(sent["max_tokens"], 100);
  EXPECT_EQ(sent["seed"], 7);
  EXPECT_EQ(sent["messages"][0]["role"], "system");
  EXPECT_EQ(sent["messages"][1]["content"], "Rate \"this\"\n\uFFFD.");
  EXPECT_EQ(request_.get_header_value("Authorization"), std::string("Bearer ") + kKey);
}

TEST_F(ChatClientTest, StatusesSayWhatToDo) {
  EXPECT_EQ(ask_for(429, "slow down").fault, ChatFault::kRetry);
  EXPECT_EQ(ask_for(500, "").fault, ChatFault::kRetry);
  EXPECT_EQ(ask_for(503, "busy").fault, ChatFault::kRetry);
  EXPECT_EQ(ask_for(400, "too long").fault, ChatFault::kRequest);
  EXPECT_EQ(ask_for(401, "no").fault, ChatFault::kServer);
  EXPECT_EQ(ask_for(404, "no").fault, ChatFault::kServer);
  EXPECT_THAT(ask_for(400, "too long").error, HasSubstr("status 400: \"too long\""));
  answer_ = [](const httplib::Request&, httplib::Response& response) {
    response.status = 429;
    response.set_header("Retry-After", "3");
  };
  EXPECT_EQ(ask().retry_after, std::chrono::seconds(3));
  answer_ = [](const httplib::Request&, httplib::Response& response) {
    response.status = 429;
    response.set_header("Retry-After", "99999999");
  };
  EXPECT_EQ(ask().retry_after, std::chrono::seconds(120));
}

TEST_F(ChatClientTest, RepliesThatMakeNoSenseAreAskedAgain) {
  const std::string good = body_of("fine");
  for (const std::string& body :
       {std::string(), std::string("not json"), good.substr(0, good.size() / 2), std::string("[]"),
        std::string("{}"), std::string(R"({"choices": []})"),
        std::string(R"({"choices": [{"message": {"content": null}}]})"),
        std::string(R"({"choices": [{"message": "fine"}]})"), body_of(""), body_of(" \n"),
        body_of(7), std::string("{\"choices\": [{\"message\": {\"content\": \"\xff\"}}]}"),
        std::string("\0\0", 2), std::string(1000, '[')}) {
    const ChatOutcome outcome = ask_for(200, body);
    EXPECT_EQ(outcome.fault, ChatFault::kRetry) << body;
    EXPECT_FALSE(outcome.error.empty());
    EXPECT_EQ(read_chat_body(body).fault, ChatFault::kRetry);
  }
}

TEST_F(ChatClientTest, LongRepliesAreReadAndEndlessOnesGivenUp) {
  const std::string megabyte(1 << 20, 'x');
  EXPECT_EQ(ask_for(200, body_of(megabyte)).reply.text, megabyte);
  EXPECT_EQ(ask_for(200, body_of(std::string("a\0b", 3))).reply.text, std::string("a\0b", 3));
  const ChatOutcome endless = ask_for(200, body_of(std::string(9 << 20, 'x')));
  EXPECT_EQ(endless.fault, ChatFault::kRetry);
  EXPECT_THAT(endless.error, HasSubstr("8388608 bytes"));
}

TEST_F(ChatClientTest, SlowServersRunIntoTheTimeout) {
  timeout_ = std::chrono::milliseconds(400);
  answer_ = [](const httplib::Request&, httplib::Response& response) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));
    response.set_content(body_of("late"), "application/json");
  };
  const auto begin = std::chrono::steady_clock::now();
  const ChatOutcome silent = ask();
  EXPECT_EQ(silent.fault, ChatFault::kRetry);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1900));
  // A byte now and then does not keep the request alive.
  answer_ = [](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider(
        "application/json", [n = 0](std::size_t, httplib::DataSink& sink) mutable {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          if (++n < 40 && sink.write(" ", 1)) return true;
          sink.done();
          return true;
        });
  };
  const ChatOutcome trickle = ask();
  EXPECT_EQ(trickle.fault, ChatFault::kRetry);
  EXPECT_THAT(trickle.error, HasSubstr("no reply within 0.4 s"));
}

TEST_F(ChatClientTest, TheKeyGoesNowhereElse) {
  // A redirect is not followed, so that no other address gets it.
  answer_ = [](const httplib::Request&, httplib::Response& response) {
    response.set_redirect("/elsewhere");
  };
  EXPECT_EQ(ask().fault, ChatFault::kServer);
  EXPECT_EQ(strayed_, 0);
  // A server that sends back what it got.
  answer_ = [](const httplib::Request& request, httplib::Response& response) {
    response.status = 401;
    response.set_content("bad header: " + request.get_header_value("Authorization"), "text/plain");
  };
  EXPECT_THAT(ask().error, Not(HasSubstr("secret")));
  // Where a message cuts foreign text, it must not cut the key either.
  EXPECT_THAT(ask_for(500, std::string(70, 'x') + kKey).error, Not(HasSubstr("sk-")));
  EXPECT_EQ(ask_for(200, body_of("it is sk-secret-0123456789!")).reply.text, "it is [key]!");
  std::string escaped = body_of("it is sk-secret-0123456789!");
  escaped.replace(escaped.find("sk-"), 1, "\\u0073");
  EXPECT_EQ(ask_for(200, escaped).reply.text, "it is [key]!");
}

TEST_F(ChatClientTest, StopBreaksOffARunningRequest) {
  answer_ = [](const httplib::Request&, httplib::Response& response) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    response.set_content(body_of("late"), "application/json");
  };
  ChatClient client(options(std::chrono::seconds(20)));
  const auto begin = std::chrono::steady_clock::now();
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    client.stop();
  });
  EXPECT_EQ(client.ask({{Role::kUser, "?"}}).fault, ChatFault::kRetry);
  stopper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2400));
}

TEST(ChatClient, AddressesAndKeysAreChecked) {
  const auto message = [](const std::string& url, const std::string& key) -> std::string {
    try {
      ChatClient client({.url = url, .model = "m", .key = key});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("https://api.example.com/v1", kKey), "no error");
  EXPECT_EQ(message("http://127.0.0.1:8000/v1/chat/completions", kKey), "no error");
  EXPECT_EQ(message("http://judge.example.com/v1", ""), "no error");
  EXPECT_THAT(message("http://judge.example.com/v1", kKey), HasSubstr("expected https"));
  EXPECT_THAT(message("http://127.0.0.1.example.com/v1", kKey), HasSubstr("expected https"));
  EXPECT_THAT(message("ftp://x/v1", ""), HasSubstr("an address such as"));
  EXPECT_THAT(message("https:///v1", ""), HasSubstr("with a host"));
  EXPECT_THAT(message("https://a b/v1", ""), HasSubstr("without spaces"));
  EXPECT_THAT(message("https://user:pass@x/v1", ""), HasSubstr("environment"));
  EXPECT_EQ(message("http://[::1]:8000/v1", ""), "no error");
  EXPECT_EQ(message("http://[::1]/v1", ""), "no error");
  for (const char* port : {"99999", "0", "x", ""}) {
    EXPECT_THAT(message(std::string("http://localhost:") + port + "/v1", ""), HasSubstr("a port"));
  }
  const std::string injected = message("https://x/v1", "a\r\nHost: y");
  EXPECT_THAT(injected, HasSubstr("one word"));
  EXPECT_THAT(injected, Not(HasSubstr("Host")));
  ChatClient nobody({.url = "http://127.0.0.1:1/v1",
                     .model = "m",
                     .key = "",
                     .timeout = std::chrono::milliseconds(300)});
  const ChatOutcome refused = nobody.ask({{Role::kUser, "?"}});
  EXPECT_EQ(refused.fault, ChatFault::kRetry);
  EXPECT_THAT(refused.error, HasSubstr("no reply from http://127.0.0.1:1: "));
}

}  // namespace
}  // namespace asdbench

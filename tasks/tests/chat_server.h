// A chat server on the local host for tests, which answers as it is told.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace asdbench::testing {

/// What came in, of a request to /v1/chat/completions.
struct ChatRequest {
  std::string body;
  std::string authorization;
};

/// What goes out.
struct ChatAnswer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::string retry_after;             // that header; "" for none
  std::chrono::milliseconds after{0};  // how long the client waits for it
};

/// Called from several threads; `number` counts requests from 1.
using ChatBehaviour = std::function<ChatAnswer(int number, const ChatRequest& request)>;

class ChatTestServer {
 public:
  explicit ChatTestServer(ChatBehaviour behaviour);
  ~ChatTestServer();
  ChatTestServer(const ChatTestServer&) = delete;
  ChatTestServer& operator=(const ChatTestServer&) = delete;

  /// "http://127.0.0.1:PORT/v1"
  std::string url() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace asdbench::testing

// One chat completion from an OpenAI-compatible server: asked once, every outcome a value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/core/sample.h"

namespace asdbench {

struct ChatReply {
  std::string text;     // the assistant's own message, as it came
  std::string version;  // what the server calls the model, and its fingerprint
  std::string finish;   // "stop", "length", ...; "" when the server does not say
  std::optional<std::int64_t> prompt_tokens, reply_tokens;  // when the server says
};

/// What to do about a request that gave no reply.
enum class ChatFault : std::uint8_t {
  kNone,
  kRetry,    // ask again: no connection, time-out, 408, 429, 5xx, a body that makes no sense
  kRequest,  // this request will never work: 400, 413, 422
  kServer,   // no request will: 401, 403, 404, a redirect
};

struct ChatOutcome {
  ChatFault fault = ChatFault::kNone;
  ChatReply reply;                                  // when there is no fault
  std::string error;                                // for people; never holds the key
  std::optional<std::chrono::seconds> retry_after;  // what the server asked for
};

struct ChatServer {
  std::string url;  // "https://host/v1", with or without /chat/completions
  std::string model;
  std::string key;  // bearer token, "" for none; sent over https or to the local host only
  std::int64_t max_tokens = 2048;
  std::int64_t seed = 0;
  std::chrono::milliseconds timeout = std::chrono::seconds(120);  // of a whole request
};

/// Asks; may be called from one thread at a time, `stop` from any.
class ChatClient {
 public:
  /// ConfigError for an address that is none, a key over plain http to another host, or a key with
  /// characters that a header cannot hold.
  explicit ChatClient(const ChatServer& server);
  ~ChatClient();
  ChatClient(const ChatClient&) = delete;
  ChatClient& operator=(const ChatClient&) = delete;

  /// At temperature 0. Bodies beyond 8 MiB are given up.
  ChatOutcome ask(const std::vector<Message>& messages);
  /// Breaks off the request that is running, which then ends with kRetry.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a body of status 200 says; `fault` is kRetry when it makes no sense. For tests and fuzzing.
ChatOutcome read_chat_body(const std::string& body);

}  // namespace asdbench

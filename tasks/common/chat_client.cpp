// The server is not trusted: sizes, times and forms are bounded, and the key never comes back.
#include "tasks/common/chat_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/params.h"
#include "tasks/common/characters.h"

namespace asdbench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = std::size_t{8} << 20;
constexpr std::string_view kEndpoint = "/chat/completions";
constexpr std::int64_t kLongestRetryAfter = 120;  // seconds that we are willing to wait

struct Address {
  std::string host;  // scheme, name, port
  std::string path;  // of the endpoint
};

Address address_of(const std::string& url) {
  const auto refuse = [&](const char* expected) {
    throw ConfigError(fmt::format("--endpoint: found {}; expected {}", shown(url), expected));
  };
  const bool secure = url.starts_with("https://");
  if (!secure && !url.starts_with("http://")) refuse("an address such as https://host/v1");
  const auto bad = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; };
  if (std::any_of(url.begin(), url.end(), bad)) refuse("an address without spaces");
  const std::size_t name = url.find("://") + 3;
  if (url.find('@') != std::string::npos) refuse("a key in the environment, not in the address");
  const std::size_t path = std::min(url.find('/', name), url.size());
  if (path == name) refuse("an address with a host");
  // After the last colon, unless that stands inside an IPv6 address.
  const std::string host = url.substr(name, path - name);
  const std::size_t colon = host.rfind(':');
  if (colon != std::string::npos && host.find(']', colon) == std::string::npos) {
    const auto port = parse_integer(host.substr(colon + 1));
    if (!port || *port < 1 || *port > 65'535) refuse("a port from 1 to 65535");
  }
  Address address{url.substr(0, path), url.substr(path)};
  while (address.path.ends_with('/')) address.path.pop_back();
  if (!address.path.ends_with(kEndpoint)) address.path += kEndpoint;
  return address;
}

bool is_local(const std::string& host) {
  const std::string name = host.substr(host.find("://") + 3);
  for (const std::string_view local : {"localhost", "127.0.0.1", "[::1]"}) {
    if (name == local || name.starts_with(std::string(local) + ":")) return true;
  }
  return false;
}

void check_key(const ChatServer& server, const Address& address) {
  if (server.key.empty()) return;
  const bool printable =
      std::all_of(server.key.begin(), server.key.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!printable) {
    throw ConfigError("the judge's key holds spaces or control characters; expected one word");
  }
  if (!address.host.starts_with("https://") && !is_local(address.host)) {
    throw ConfigError(
        fmt::format("--endpoint: {} would get the key unencrypted; expected https", address.host));
  }
}

/// A server may send back what it was sent.
std::string without_key(std::string text, const std::string& key) {
  if (key.empty()) return text;
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at)) {
    text.replace(at, key.size(), "[key]");
  }
  return text;
}

ChatOutcome failed(ChatFault fault, std::string error) {
  return {.fault = fault, .reply = {}, .error = std::move(error), .retry_after = std::nullopt};
}

ChatFault fault_of_status(int status) {
  if (status == 408 || status == 409 || status == 425 || status == 429 || status >= 500) {
    return ChatFault::kRetry;
  }
  if (status == 400 || status == 413 || status == 422) return ChatFault::kRequest;
  return ChatFault::kServer;
}

std::optional<std::chrono::seconds> retry_after_of(const httplib::Response& response) {
  const auto seconds = parse_integer(response.get_header_value("Retry-After"));
  if (!seconds || *seconds < 0) return std::nullopt;
  return std::chrono::seconds(std::min(*seconds, kLongestRetryAfter));
}

std::optional<std::int64_t> count_of(const Json& usage, const char* name) {
  const auto found = usage.find(name);
  if (found == usage.end() || !found->is_number_unsigned()) return std::nullopt;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  const auto value = found->get<std::uint64_t>();
  return value > kMost ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
}

std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

struct ChatClient::State {
  ChatServer server;
  Address address;
  httplib::Client client;
};

ChatClient::ChatClient(const ChatServer& server)
    : state_(
          new State{server, address_of(server.url), httplib::Client(address_of(server.url).host)}) {
  check_key(server, state_->address);
  httplib::Client& client = state_->client;
  if (!client.is_valid()) {
    throw ConfigError("--endpoint: " + state_->address.host + " is no address that can be asked");
  }
  client.set_follow_location(false);  // the key is for this host
  client.set_keep_alive(true);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(server.timeout).count();
  const auto micro = server.timeout.count() % 1000 * 1000;
  client.set_connection_timeout(seconds, micro);
  client.set_read_timeout(seconds, micro);
  client.set_write_timeout(seconds, micro);
}

ChatClient::~ChatClient() = default;

void ChatClient::stop() { state_->client.stop(); }

ChatOutcome ChatClient::ask(const std::vector<Message>& messages) {
  const ChatServer& server = state_->server;
  Json body = {{"model", server.model}, {"temperature", 0}, {"max_tokens", server.max_tokens},
               {"seed", server.seed},   {"stream", false},  {"messages", Json::array()}};
  for (const Message& message : messages) {
    body["messages"].push_back({{"role", name_of(message.role)}, {"content", message.content}});
  }
  httplib::Request request;
  request.method = "POST";
  request.path = state_->address.path;
  request.set_header("Content-Type", "application/json");
  if (!server.key.empty()) request.set_header("Authorization", "Bearer " + server.key);
  // Replies of models may hold bytes that are no UTF-8; the judge sees them replaced.
  request.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto deadline = Clock::now() + server.timeout;
  std::string received;
  bool too_long = false;
  request.content_receiver = [&](const char* bytes, std::size_t count, std::uint64_t,
                                 std::uint64_t) {
    too_long = received.size() + count > kMostBytes;
    if (too_long || Clock::now() > deadline) return false;
    received.append(bytes, count);
    return true;
  };
  const httplib::Result result = state_->client.send(request);
  received = without_key(std::move(received), server.key);  // before anything is cut out of it
  if (too_long) {
    return failed(ChatFault::kRetry, fmt::format("a reply of more than {} bytes", kMostBytes));
  }
  if (!result) {
    const bool slow = Clock::now() > deadline;
    return failed(ChatFault::kRetry,
                  slow ? fmt::format("no reply within {} s",
                                     static_cast<double>(server.timeout.count()) / 1000)
                       : fmt::format("no reply from {}: the connection was refused, lost or cut "
                                     "short ({})",
                                     state_->address.host, httplib::to_string(result.error())));
  }
  if (result->status != 200) {
    ChatOutcome outcome = failed(fault_of_status(result->status),
                                 fmt::format("status {}: {}", result->status, shown(received)));
    outcome.retry_after = retry_after_of(*result);
    return outcome;
  }
  ChatOutcome outcome = read_chat_body(received);
  // Again: JSON may have spelt it with escapes.
  for (std::string* text :
       {&outcome.error, &outcome.reply.text, &outcome.reply.version, &outcome.reply.finish}) {
    *text = without_key(std::move(*text), server.key);
  }
  return outcome;
}

ChatOutcome read_chat_body(const std::string& body) {
  Json root;
  try {
    root = parse_json(body);
  } catch (const DataError& error) {
    return failed(ChatFault::kRetry,
                  fmt::format("the reply is no JSON ({}): {}", error.what(), shown(body)));
  }
  const auto no_message = [&] {
    return failed(ChatFault::kRetry, "the reply has no choices[0].message.content: " + shown(body));
  };
  if (!root.is_object()) return no_message();
  const auto choices = root.find("choices");
  if (choices == root.end() || !choices->is_array() || choices->empty() ||
      !choices->front().is_object()) {
    return no_message();
  }
  const auto message = choices->front().find("message");
  if (message == choices->front().end() || !message->is_object()) return no_message();
  ChatOutcome outcome;
  outcome.reply.text = text_at(*message, "content");
  if (std::all_of(outcome.reply.text.begin(), outcome.reply.text.end(), is_space)) {
    return failed(ChatFault::kRetry, "the judge's message is empty: " + shown(body));
  }
  outcome.reply.finish = text_at(choices->front(), "finish_reason");
  outcome.reply.version = text_at(root, "model");
  const std::string fingerprint = text_at(root, "system_fingerprint");
  if (!fingerprint.empty()) outcome.reply.version += " " + fingerprint;
  const auto usage = root.find("usage");
  if (usage != root.end() && usage->is_object()) {
    outcome.reply.prompt_tokens = count_of(*usage, "prompt_tokens");
    outcome.reply.reply_tokens = count_of(*usage, "completion_tokens");
  }
  return outcome;
}

}  // namespace asdbench

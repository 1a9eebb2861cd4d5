// httplib's server behind an interface without it, so that tests of other folders may use it.
#include "tasks/tests/chat_server.h"

#include <httplib.h>

#include <atomic>
#include <thread>

namespace asdbench::testing {

struct ChatTestServer::State {
  ChatBehaviour behaviour;
  std::atomic<int> requests{0};
  int port = 0;
  httplib::Server server;
  std::thread thread;
};

ChatTestServer::ChatTestServer(ChatBehaviour behaviour) : state_(new State) {
  State& state = *state_;
  state.behaviour = std::move(behaviour);
  state.server.Post("/v1/chat/completions", [&state](const httplib::Request& request,
                                                     httplib::Response& response) {
    const ChatAnswer answer = state.behaviour(
        ++state.requests,
        {.body = request.body, .authorization = request.get_header_value("Authorization")});
    std::this_thread::sleep_for(answer.after);
    response.status = answer.status;
    if (!answer.retry_after.empty()) {
      response.set_header("Retry-After", answer.retry_after);
    }
    if (!answer.body.empty()) response.set_content(answer.body, answer.type);
  });
  state.port = state.server.bind_to_any_port("127.0.0.1");
  state.thread = std::thread([&state] { state.server.listen_after_bind(); });
  // A server that does not run yet cannot be stopped.
  while (!state.server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

ChatTestServer::~ChatTestServer() {
  state_->server.stop();
  state_->thread.join();
}

std::string ChatTestServer::url() const {
  return "http://127.0.0.1:" + std::to_string(state_->port) + "/v1";
}

}  // namespace asdbench::testing

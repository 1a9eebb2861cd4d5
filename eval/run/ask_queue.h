// Many questions to one judge: in parallel, within a rate, again after faults, until told to stop.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/core/sample.h"
#include "tasks/common/chat_client.h"

namespace asdbench {

/// Who is asked. `ask` is called from one thread at a time, `stop` from any.
class Judge {
 public:
  virtual ~Judge() = default;
  virtual ChatOutcome ask(const std::vector<Message>& messages) = 0;
  /// Breaks off what `ask` is doing.
  virtual void stop() {}
};

struct AskOptions {
  std::int32_t concurrency = 1;  // judges that are asked at the same time
  double per_minute = 0;         // requests, repeated ones included; 0: no limit
  std::int32_t attempts = 5;     // of one question
  std::chrono::milliseconds first_wait = std::chrono::seconds(1);  // doubles with every attempt
  std::chrono::milliseconds longest_wait = std::chrono::seconds(60);
  std::chrono::milliseconds timeout = std::chrono::seconds(120);  // of one request
  /// Gets, on the calling thread, why a question is asked again and in how long, for waits of
  /// seconds.
  std::function<void(const std::string& why, std::chrono::seconds wait)> waiting = [](auto&&...) {};
};

struct AskSummary {
  std::size_t answered = 0;
  std::size_t failed = 0;    // asked as often as allowed, or refused
  std::size_t requests = 0;  // repeated ones included
  bool interrupted = false;
  std::string fatal;  // why no question could be answered any more; "" when they could
};

/// Asks every question of `prompts`. `make` makes one judge a thread. `answered` gets each outcome,
/// the last attempt's, on the calling thread and as it comes. Ends early when `interrupted` says so
/// (what is under way is broken off and not reported), when the server refuses everything, or when
/// as many questions as there are judges, at least three, have failed before any was answered.
/// What a judge or `answered` throws ends everything and is thrown on.
AskSummary ask_all(const std::vector<const std::vector<Message>*>& prompts,
                   const std::function<std::unique_ptr<Judge>()>& make, const AskOptions& options,
                   const std::function<void(std::size_t, const ChatOutcome&)>& answered,
                   const std::function<bool()>& interrupted);

}  // namespace asdbench

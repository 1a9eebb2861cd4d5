// Many questions to judges that answer, fail, throw and are slow.
#include "eval/run/ask_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "eval/core/error.h"

namespace asdbench {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

ChatOutcome words(const std::string& text) {
  ChatOutcome outcome;
  outcome.reply.text = text;
  return outcome;
}

ChatOutcome fault(ChatFault kind) {
  return {.fault = kind, .reply = {}, .error = "out of order", .retry_after = std::nullopt};
}

class FakeJudge final : public Judge {
 public:
  using Answer = std::function<ChatOutcome(const std::string& question)>;
  explicit FakeJudge(Answer answer) : answer_(std::move(answer)) {}
  ChatOutcome ask(const std::vector<Message>& messages) override {
    return answer_(messages.at(0).content);
  }

 private:
  Answer answer_;
};

class AskQueueTest : public ::testing::Test {
 protected:
  AskQueueTest() {
    for (int i = 0; i < 40; ++i) questions_.push_back({{Role::kUser, std::to_string(i)}});
    for (const auto& question : questions_) prompts_.push_back(&question);
    options_ = {.concurrency = 4, .attempts = 3, .first_wait = milliseconds(1)};
  }
  AskSummary ask(const FakeJudge::Answer& answer) {
    return ask_all(
        prompts_, [&] { return std::make_unique<FakeJudge>(answer); }, options_,
        [&](std::size_t question, const ChatOutcome& outcome) {
          EXPECT_TRUE(outcomes_.emplace(question, outcome).second) << "each comes once";
        },
        [&] { return stop_.load(); });
  }

  std::vector<std::vector<Message>> questions_;
  std::vector<const std::vector<Message>*> prompts_;
  AskOptions options_;
  std::map<std::size_t, ChatOutcome> outcomes_;
  std::atomic<bool> stop_{false};
};

TEST_F(AskQueueTest, EveryQuestionGetsItsOwnAnswer) {
  const AskSummary summary = ask([](const std::string& question) { return words(question); });
  EXPECT_EQ(summary.answered, 40U);
  EXPECT_EQ(summary.requests, 40U);
  ASSERT_EQ(outcomes_.size(), 40U);
  for (const auto& [question, outcome] : outcomes_) {
    EXPECT_EQ(outcome.reply.text, std::to_string(question));
  }
}

TEST_F(AskQueueTest, FaultsAreAskedAgainAsOftenAsAllowed) {
  std::mutex mutex;
  std::map<std::string, int> asked;
  const AskSummary summary = ask([&](const std::string& question) {
    const std::lock_guard lock(mutex);
    const int times = ++asked[question];
    if (question == "7") return fault(ChatFault::kRetry);
    if (question == "9") return fault(ChatFault::kRequest);
    return times < 2 ? fault(ChatFault::kRetry) : words("[[5]]");
  });
  EXPECT_EQ(summary.answered, 38U);
  EXPECT_EQ(summary.failed, 2U);
  EXPECT_EQ(asked["7"], 3);
  EXPECT_EQ(asked["9"], 1) << "what can never work is asked once";
  EXPECT_EQ(asked["8"], 2);
  EXPECT_EQ(summary.fatal, "");
}

TEST_F(AskQueueTest, ALongWaitIsToldOf) {
  std::vector<std::string> told;
  options_.concurrency = 1;
  options_.waiting = [&](const std::string& why, std::chrono::seconds wait) {
    told.push_back(why + " " + std::to_string(wait.count()));
    stop_ = true;
  };
  const AskSummary summary = ask([](const std::string&) {
    ChatOutcome busy = fault(ChatFault::kRetry);
    busy.retry_after = std::chrono::seconds(40);
    return busy;
  });
  EXPECT_TRUE(summary.interrupted);
  EXPECT_EQ(told, std::vector<std::string>{"out of order 40"});
}

TEST_F(AskQueueTest, WhatAJudgeThrowsComesOut) {
  EXPECT_THROW(ask([](const std::string& question) -> ChatOutcome {
                 if (question == "5") throw DeviceError("the device is gone");
                 return words("[[5]]");
               }),
               DeviceError);
}

TEST_F(AskQueueTest, WhatTheStoreThrowsEndsEveryThread) {
  EXPECT_THROW(
      ask_all(
          prompts_,
          [] {
            return std::make_unique<FakeJudge>([](const std::string&) {
              std::this_thread::sleep_for(milliseconds(5));
              return words("[[5]]");
            });
          },
          options_, [](std::size_t, const ChatOutcome&) { throw StoreError("the disk is full"); },
          [] { return false; }),
      StoreError);
}

TEST_F(AskQueueTest, AServerThatRefusesIsNotAskedFortyTimes) {
  const AskSummary refused = ask([](const std::string&) { return fault(ChatFault::kServer); });
  EXPECT_EQ(refused.fatal, "out of order");
  EXPECT_LE(refused.requests, 4U) << "once for each of four judges";
  outcomes_.clear();
  options_.first_wait = milliseconds(20);  // so that the reason is seen before all have failed
  const AskSummary silent = ask([](const std::string&) { return fault(ChatFault::kRetry); });
  EXPECT_THAT(silent.fatal, HasSubstr("nothing was answered"));
  EXPECT_LT(silent.requests, 40U);
}

TEST_F(AskQueueTest, StoppedItReportsNothingHalfDone) {
  std::atomic<int> asked{0};
  const AskSummary summary = ask([&](const std::string&) {
    if (++asked == 10) stop_ = true;
    std::this_thread::sleep_for(milliseconds(stop_ ? 300 : 2));
    return words("[[5]]");
  });
  EXPECT_TRUE(summary.interrupted);
  EXPECT_EQ(summary.answered, outcomes_.size());
  EXPECT_LT(summary.answered, 40U);
}

}  // namespace
}  // namespace asdbench

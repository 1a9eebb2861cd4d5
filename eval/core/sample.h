// The nouns of an evaluation: sample, prompt, answer, score.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

/// One dataset item; immutable after loading.
struct Sample {
  std::string id;  // stable and unique within a task: "test/17"
  std::map<std::string, std::string, std::less<>> fields;
  std::vector<std::string> targets;  // any one is correct; empty when only a judge can tell
  std::string cluster;               // subject or conversation, for clustered errors; may be ""
  std::string category;              // what reports group by beside the cluster; may be ""

  /// DataError when the field is absent.
  const std::string& field(std::string_view name) const;
};

using Samples = std::vector<Sample>;

enum class Role : std::uint8_t { kSystem, kUser, kAssistant };

/// "system", "user", "assistant".
std::string_view name_of(Role role);

struct Message {
  Role role;
  std::string content;
};

/// A chat to be rendered by the target's template; no system message means the template's own
/// default. Without messages, `text` is continued as it stands.
struct Prompt {
  std::vector<Message> messages;
  std::string text;
};

/// The earlier completions of a conversation, oldest first.
using Turns = std::span<const std::string>;

/// What extraction found in a reply, and the rule that found it ("hash", "box", "anchor",
/// "last_number", ...).
struct Answer {
  std::string text;
  std::string rule;
};

enum class Verdict : std::uint8_t { kCorrect, kIncorrect, kNoAnswer, kUnscored };

/// "correct", "incorrect", "no_answer", "unscored".
std::string_view name_of(Verdict verdict);

struct Score {
  Verdict verdict = Verdict::kUnscored;
  std::optional<double> value;  // in the scorer's units; absent if and only if kUnscored
  std::string answer;           // what extraction found, verbatim; "" when nothing was
  std::string rule;             // what found the answer
  std::string outcome;          // class of a code run; "" elsewhere
  std::string detail;           // the failing assertion, the parse error, the judge's note
};

}  // namespace asdbench

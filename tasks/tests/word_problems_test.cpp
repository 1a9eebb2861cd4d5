// Problems of the synthetic split: right, all different, and no two near-duplicates.
#include "tasks/common/word_problems.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

#include "tasks/task.h"

namespace asdbench {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  std::string word;
  while (in >> word) words.push_back(word);
  return words;
}

/// Without the mark that ends it.
std::string bare(const std::string& word) {
  return word.substr(0, word.find_last_not_of(".,?") + 1);
}

std::set<std::string> shingles_of(const std::string& text) {
  const std::vector<std::string> words = words_of(text);
  std::set<std::string> shingles;
  for (std::size_t i = 0; i + 8 <= words.size(); ++i) {
    std::string shingle;
    for (std::size_t k = 0; k < 8; ++k) shingle += words[i + k] + " ";
    shingles.insert(shingle);
  }
  return shingles;
}

TEST(WordProblems, AreDifferentAndEndInTheirAnswer) {
  ASSERT_GE(word_problem_count(), 100'000);
  std::set<std::string> questions;
  for (std::int64_t i = 0; i < 20'000; ++i) {
    const WordProblem problem = word_problem(1, i);
    questions.insert(problem.question);
    EXPECT_TRUE(problem.solution.ends_with("#### " + std::to_string(problem.answer)));
    EXPECT_GT(problem.answer, 0) << problem.question;
    EXPECT_EQ(problem.question.find('{'), std::string::npos);
  }
  EXPECT_EQ(questions.size(), 20'000u);
  EXPECT_NE(word_problem(1, 0).question, word_problem(2, 0).question);
  EXPECT_NO_THROW(word_problem(1, word_problem_count() - 1));
}

std::unique_ptr<Task> synthetic(const char* seed, const char* from, const char* count) {
  Params params("gsm8k", {});
  params.set("split", "synthetic", {});
  params.set("seed", seed, {});
  params.set("from", from, {});
  params.set("count", count, {});
  for (const TaskFactory& factory : task_factories()) {
    if (factory.name == "gsm8k") return factory.make(params);
  }
  return nullptr;
}

// Problems of one template that differ in one slot alone are the nearest there are. What is
// compared is the user's message, with what every problem is followed by.
TEST(WordProblems, ThatDifferInOneSlotAreNoNearDuplicates) {
  constexpr std::size_t kTemplates = 8;
  const auto task = synthetic("1", "0", "400");
  std::vector<std::string> messages;
  for (const Sample& sample : task->load({})) messages.push_back(task->questions(sample).front());
  for (std::size_t t = 0; t < kTemplates; ++t) {
    const std::vector<std::string> words = words_of(messages[t]);
    // A slot is what changes from problem to problem; every word of it that is the same is changed.
    std::map<std::string, bool> varies;
    for (std::size_t k = t + kTemplates; k < messages.size(); k += kTemplates) {
      const std::vector<std::string> other = words_of(messages[k]);
      ASSERT_EQ(other.size(), words.size());
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (other[i] != words[i]) varies[bare(words[i])] = true;
      }
    }
    ASSERT_GE(varies.size(), 4u) << messages[t];
    for (const auto& [slot, unused] : varies) {
      std::string changed;
      for (const std::string& word : words) changed += (bare(word) == slot ? "other" : word) + " ";
      const auto a = shingles_of(messages[t]), b = shingles_of(changed);
      double shared = 0;
      for (const std::string& shingle : a) shared += b.contains(shingle) ? 1 : 0;
      const double jaccard = shared / (static_cast<double>(a.size() + b.size()) - shared);
      EXPECT_LT(jaccard, 0.7) << slot << " in " << messages[t];
    }
  }
}

TEST(WordProblems, ASplitTakesARangeOfThem) {
  const auto task = synthetic("3", "10", "5");
  const Samples samples = task->load({});
  ASSERT_EQ(samples.size(), 5u);
  EXPECT_EQ(samples[0].id, "synthetic/3/10");
  const Sample& sample = samples[4];
  const auto answer = task->extract(sample, "So the result is #### " + sample.targets[0]);
  EXPECT_EQ(task->score(sample, answer).verdict, Verdict::kCorrect);
}

}  // namespace
}  // namespace asdbench

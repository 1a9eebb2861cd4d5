// Word problems of one and two steps, drawn from templates of ours: as many as wanted, named by a
// seed and an index.
#pragma once

#include <cstdint>
#include <string>

namespace asdbench {

struct WordProblem {
  std::string question;
  std::string solution;  // ends in "#### " and the answer, as GSM8K's do
  std::int64_t answer = 0;
};

/// How many problems one seed has.
std::int64_t word_problem_count();

/// The problem `index` of `seed`. Two indices of one seed give different questions: a permutation
/// of all combinations of words and numbers assigns them. InternalError outside
/// [0, word_problem_count()).
WordProblem word_problem(std::uint64_t seed, std::int64_t index);

}  // namespace asdbench

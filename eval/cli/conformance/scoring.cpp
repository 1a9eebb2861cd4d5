// conformance scoring: published replies and what the graders have to say about them.
#include "eval/cli/conformance/scoring.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "eval/cli/conformance/code_cases.h"
#include "eval/cli/conformance/conformance.h"
#include "eval/core/error.h"
#include "eval/stats/pass_at_k.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/letter_graders.h"
#include "tasks/common/math_graders.h"
#include "tasks/common/number_graders.h"
#include "tasks/common/numbers.h"

namespace asdbench {
namespace {

// Files of programs, which need consent.
const std::vector<std::string> kProgramFiles = {"code.jsonl", "sandbox.jsonl"};
const std::vector<std::string> kFiles = {"aggregate.jsonl",  "gsm8k.jsonl",      "judge.jsonl",
                                         "math_equiv.jsonl", "math_grade.jsonl", "mmlu.jsonl"};
const std::set<std::string> kFields = {
    "id",      "task",       "kind",        "category",  "level",
    "profile", "prediction", "gold",        "expected",  "options",
    "source",  "verified",   "note",        "tolerance", "reference_result",
    "choices", "verdicts",   "verified_by", "profiles",  "problems",
    "prompt",  "entry_point"};
// What the cases call a profile where it differs from ours.
const std::map<std::string, std::string> kProfileNames = {{"simple-evals-mgsm", "simple-evals"}};

struct Found {
  std::string answer;  // "null" for none
  bool correct;
};

std::string describe(const Found& found) {
  return found.answer + (found.correct ? " (correct)" : " (not correct)");
}

// The references' own words for "nothing found" count as none.
std::string expected_answer(const Json& answer) {
  if (answer.is_null() || answer == "[invalid]" || answer == "-9999999") return "null";
  return answer.is_string() ? answer.get<std::string>() : answer.dump();
}

bool same_answer(const std::string& expected, const std::string& found) {
  return expected == found || same_number(expected, found);
}

const NumberGrader* grader_of(const JsonlRow& row) {
  std::string name = row.object().value("profile", "default");
  if (const auto other = kProfileNames.find(name); other != kProfileNames.end()) {
    name = other->second;
  }
  for (const NumberGrader& grader : number_graders()) {
    if (grader.name == name) return &grader;
  }
  return nullptr;
}

void report_answer(const JsonlRow& row, const Found& found, ConformanceReport& report) {
  const std::string& id = row.text("id");
  const Json& expected = row.object().at("expected");
  const Found wanted = {expected_answer(expected.at("answer")), expected.at("correct").get<bool>()};
  const bool ok = wanted.correct == found.correct && same_answer(wanted.answer, found.answer);
  if (row.text("level") != "contested") {
    report.expect(id, ok, describe(wanted), describe(found));
  } else if (!ok) {
    report.note(id + ": contested, recorded " + describe(wanted) + ", got " + describe(found));
  }
}

void run_number_case(const JsonlRow& row, ConformanceReport& report) {
  const std::string& id = row.text("id");
  const NumberGrader* grader = grader_of(row);
  if (grader == nullptr) {
    report.fail(id, "a known profile", "\"" + row.text("profile") + "\"");
    return;
  }
  const auto answer = grader->extract(row.text("prediction"));
  const Score score = score_number(*grader, {row.text("gold")}, answer);
  const Found found = {answer ? answer->text : "null", score.verdict == Verdict::kCorrect};
  report_answer(row, found, report);
}

void run_letter_case(const JsonlRow& row, ConformanceReport& report) {
  const std::string name = row.object().value("profile", "default");
  for (const LetterGrader& grader : letter_graders()) {
    if (grader.name != name) continue;
    const auto choices = row.object().at("choices").get<std::vector<std::string>>();
    const auto answer = grader.extract(row.text("prediction"), choices);
    const bool correct = answer && grader.equal(answer->text, row.text("gold"));
    report_answer(row, {answer ? answer->text : "null", correct}, report);
    return;
  }
  report.fail(row.text("id"), "a known profile", "\"" + name + "\"");
}

// A pair of answers ("equiv") or a reply and its gold ("grade").
void run_math_case(const JsonlRow& row, ConformanceReport& report) {
  const std::string name = row.object().value("profile", "default");
  for (const MathGrader& grader : math_graders()) {
    if (grader.name != name) continue;
    const auto answer = row.text("kind") == "equiv"
                            ? Answer{.text = row.text("prediction"), .rule = ""}
                            : grader.extract(row.text("prediction"));
    const bool equal = answer && grader.compare(answer->text, row.text("gold")).equal;
    const bool wanted = row.object().at("expected").get<bool>();
    const auto words = [](bool correct) { return correct ? "correct" : "incorrect"; };
    const std::string found =
        fmt::format("{} ({})", words(equal), answer ? shown(answer->text) : "no answer");
    if (row.text("level") != "contested") {
      report.expect(row.text("id"), equal == wanted, words(wanted), found);
    } else if (equal != wanted) {
      report.note(
          fmt::format("{}: contested, recorded {}, got {}", row.text("id"), words(wanted), found));
    }
    return;
  }
  report.fail(row.text("id"), "a known profile", "\"" + name + "\"");
}

// A number within the tolerance of the case, or null for what is not reported.
void report_number(const JsonlRow& row, std::optional<double> found, ConformanceReport& report) {
  const Json& expected = row.object().at("expected");
  const bool ok = expected.is_null() ? !found.has_value()
                                     : found && std::abs(*found - expected.get<double>()) <=
                                                    row.object().value("tolerance", 0.0);
  report.expect(row.text("id"), ok, expected.dump(), found ? shortest_real(*found) : "null");
}

void run_pass_at_k(const JsonlRow& row, ConformanceReport& report) {
  const Json& input = row.object().at("prediction");
  const auto k = input.at("k").get<std::int64_t>();
  if (row.text("kind") == "pass_at_k") {
    const SolvedSamples problem = {input.at("n").get<std::int64_t>(),
                                   input.at("c").get<std::int64_t>()};
    return report_number(row, pass_at_k(problem, k), report);
  }
  std::vector<SolvedSamples> problems;
  for (const Json& problem : input.at("problems")) {
    problems.push_back({problem.at(0).get<std::int64_t>(), problem.at(1).get<std::int64_t>()});
  }
  report_number(row, pass_at_k(problems, k), report);
}

void run_case(const JsonlRow& row, CodeCases& programs, ConformanceReport& report) {
  const std::string& id = row.text("id");
  for (const auto& [field, value] : row.object().items()) {
    if (!kFields.contains(field)) {
      report.fail(id, "a known field", "\"" + field + "\"");
      return;
    }
  }
  try {
    if (row.text("task") == "gsm8k" && row.text("kind") == "extract_grade") {
      run_number_case(row, report);
    } else if (row.text("task") == "mmlu" && row.text("kind") == "extract_grade") {
      run_letter_case(row, report);
    } else if (row.text("kind") == "equiv" || row.text("kind") == "grade") {
      run_math_case(row, report);
    } else if (row.text("kind") == "code" || row.text("kind") == "sandbox") {
      programs.add(row);
    } else if (row.text("kind") == "pass_at_k" || row.text("kind") == "pass_at_k_mean") {
      run_pass_at_k(row, report);
    } else if (!run_judged_case(row, report)) {
      report.fail(id, "a known kind of case",
                  "\"" + row.text("kind") + "\" of task \"" + row.text("task") + "\"");
    }
  } catch (const Json::exception& error) {
    report.fail(id, "a complete case", error.what());
  }
}

}  // namespace

void conformance_scoring(const ConformanceOptions& options, ConformanceReport& report) {
  const bool one_file = std::filesystem::is_regular_file(options.path);
  std::vector<std::filesystem::path> files;
  if (one_file) files = find_cases(options.path, "");
  for (const std::string& name : kFiles) {
    if (one_file) break;
    for (const auto& file : find_cases(options.path, name)) files.push_back(file);
  }
  for (const std::string& name : kProgramFiles) {
    if (one_file) break;
    for (const auto& file : find_cases(options.path, name)) {
      if (options.allow_code_execution) {
        files.push_back(file);
      } else {
        report.note(file.string() + ": left out, its cases are programs: --allow-code-execution");
      }
    }
  }
  if (files.empty()) {
    throw DataError(options.path.string() + ": no scoring cases (gsm8k.jsonl, ...) at or below it");
  }
  CodeCases programs;
  for (const auto& file : files) {
    read_jsonl(file, [&](const JsonlRow& row) { run_case(row, programs, report); });
  }
  if (!programs.empty()) require_consent(options, "the cases of " + options.path.string());
  programs.run(report);
}

}  // namespace asdbench

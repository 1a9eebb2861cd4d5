// Figures that others published, as facts with their source and conventions, beside ours.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "eval/report/report.h"

namespace asdbench {

struct Evidence;

/// One published figure.
struct PublishedRow {
  std::string task, target, drafter, verifier;  // task "" or "all": over several tasks
  std::string drafter_options;  // words that our drafter's options must hold; "" for any
  std::optional<double> budget, gate, max_exceptions;
  std::string metric;
  double value = 0;
  std::optional<double> low, high;
  std::string note;
};

/// What a published accept length counts; ours is translated to it.
struct PublishedConvention {
  bool target_token = true;      // else drafts only
  bool pooled = true;            // over passes; else the mean of requests
  bool first_token = false;      // whether the token from prefill counts
  std::string truncated_tokens;  // "counted", "dropped", "unknown"; printed, not translated
};

struct Published {
  std::string file, source, reference, date, setting;
  PublishedConvention convention;
  std::vector<std::string> notes;  // known inconsistencies
  std::vector<PublishedRow> rows;
};

/// ConfigError with file, line and key path for unknown keys, wrong types and unknown metrics.
Published parse_published(const std::string& text, const std::filesystem::path& file);
Published read_published(const std::filesystem::path& file);

/// Every published row beside the cells of the same task, rule and controls; a cell of another
/// target or drafter is set beside it and marked.
Section published_section(const Evidence& evidence, const Published& published);

}  // namespace asdbench

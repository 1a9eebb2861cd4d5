// One interface for every format of a report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/report/matrix.h"
#include "eval/report/published.h"
#include "eval/report/report.h"
#include "results/store.h"

namespace asdbench {

struct ReportOptions {
  Capped capped = Capped::kByGrader;
  std::vector<Published> published;  // set beside ours
};

/// Reads the views and lays every section out. StoreError when the file lacks them.
Report make_report(const ResultStore& store, const ReportOptions& options);

/// What every grader found in the replies of each cell, side by side.
std::vector<Table> grader_tables(const ResultStore& store, Capped capped = Capped::kByGrader);

class Reporter {
 public:
  Reporter() = default;
  virtual ~Reporter() = default;
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  virtual std::string render(const Report& report) const = 0;
};

/// terminal, md, latex, html.
std::vector<std::string> reporter_names();
/// InternalError for another name.
std::unique_ptr<Reporter> make_reporter(const std::string& format);
std::unique_ptr<Reporter> make_html_reporter();

}  // namespace asdbench

// The one-shot ledger of splits: a file beside the databases that remembers which prompts have
// been audited, whatever database the audit was in.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace asdbench {

/// A file of JSON lines, each with the hash of the line before it. Held locked while an object
/// lives, so that two audits cannot both find a split unused.
class SplitLedger {
 public:
  /// Opens or creates, waits for the lock, reads. StoreError when it cannot be opened or written;
  /// DataError with the line when one was edited, removed or cut.
  explicit SplitLedger(const std::filesystem::path& file);
  ~SplitLedger();
  SplitLedger(const SplitLedger&) = delete;
  SplitLedger& operator=(const SplitLedger&) = delete;

  struct Entry {
    std::string audit;  // hash of the audit_start record
    std::string campaign;
    std::string manifest;  // its hash
    std::string split;     // root
    std::string closed;    // verdict; "" while open
  };
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& audit) const;
  /// The first audit that used one of these prompts; nullptr when none did.
  const Entry* user_of(const std::vector<std::string>& prompts) const;

  /// Appends and syncs.
  void begin(const Entry& entry, const std::vector<std::string>& prompts);
  void close(const std::string& audit, const std::string& verdict);

 private:
  void read(const std::string& text);
  void append(const std::string& line);

  std::filesystem::path file_;
  int descriptor_ = -1;
  std::string last_;  // hash of the last line
  std::vector<Entry> entries_;
  std::vector<std::set<std::string>> prompts_;  // of each entry
};

}  // namespace asdbench

// Lines under a lock of the whole file.
#include "eval/audit/split_ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "eval/audit/chain.h"
#include "eval/core/digest.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

// A line holds 67 bytes a prompt; this is room for millions of them.
constexpr off_t kLargestLedgerBytes = off_t{1} << 30;

StoreError failed(const std::filesystem::path& file, const char* action) {
  return StoreError(fmt::format("{}: cannot {}: {}\n  deploy.ledger names the file", file.string(),
                                action, std::strerror(errno)));
}

std::string read_all(int descriptor, const std::filesystem::path& file) {
  const off_t size = lseek(descriptor, 0, SEEK_END);
  if (size < 0 || lseek(descriptor, 0, SEEK_SET) < 0) throw failed(file, "read the split ledger");
  if (size > kLargestLedgerBytes) {
    throw DataError(fmt::format("{}: {} bytes; a split ledger is smaller", file.string(), size));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count = ::read(descriptor, text.data() + got, text.size() - got);
    if (count < 0) throw failed(file, "read the split ledger");
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  return text;
}

}  // namespace

SplitLedger::SplitLedger(const std::filesystem::path& file) : file_(file), last_(kChainStart) {
  std::error_code ignored;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw failed(file, "open the split ledger");
  if (flock(descriptor_, LOCK_EX) != 0) throw failed(file, "lock the split ledger");
  try {
    read(read_all(descriptor_, file));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SplitLedger::~SplitLedger() { ::close(descriptor_); }

void SplitLedger::read(const std::string& text) {
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    ++number;
    const auto damaged = [&](const std::string& what) {
      return DataError(
          fmt::format("{}:{}: {}\n  the ledger was edited or damaged; restore a copy, "
                      "or audits cannot be told apart",
                      file_.string(), number, what));
    };
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) throw damaged("the last line is cut");
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    try {
      const Json json = parse_json(line);
      if (json.at("prev") != last_) throw damaged("it does not follow the line before it");
      last_ = sha256_hex(line);
      const auto audit = json.at("audit").get<std::string>();
      if (json.at("event") == "close") {
        for (Entry& entry : entries_) {
          if (entry.audit == audit) entry.closed = json.at("verdict").get<std::string>();
        }
        continue;
      }
      entries_.push_back({.audit = audit,
                          .campaign = json.at("campaign").get<std::string>(),
                          .manifest = json.at("manifest").get<std::string>(),
                          .split = json.at("split").get<std::string>(),
                          .closed = ""});
      const auto prompts = json.at("prompts").get<std::vector<std::string>>();
      prompts_.emplace_back(prompts.begin(), prompts.end());
    } catch (const Json::exception& error) {
      throw damaged(error.what());
    }
  }
}

const SplitLedger::Entry* SplitLedger::find(const std::string& audit) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.audit == audit; });
  return found == entries_.end() ? nullptr : &*found;
}

const SplitLedger::Entry* SplitLedger::user_of(const std::vector<std::string>& prompts) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    for (const std::string& prompt : prompts) {
      if (prompts_[i].contains(prompt)) return &entries_[i];
    }
  }
  return nullptr;
}

void SplitLedger::append(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(descriptor_) != 0) {
    throw failed(file_, "write the split ledger");
  }
  last_ = sha256_hex(line);
}

void SplitLedger::begin(const Entry& entry, const std::vector<std::string>& prompts) {
  append(canonical_json({{"event", "start"},
                         {"audit", entry.audit},
                         {"campaign", entry.campaign},
                         {"manifest", entry.manifest},
                         {"split", entry.split},
                         {"prompts", prompts},
                         {"prev", last_}}));
  entries_.push_back(entry);
  prompts_.emplace_back(prompts.begin(), prompts.end());
}

void SplitLedger::close(const std::string& audit, const std::string& verdict) {
  append(canonical_json(
      {{"event", "close"}, {"audit", audit}, {"verdict", verdict}, {"prev", last_}}));
  for (Entry& entry : entries_) {
    if (entry.audit == audit) entry.closed = verdict;
  }
}

}  // namespace asdbench
